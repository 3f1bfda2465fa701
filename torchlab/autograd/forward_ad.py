"""Forward-mode derivatives: dual tensors carry a tangent through a computation.

    with forward_ad.dual_level():
        y = f(forward_ad.make_dual(x, t))
        value, tangent = forward_ad.unpack_dual(y)

Source: https://docs.pytorch.org/docs/2.13/autograd.html#forward-mode-automatic-differentiation
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from torchlab._core.dispatch import duals
from torchlab._core.dispatch.duals import Dual
from torchlab._core.dispatch.levels import LEVELS
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import NOGRAD, TLS, edge_of
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import _Mode

_current = -1  # the public number of the level that is entered, -1 for none
_inner = 0  # its number among the transforms that are running


UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = """A tensor and its tangent, None if it has none."""


def enter_dual_level() -> int:
    """Begin forward mode; its level, 0: there is only one at a time.

    RuntimeError if one is entered already.
    """
    global _current, _inner
    if _current >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _inner = LEVELS.enter(Dual)
    _current = 0
    return _current


def exit_dual_level(*, level: int | None = None) -> None:
    """End forward mode: no tensor has a tangent any more.

    RuntimeError if `level` is not the one that was entered last.
    """
    global _current
    level = _current if level is None else level
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if level != _current:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is"
            " not supported."
        )
    duals.end(_inner)
    LEVELS.leave()
    _current = -1


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`, a tensor of the same shape.

    RuntimeError without a level, for another shape, or if `tensor` has a tangent already;
    ValueError for integers.
    """
    level = _current if level is None else level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to"
            " enter_dual_level() first."
        )
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if not (x.is_floating_point() or x.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {x.dtype}")
    if tensor._level == _inner:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same"
            f" level {level} is not supported."
        )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original"
            f" Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the"
            f" given forward gradient is of size {list(tangent.shape)}."
        )
    primal = aten.alias(tensor)
    r = duals.dual(primal, tangent, _inner)
    r._v = tensor._v if tensor._v is not None else tensor
    if not NOGRAD or TLS.grad:
        r._e = edge_of(primal)  # gradients of the dual reach the tensor
    return r


def unpack_dual(tensor: Any, *, level: int | None = None) -> Any:
    """The value of a dual (a view of it) and its tangent; None for a tensor without one."""
    level = _current if level is None else level
    if level < 0 or tensor._level != _inner:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(aten.alias(tensor.primal), tensor.tangent)


class dual_level(_Mode):
    """Forward mode for a block or a function: `enter_dual_level` and `exit_dual_level`."""

    __slots__ = ()

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: Any) -> None:
        exit_dual_level()


__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]  # fmt: skip
