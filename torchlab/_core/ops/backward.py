"""Helpers that vjp formulas share: functions of tensors, made of operators."""

from __future__ import annotations

import cmath
import math
from typing import Any

from torchlab._core import layout
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._view_histories import in_pairs
from torchlab._core.tape import CopySlices, _copy_slices
from torchlab._core.tensor import Tensor


@vjp_helper
def conj_of(x: Any) -> Any:
    """The conjugate for complex tensors; others are given back as they are."""
    if isinstance(x, Tensor):
        return aten._conj_physical(x) if x._k.dtype.is_complex else x
    return x.conjugate() if isinstance(x, complex) else x


@vjp_helper
def sgn_backward(g: Any, x: Any, result: Any) -> Any:
    """The part of g across the direction z / |z|, over |z|; 0 at 0 and for real tensors."""
    if not x._k.dtype.is_complex:
        return aten.zeros_like(g)
    size = aten.abs(x)
    across = (g - result * result * aten.conj(g)) / (2 * size)
    return aten.masked_fill(across, size == 0, 0)


@vjp_helper
def masked(g: Any, mask: Any) -> Any:
    """g where the mask holds, else 0: never a product, so NaN does not leak."""
    return aten.where(mask, g, 0)


@vjp_helper
def extreme_backward(g: Any, worse: Any, equal: Any) -> Any:
    """g to the winner (to both if one is NaN), half of it to each on ties."""
    half = aten.where(equal, g / 2, g) if isinstance(equal, Tensor) else g
    return aten.where(worse, 0, half)


@vjp_helper
def floor_quotient(a: Any, b: Any) -> Any:
    return aten.div(a, b, rounding_mode="floor")


@vjp_helper
def pow_backward(g: Any, x: Any, exponent: Any) -> Any:
    """d(xᵉ)/dx for a number e; zero for e = 0 everywhere."""
    if exponent == 0:
        return aten.zeros_like(x)
    return g * conj_of(exponent * aten.pow(x, exponent - 1))


@vjp_helper
def pow_backward_self(g: Any, x: Any, exponent: Any) -> Any:
    """d(xᵉ)/dx for a tensor e (or a number, where promotion took that way)."""
    if not isinstance(exponent, Tensor):
        return pow_backward(g, x, exponent)
    r = g * conj_of(exponent * aten.pow(x, exponent - 1))
    return aten.where(exponent == 0, 0, r)


@vjp_helper
def pow_backward_exponent(g: Any, x: Any, exponent: Any, result: Any) -> Any:
    """d(xᵉ)/de; at base 0 it is 0 for e ≥ 0."""
    if isinstance(x, Tensor):
        safe = (x == 0) & _not_negative(exponent)
        if result._k.dtype.is_complex and not x._k.dtype.is_complex:
            x = aten.to(x, dtype=result._k.dtype)  # the logarithm of a negative number
        return aten.where(safe, 0, g * conj_of(result * aten.log(x)))
    if x == 0:
        return aten.where(_not_negative(exponent), 0, g * result * -math.inf)
    if isinstance(x, complex):
        return g * conj_of(result * cmath.log(x))
    return g * conj_of(result * (math.log(x) if x > 0 else math.nan))


def _not_negative(exponent: Any) -> Any:
    """exponent ≥ 0; of complex numbers the real part decides."""
    if isinstance(exponent, Tensor):
        exponent = aten.real(exponent)
    elif isinstance(exponent, complex):
        exponent = exponent.real
    return exponent >= 0


@vjp_helper
def sum_to(g: Any, shape: Any) -> Any:
    """Sum a gradient over what broadcasting had repeated."""
    return sum_to_shape(g, shape)


def sum_to_shape(g: Tensor, shape: Any) -> Tensor:
    """`g` summed to `shape`, which must be broadcastable to g's."""
    have = g._a.shape
    if have == tuple(shape):
        return g
    if not shape:
        return aten.sum(g)
    lead = len(have) - len(shape)
    dims = [
        *range(lead),
        *(lead + i for i, n in enumerate(shape) if n == 1 and have[lead + i] != 1),
    ]
    r = aten.sum(g, dims, True) if dims else g
    return aten.view(r, tuple(shape)) if lead else r


