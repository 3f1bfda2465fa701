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
        with pytest.raises(TypeError, match="Multiple dispatch failed"):
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


def test_nobody_answers_and_the_error_says_who_was_asked() -> None:
    class Mute(TorchFunctionMode):
        def __torch_function__(self, *args: Any, **kwargs: Any) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.add'; all") as error:
        torch.add(Silent(), 1)
    assert str(error.value).endswith(f"NotImplemented:\n\n  - tensor subclass {Silent}")
    x = torch.ones(1)
    with pytest.raises(TypeError, match="no implementation found for 'torch.nn.functional.relu'"):
        with Mute():
            torch.nn.functional.relu(x)
    with pytest.raises(TypeError, match="'torch.zeros'.*\n\n  - mode object"), Mute():
        torch.zeros(2)


def test_subclasses_with_tensors_own_protocol_count() -> None:
    class Plain(torch.Tensor):
        pass

    def halved(x: Any) -> Any:
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(halved, (x,), x)
        return x / 2

    x = torch.ones(2).as_subclass(Plain)
    assert overrides.has_torch_function_unary(x) and overrides.has_torch_function_variadic(1, x)
    assert type(halved(x)) is Plain
    assert not overrides.has_torch_function_variadic()
    with torch._C.DisableTorchFunctionSubclass():
        assert not overrides.has_torch_function((x,))
    with pytest.raises(TypeError, match="expected a sequence"):
        overrides.has_torch_function(3)  # type: ignore[arg-type]


def test_what_can_be_taken_over() -> None:
    overridable = overrides.get_overridable_functions()
    functional = torch.nn.functional
    assert functional.pad in overridable[functional] and functional.relu in overridable[functional]
    assert torch.einsum in overridable[torch] and torch.einsum in overridable[torch.functional]
    assert torch.Tensor.add_ in overridable[torch.Tensor]
    assert overridable[torch.Tensor.shape] == [torch.Tensor.shape.__get__]
    assert torch.fft.fft in overridable[torch.fft] and torch.linalg.inv in overridable[torch.linalg]
    assert torch.zeros not in overridable[torch] and torch.abs_ not in overridable[torch]
    tests = overrides.get_testing_overrides()
    assert len(tests) > 1200 and tests[functional.pad](1, 2, mode="x") == -1
    assert tests[torch.nn.init.uniform_](1) == -1
    with pytest.raises(TypeError):
        tests[functional.pad]()


def test_names_of_functions() -> None:
    for function, name in (
        (torch.einsum, "torch.functional.einsum"),
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (torch.nn.functional.conv2d, "torch.nn.functional.conv2d"),
        (torch.nn.init.uniform_, "torch.nn.init.uniform_"),
        (torch.Tensor.shape.__get__, "torch.Tensor.shape.__get__"),
        (torch.Tensor.lt, "torch.Tensor.lt"),
        (torch.zeros, "torch.zeros"),
        (torch.ops.aten.add.Tensor, "aten.add.Tensor"),
        (torch.ops.aten.add, "aten.add"),
        (torch.Tensor.shape, None),
    ):
        assert overrides.resolve_name(function) == name


def test_dispatch_that_is_recorded_again() -> None:
    wants: list[bool] = []

    class Handled(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            leaf = torch.ones(2, requires_grad=True)
            wants.append((leaf * 2).requires_grad)
            with overrides.enable_reentrant_dispatch():
                wants.append((leaf * 2).requires_grad)
            wants.append((leaf * 2).requires_grad)
            return torch.ones(2)

    torch.Tensor._make_subclass(Handled, torch.ones(2)).sin()
    assert wants == [False, True, False]
    with pytest.raises(RuntimeError, match="outside of '__torch_dispatch__' is not allowed"):
        with overrides.enable_reentrant_dispatch():
            pass


def test_tensor_makes_a_plain_one_of_any_class() -> None:
    class Mine(torch.Tensor):
        pass

    with pytest.warns(UserWarning, match="copy construct"):
        assert type(torch.tensor(torch.ones(2).as_subclass(Mine))) is torch.Tensor


def test_parameters_of_classes_are_printed_with_their_class() -> None:
    class Mine(torch.Tensor):
        pass

    class Own(torch.nn.Parameter):
        pass

    mine = torch.nn.Parameter(torch.ones(1).as_subclass(Mine))
    assert repr(mine) == "Parameter(Mine([1.], requires_grad=True))"
    assert repr(Own(torch.ones(1))) == (
        "Parameter containing:\nParameter(Own([1.], requires_grad=True))"
    )
