"""What the pointwise and special functions share: promotion that refuses types, as PyTorch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import vjp_helper
from torchlab._core.lazy import lazy

special = lazy("scipy.special")

Promotion = Callable[[Any, dt.dtype], tuple[dt.dtype, dt.dtype]]


def not_implemented(what: str, d: dt.dtype) -> NotImplementedError:
    """PyTorch's words for a type that an operator does not take."""
    return NotImplementedError(f"\"{what}\" not implemented for '{d.scalar_name}'")


def floating(
    what: str, *, half: bool = True, ints: bool = True, complex: bool = False, wide: bool = True
) -> Promotion:
    """Promotion to a floating type. `what` is named where a type is refused. Integers become the
    default type; unless not `wide` they are computed in float64, so that one rounding remains."""

    def promote(op: Any, common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
        if common.category < dt.FLOAT:
            if not ints:
                raise not_implemented(what, common)
            default = dt.get_default_dtype()
            return dt.float64 if wide else default, default
        if common.is_complex and not complex:
            raise not_implemented(what, common)
        if not half and common.is_floating_point and common.itemsize < 4:
            raise not_implemented(what, common)
        return common, common

    return promote


def integral(what: str) -> Promotion:
    """No promotion, and integers only."""

    def promote(op: Any, common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
        if common.category != dt.INT:
            raise not_implemented(what, common)
        return common, common

    return promote


def scipy_kernel(name: str) -> Any:
    """The kernel that is SciPy's ufunc of this name."""

    def kernel(xp: Any, *arrays: Any, out: Any = None) -> Any:
        return getattr(special, name)(*arrays, out=out)

    kernel.__name__ = name
    return kernel


@vjp_helper
def kept(r: Any, *saved: Any) -> Any:
    """`r`. So a formula names what PyTorch's node saves, and therefore guards against writes,
    though the gradient is the same without it."""
    return r


@vjp_helper
def no_derivative_of(name: str) -> Any:
    """Stands in the formulas of an operator that has no derivative at all."""
    raise RuntimeError(f"derivative for aten::{name} is not implemented")


@vjp_helper
def no_derivative(what: str, *grads: Any) -> Any:
    """Stands in a formula for a derivative that PyTorch has not got, either."""
    raise NotImplementedError(f"the derivative for '{what}' is not implemented.")
