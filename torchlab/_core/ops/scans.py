"""Running sums, maxima and minima along a dimension, and differences.

Running sums of float32 are kept in float64, as PyTorch does on the CPU.
Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.cumsum.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._reduce import (
    FLOAT32,
    INT64,
    integers_to_int64,
    is_half,
    lanes,
    no_identity,
    row_major,
    scalar_name,
)

_WIDE = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


def _running_sum(xp: Any, lane: Any, dim: int, made: np.dtype) -> Any:
    wide = FLOAT32 if is_half(made) else _WIDE.get(made.kind, made)
    r = xp.cumsum(lane.astype(FLOAT32) if is_half(lane.dtype) else lane, axis=dim, dtype=wide)
    if r.size and wide.kind in "fc" and not r[(slice(None),) * dim + (slice(1),)].all():
        r += wide.type(0)  # PyTorch's sums begin with 0, and 0 + -0.0 is 0.0
    return r.astype(made, copy=False)


@op(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inplace=True,
    out=True,
    half=False,
    vjp={"self": "cast_back(cumsum_backward(g, dim), self.dtype, self.device)"},
    meta=lambda a, dim, dtype=None: MetaArray(a.shape, integers_to_int64(a, dtype)),
    autocast="float32:accelerator",
)
def cumsum(xp: Any, a: Any, dim: int, dtype: Any) -> Any:
    """The sum of all elements up to each one along a dimension."""
    lane, d = lanes(a, dim)
    made = integers_to_int64(a, dtype)
    if made.kind == "b" and a.ndim and a.size:
        raise NotImplementedError("\"cumsum_out_cpu\" not implemented for 'Bool'")
    if a.ndim == 0:
        return a.astype(made)
    return row_major(_running_sum(xp, lane, d, made))


@op(
    "_reversed_cumsum(Tensor self, int dim) -> Tensor",
    public=False,
    half=False,
    vjp={"self": "cumsum(g, dim)"},
    meta=lambda a, dim: MetaArray(a.shape, a.dtype),
)
def reversed_cumsum(xp: Any, a: Any, dim: int) -> Any:
    """The sum of all elements from each one on: the gradient of cumsum."""
    lane, dim = lanes(a, dim)
    r = xp.flip(_running_sum(xp, xp.flip(lane, dim), dim, lane.dtype), dim)
    return r.copy(order="C").reshape(a.shape)


@vjp_helper
def cumsum_backward(g: Any, dim: int) -> Any:
    """The gradient of cumsum; where nothing was added up it is g itself, as in PyTorch."""
    shape = g._a.shape
    return g if g._a.size <= 1 or shape[dim] == 1 else aten._reversed_cumsum(g, dim)


def _running_extreme(name: str, ufunc: str, doc: str) -> Any:
    @op(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        out=True,
        tags=("out_same_dtype", "real_gradient"),
        doc=doc,
        vjp={"self": "kept(gather_backward(g0, self.shape, dim, result1), self)"},
        meta=lambda a, dim: (MetaArray(a.shape, a.dtype), MetaArray(a.shape, INT64)),
    )
    def kernel(xp: Any, a: Any, dim: int) -> Any:
        lane, dim = lanes(a, dim)
        if a.dtype.kind == "c":
            if a.ndim == 0 or a.size == 0:  # nothing to compare
                return a.copy(order="C"), xp.zeros(a.shape, INT64)
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{scalar_name(a)}'")
        if a.size:
            no_identity(name, lane.shape, dim)
        values = getattr(xp, ufunc).accumulate(lane, axis=dim)
        place = xp.arange(lane.shape[dim]).reshape(
            [-1 if i == dim else 1 for i in range(lane.ndim)]
        )
        leads = (lane == values) | (lane != lane)  # the last of equals; NaN, once there, stays
        where = xp.maximum.accumulate(xp.where(leads, place, 0), axis=dim)
        return row_major(values).reshape(a.shape), row_major(where).reshape(a.shape)

    return kernel


cummax = _running_extreme(
    "cummax", "maximum", "The maximum up to each element along a dimension, and where it is last."
)
cummin = _running_extreme(
    "cummin", "minimum", "The minimum up to each element along a dimension, and where it is last."
)


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    out=True,
)
def diff(self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    """The n-th differences of neighbours along a dimension, after putting `prepend` before and
    `append` behind; bools differ or not."""
    if self._a.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = layout.wrap_dim(dim, self._a.ndim)
    for extra in (prepend, append):
        if extra is not None and extra._a.ndim != self._a.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    parts = [x for x in (prepend, self, append) if x is not None]
    if len(parts) > 1 and n:
        self = aten.cat(parts, dim)
    size = self._a.shape[dim]
    if n == 0:
        return aten.clone(self)
    for _ in range(min(n, size)):
        m = self._a.shape[dim] - 1
        if m < 0:
            break
        later, earlier = aten.narrow(self, dim, 1, m), aten.narrow(self, dim, 0, m)
        self = later ^ earlier if self._a.dtype == np.bool_ else later - earlier
    return self
