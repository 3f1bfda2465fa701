"""Losses of an input and a target of different types: what PyTorch makes of them.

Under autocast nothing is done here: it gives both one type.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._kinds import FLOATS, need
from torchlab._core.tape import TLS, edge_of


def is_number(t: Any) -> bool:
    """Whether a tensor is of a floating or complex type."""
    return bool(t._k.dtype.is_floating_point or t._k.dtype.is_complex)


def differ(a: Any, b: Any) -> bool:
    """Whether types have to be dealt with."""
    return a._k.dtype is not b._k.dtype and TLS.autocast is None


def together(kernel: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Both in the type that they promote to. NotImplementedError if that is integral."""
    if differ(a, b):
        wide = aten.result_type(a, b)
        a, b = _widened(a, wide), _widened(b, wide)
    need(FLOATS, kernel, a._a)
    return a, b


def _widened(x: Any, dtype: Any) -> Any:
    """x in another type, with its own history: PyTorch's kernels convert what they read."""
    r = aten.to(x, dtype)
    if r is not x and r._e is not None:
        r._e = edge_of(x)
    return r


def refuse(kernel: str, t: Any) -> None:
    """NotImplementedError: there is no such kernel for a tensor's type."""
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{t._k.dtype.scalar_name}'")


def cast_back(r: Any, like: Any, *operands: Any) -> Any:
    """A result as PyTorch has it where it writes the result into a tensor of `like`'s type. Raises
    RuntimeError if that cannot take it: `operands` say what it is computed in."""
    if TLS.autocast is not None:
        return r
    if not is_number(like):
        floats = [x for x in operands if is_number(x)]
        name = floats[0]._k.dtype.scalar_name if floats else "Float"
        raise RuntimeError(
            f"result type {name} can't be cast to the desired output type"
            f" {like._k.dtype.scalar_name}"
        )
    return r if r._k.dtype is like._k.dtype else aten.to(r, like._k.dtype)


def same_type(weight: Any, self: Any) -> None:
    """RuntimeError unless the weights of classes are of the input's type."""
    if weight is not None and differ(weight, self):
        raise RuntimeError(
            f"expected scalar type {self._k.dtype.scalar_name} but found"
            f" {weight._k.dtype.scalar_name}: convert the weights with weight.to(input.dtype)"
        )


__all__ = ["cast_back", "differ", "is_number", "refuse", "same_type", "together"]
