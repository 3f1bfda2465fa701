"""torch.jit: several declarations of a script, interfaces, branches that no script takes."""

from __future__ import annotations

from typing import Any

import pytest

import torchlab as torch
from torchlab import Tensor


@torch.jit._overload
def scaled(x: Tensor, by: float) -> Tensor:
    pass


@torch.jit._overload
def scaled(x: Tensor, by: Tensor | None) -> Tensor:  # noqa: F811
    pass


def scaled(x, by):  # noqa: F811
    return x if by is None else x * by


def test_a_script_takes_what_any_declaration_takes() -> None:
    s = torch.jit.script(scaled)
    x = torch.ones(2)
    assert s(x, 2.0).tolist() == [2, 2] and s(x, x * 3).tolist() == [3, 3]
    assert s(x, None) is x
    with pytest.raises(RuntimeError, match="Expected a value of type"):
        s(x, "2")


@torch.jit.interface
class Scaling:
    def run(self, x: Tensor) -> Tensor:
        pass


class Twice:
    def run(self, x: Tensor) -> Tensor:
        return x * 2


def used(impl: Scaling, x: Tensor) -> Tensor:
    return impl.run(x)


def test_an_interface_is_the_type_of_all_that_has_its_methods() -> None:
    s = torch.jit.script(used)
    assert s(Twice(), torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError):
        s(3, torch.ones(2))
    with pytest.raises(RuntimeError, match="interface must be applied to a class"):
        torch.jit.interface(3)
    assert torch.jit.Attribute(1, int).value == 1


def _any_python(x: Any) -> Any:
    try:
        return x + 1
    finally:
        pass


def branching(x: Tensor) -> Tensor:
    if torch.jit.is_scripting() or _any_python(x) is None:
        return x * 2
    return _any_python(x)


def guarded(x: Tensor) -> Tensor:
    if not torch.jit.is_scripting() and x.sum() > 0:
        x = _any_python(x)
    y = x if torch.jit.is_scripting() else _any_python(x)
    return y * 3


def test_branches_that_no_script_takes_may_be_any_python() -> None:
    x = torch.ones(2)
    with pytest.raises(torch.jit.frontend.UnsupportedNodeError):
        torch.jit.script(_any_python)
    assert torch.jit.script(guarded)(x).tolist() == [3, 3]
    assert guarded(x).tolist() == [9, 9]
