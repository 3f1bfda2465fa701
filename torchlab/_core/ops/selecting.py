"""Elements chosen by their positions along a dimension: what maxima, sorting and medians differentiate
through."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._reduce import keep_reduced, lanes


@op("_take_along(Tensor self, int dim, Tensor index) -> Tensor", public=False, vjp={"self": "_put_along(g, dim, index, self.shape)"},
    meta=lambda a, dim, index: MetaArray(index.shape, a.dtype))  # fmt: skip
def take_along(xp: Any, a: Any, dim: int, index: Any) -> Any:
    """result[…, i, …] = self[…, index[…, i, …], …]; the other sizes are equal."""
    lane, dim = lanes(a, dim)
    index, _ = lanes(index, dim if index.ndim else 0)
    return xp.take_along_axis(lane, index, dim).reshape(() if a.ndim == 0 else index.shape)


@op("_put_along(Tensor self, int dim, Tensor index, int[] size) -> Tensor", public=False, vjp={"self": "_take_along(g, dim, index)"},
    meta=lambda a, dim, index, size: MetaArray(size, a.dtype))  # fmt: skip
def put_along(xp: Any, a: Any, dim: int, index: Any, size: Any) -> Any:
    """Zeros with self's elements added at `index`: the gradient of `_take_along`."""
    if not size:
        return a.reshape(())
    r = xp.zeros(size, a.dtype)
    if index.shape[dim] == 1:
        xp.put_along_axis(r, index, a, dim)
        return r
    where = [np.arange(n).reshape([-1 if i == d else 1 for i in range(a.ndim)]) for d, n in enumerate(a.shape)]
    where[dim] = index
    xp.add.at(r, tuple(where), a)
    return r


@vjp_helper
def selected_backward(g: Any, dim: int, index: Any, shape: Any, keepdim: bool) -> Any:
    """The gradient of a reduction that gives one of the elements: to that element."""
    dim = dim % max(len(shape), 1)
    return aten._put_along(keep_reduced(g, shape, dim, keepdim), dim, keep_reduced(index, shape, dim, keepdim), tuple(shape))


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
