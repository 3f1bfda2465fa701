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
def evenly_backward(g: Any, x: Any, value: Any) -> Any:
    """The gradient of an extreme or median of all elements: shared by those that equal it. NaN, if
    it is the value, equals NaN."""
    mask = x == value
    if x._k.dtype.is_floating_point:
        mask = mask | (aten.isnan(x) & aten.isnan(value))
    return aten.where(mask, g / aten.sum(mask), 0)


@vjp_helper
def shared_backward(g: Any, x: Any, value: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of an extreme over dimensions: shared by the elements that equal it. As nothing
    equals NaN, its neighbours get NaN, too."""
    shape = x._a.shape
    mask = x == keep_reduced(value, shape, dim, keepdim)
    count = aten.sum(mask, dim, True) if shape else aten.sum(mask)
    return keep_reduced(g, shape, dim, keepdim) / count * mask


@vjp_helper
def aminmax_backward(g0: Any, g1: Any, x: Any, low: Any, high: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of (minimum, maximum), of which one may be missing."""
    a = shared_backward(g0, x, low, dim, keepdim) if g0 is not None else None
    b = shared_backward(g1, x, high, dim, keepdim) if g1 is not None else None
    return a if b is None else b if a is None else a + b
