"""Gradients of reductions that choose: maxima, medians, the k-th."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._reduce import keep_reduced


@vjp_helper
def selected_backward(g: Any, dim: int, index: Any, shape: Any, keepdim: bool) -> Any:
    """The gradient of a reduction that gives one of the elements: to that element."""
    dim = dim % max(len(shape), 1)
    g, index = keep_reduced(g, shape, dim, keepdim), keep_reduced(index, shape, dim, keepdim)
    return aten.scatter_add(aten.new_zeros(g, tuple(shape)), dim, index, g)


@vjp_helper
def evenly_backward(g: Any, x: Any, value: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of an extreme value: shared by all elements that equal it."""
    shape = x._a.shape
    kept = keep_reduced(value, shape, dim, keepdim)
    mask = x == kept
    if x._k.dtype.is_floating_point:
        mask = mask | (aten.isnan(x) & aten.isnan(kept))
    count = aten.sum(mask, dim, True) if dim is not None else aten.sum(mask)
    return aten.where(mask, keep_reduced(g, shape, dim, keepdim) / count, 0)


@vjp_helper
def aminmax_backward(g0: Any, g1: Any, x: Any, low: Any, high: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of (minimum, maximum), of which one may be missing."""
    a = evenly_backward(g0, x, low, dim, keepdim) if g0 is not None else None
    b = evenly_backward(g1, x, high, dim, keepdim) if g1 is not None else None
    return a if b is None else b if a is None else a + b