@vjp_helper
def cast_back(g: Any, dtype: Any, device: Any) -> Any:
    """A gradient in the type and place of what it belongs to."""
    return aten.to(g, dtype=dtype, device=device)


# ---- views --------------------------------------------------------------------------------------


def copy_slices(node: Any, g: Tensor) -> Any:
    """Backward of a recorded write into a view (see CopySlices)."""
    shape, base_geometry, k = node.base
    if k.dtype.is_complex != node.fn.k.dtype.is_complex:
        grads = copy_slices(*_in_real_numbers(node, g))
        return _as_complex(grads) if k.dtype.is_complex else grads
    size, strides, offset = node.view
    _, base_strides, base_offset = base_geometry
    full = aten.new_empty_strided(g, tuple(shape), dense_strides(shape, base_strides))
    full = aten.copy_(full, g)
    relative = offset - base_offset
    if tuple(full.stride()) != tuple(base_strides):  # the base itself has gaps: go through indices
        return copy_slices_by_index(node, g)
    part = aten.as_strided(full, size, strides, relative)
    inner = node.fn.apply(aten.clone(part))
    first = inner[0]
    if first is None:
        part.zero_()
    else:
        part.copy_(sum_to_shape(first, size))
    return (full if node.next[0] is not None else None, *inner[1:])


def _in_real_numbers(node: Any, g: Tensor) -> tuple[Any, Tensor]:
    """(node, gradient) where a real view of a complex base was written, or the other way round, as
    if both were real."""
    shape, base_geometry, k = node.base
    told = CopySlices()
    told.next, told.places = node.next, node.places
    if k.dtype.is_complex:
        pairs = in_pairs(base_geometry)
        told.fn, told.view, told.base = node.fn, node.view, (pairs[0], pairs, node.fn.k)
        return told, aten.view_as_real(aten.resolve_conj(g))
    told.fn, told.view, told.base = _OfPairs(node.fn, k), in_pairs(node.view), node.base
    return told, g


def _as_complex(grads: Any) -> Any:
    first, *rest = grads
    return (first if first is None else aten.view_as_complex(aten.contiguous(first)), *rest)


class _OfPairs:
    """The node of a write into a complex tensor, for gradients of (real, imaginary) pairs."""

    __slots__ = ("fn", "k")

    def __init__(self, fn: Any, k: Any) -> None:
        self.fn, self.k = fn, k

    def apply(self, g: Any) -> Any:
        first, *rest = self.fn.apply(aten.view_as_complex(aten.contiguous(g)))
        return (first if first is None else aten.view_as_real(aten.resolve_conj(first)), *rest)


def copy_slices_by_index(node: Any, g: Tensor) -> Any:
    """For bases whose memory is not dense: positions instead of strides."""
    shape, (_, base_strides, base_offset), _ = node.base
    size, strides, offset = node.view
    where = aten.strided_positions(tuple(shape), base_strides, base_offset, size, strides, offset)
    flat = aten.reshape(g, (-1,))
    inner = node.fn.apply(aten.reshape(aten.index_select(flat, 0, where), size))
    first = inner[0]
    fresh = aten.new_zeros(g, tuple(size)) if first is None else sum_to_shape(first, size)
    full = aten.index_copy(flat, 0, where, aten.reshape(fresh, (-1,)))
    return (aten.reshape(full, tuple(shape)) if node.next[0] is not None else None, *inner[1:])


def dense_strides(shape: Any, strides: Any) -> Any:
    dense = layout.is_non_overlapping_and_dense(tuple(shape), tuple(strides))
    return tuple(strides) if dense else layout.contiguous_strides(tuple(shape))


_copy_slices.append(copy_slices)
