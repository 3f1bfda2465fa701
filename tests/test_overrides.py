"""__torch_function__ on subclasses and other classes, and function modes."""

from __future__ import annotations

from typing import Any

import pytest

import torchlab as torch
from torchlab import overrides
from torchlab.overrides import TorchFunctionMode


class Duck:
    """No tensor, but it answers for one."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__, len(args), kwargs


class Silent:
    """Has the protocol and declines."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


class Loud(torch.Tensor):
    """Remembers what it was asked."""

    asked: list[str] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Loud.asked.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Names(TorchFunctionMode):
    """Remembers what was called."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_class_answers_for_operators_and_for_functions_made_of_them() -> None:
    assert torch.add(Duck(), 1) == ("add", 2, {})
    assert torch.add(torch.ones(1), Duck()) == ("add", 2, {})
    assert torch.ones(1) + Duck() == ("add", 2, {})
    assert torch.cat([Duck()]) == ("cat", 1, {})
    assert torch.sum(Duck()) == ("sum", 1, {})
    assert torch.sum(Duck(), dim=1) == ("sum", 1, {"dim": 1})
    assert torch.reshape(Duck(), (2, 3))[0] == "reshape"
    assert torch.nn.functional.relu(Duck())[0] == "relu"


def test_nobody_answers() -> None:
    for call in (lambda: torch.add(Silent(), 1), lambda: torch.sum(Silent())):
        with pytest.raises(TypeError, match="no implementation found"):
            call()
    with pytest.raises((TypeError, AttributeError)):
        torch.sum(3)


def test_subclasses_stay_subclasses_unless_switched_off() -> None:
    x = torch.ones(2).as_subclass(Loud)
    Loud.asked.clear()
    assert type(x + 1) is Loud and type(torch.sum(x)) is Loud
    assert Loud.asked == ["add", "sum"]
    with torch.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
    with torch.DisableTorchFunction():
        assert type(torch.sum(x)) is torch.Tensor
    assert Loud.asked == ["add", "sum"]
    assert type(x * 2) is Loud


def test_a_mode_sees_operators_and_is_off_inside() -> None:
    x = torch.ones(2)
    with Names() as outer, Names() as inner:
        (x + 1).sum()
    assert inner.names == outer.names == ["add", "sum"]
    with Names() as mode, torch.DisableTorchFunction():
        x.sin()
    assert mode.names == []
    with pytest.raises(NotImplementedError), TorchFunctionMode():
        x.sin()
    with overrides.BaseTorchFunctionMode():
        assert x.sin().shape == (2,)


def test_functions_of_ones_own_take_part() -> None:
    @overrides.wrap_torch_function(lambda x, y=2: (x,))
    def scale(x: Any, y: int = 2) -> Any:
        return "plain"

    assert scale(1) == "plain"
    assert scale(Duck()) == ("scale", 1, {})
    with pytest.raises(TypeError, match="scale"):
        scale(Silent())
    with Names() as mode:
        scale(1, y=3)
    assert mode.names == ["scale"]


def test_questions() -> None:
    x = torch.ones(1)
    assert overrides.is_tensor_like(x) and overrides.is_tensor_like(Duck())
    assert not overrides.is_tensor_like(3)
    assert overrides.has_torch_function((3, Duck())) and not overrides.has_torch_function((x,))
    assert overrides.resolve_name(torch.add) == "torch.add"
    assert overrides.resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert overrides.resolve_name(len) is None
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    overridable = overrides.get_overridable_functions()
    assert torch.add in overridable[torch] and torch.sum in overridable[torch]
    assert torch.zeros in overrides.get_ignored_functions()
