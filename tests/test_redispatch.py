"""`torchlab.overrides.redispatch_function`: one level of `__torch_function__` is left out."""

from __future__ import annotations

from typing import Any

import torchlab
from torchlab import overrides


def scaled(a: Any, b: Any) -> Any:
    if overrides.has_torch_function((a, b)):
        return overrides.handle_torch_function(scaled, (a, b), a, b)
    return a * b + 1


class Logging(torchlab.Tensor):
    calls: list[str] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        cls.calls.append(func.__name__)
        return overrides.redispatch_function(func, types, args, kwargs)


def test_of_a_subclass() -> None:
    x, y = Logging(torchlab.tensor([3.0])), Logging(torchlab.tensor([4.0]))
    Logging.calls = []
    r = scaled(x, y)
    # The product is a plain tensor, so that nobody is asked about the sum
    assert Logging.calls == ["scaled", "mul"]
    assert (r.tolist(), type(r)) == ([13.0], torchlab.Tensor)


def test_of_a_mode() -> None:
    class Mode(overrides.TorchFunctionMode):
        calls: list[str] = []

        def __torch_function__(self, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            self.calls.append(func.__name__)
            with self:
                return overrides.redispatch_function(func, types, args, kwargs)

    x, y = torchlab.tensor([3.0]), torchlab.tensor([4.0])
    with Mode() as mode:
        r = scaled(x, y)
    assert r.tolist() == [13.0]
    assert mode.calls == ["scaled", "mul", "add"]


def test_what_is_not_asked_is_not_owed() -> None:
    def plain(a: Any) -> Any:
        return a

    assert overrides.redispatch_function(plain, (), (1,), None) == 1
    assert overrides.has_torch_function((Logging(torchlab.ones(1)),))
