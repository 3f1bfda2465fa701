"""Sorting, the largest and the k-th, medians and modes. NaN counts as larger than all numbers.

Every sort here is stable, also a descending one: equal elements stay in their order.
Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.sort.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.base import empty_strided
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import writes
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._reduce import (
    INT64,
    is_float,
    lanes,
    no_identity,
    reduced_shape,
    row_major,
    scalar_name,
    squeeze,
)
from torchlab._core.ops.kernels import exact
from torchlab._core.tape import edge_of

_SELECTED = "gather_backward(g0, self.shape, dim, result1)"


def order(xp: Any, a: Any, dim: int, descending: bool) -> Any:
    """The positions along `dim` that sort `a`, stably."""
    if not descending:
        return xp.argsort(a, axis=dim, kind="stable")
    backwards = xp.argsort(xp.flip(a, dim), axis=dim, kind="stable")
    return a.shape[dim] - 1 - xp.flip(backwards, dim)


def _strides(a: Any) -> Any:
    """The memory format of a sort's results: the operand's, made dense."""
    if a.flags.c_contiguous:
        return None
    return layout.empty_like_strides(a.shape, tuple(s // a.itemsize for s in a.strides))


def _like(a: Any, r: Any) -> Any:
    strides = _strides(a)
    if strides is None or not isinstance(r, np.ndarray):
        return row_major(r).reshape(a.shape)
    made = empty_strided(a.shape, r.dtype, strides)
    made[...] = r
    return made


def _sort(xp: Any, a: Any, dim: int, descending: bool) -> Any:
    lane, dim = lanes(a, dim)
    if a.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    where = order(xp, lane, dim, descending)
    return _like(a, xp.take_along_axis(lane, where, dim)), _like(a, where)


def _sort_meta(a: Any, *, dim: int = -1, **_: Any) -> Any:
    layout.wrap_dim(dim, a.ndim)
    strides = _strides(a)
    return MetaArray(a.shape, a.dtype, strides), MetaArray(a.shape, INT64, strides)


@op(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    public=False,
    tags=("out_same_dtype",),
    vjp={"self": _SELECTED},
    grad_name="SortBackward0",
    meta=lambda a, dim=-1, descending=False: _sort_meta(a, dim=dim),
)
def sort_(xp: Any, a: Any, dim: int, descending: bool) -> Any:
    """Sorted values and where they were."""
    return _sort(xp, a, dim, descending)


@op(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor "
    "values, Tensor indices)",
    public=False,
    vjp={"self": _SELECTED},
    grad_name="SortBackward1",
    meta=lambda a, stable=None, dim=-1, descending=False: _sort_meta(a, dim=dim),
)
def sort_stable(xp: Any, a: Any, stable: Any, dim: int, descending: bool) -> Any:
    """As `sort`, which is stable anyhow."""
    return _sort(xp, a, dim, descending)


@face("sort")
def sort(
    self: Any, dim: int = -1, descending: bool = False, *, stable: Any = None, out: Any = None
) -> Any:
    """(values, indices) in ascending or descending order along a dimension; NaN as the largest."""
    if out is not None:
        return sort_.out(self, dim, descending, out=out)
    if stable is None:
        return sort_.call(self, dim, descending)
    return sort_stable.call(self, stable=stable, dim=dim, descending=descending)


@face("argsort")
def argsort(self: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """The positions along a dimension that sort the tensor."""
    edge_of(self)  # a view that may not be used is refused
    return sort_stable.call(self.detach(), stable=stable, dim=dim, descending=descending)[1]


@composite("msort(Tensor self) -> Tensor", out=True, tags=("out_same_dtype",))
def msort(self: Any) -> Any:
    """Sorted along the first dimension."""
    return sort_.call(self, 0, False)[0]


def _topk_meta(a: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    shape = _topk_shape(a, k, dim)
    return MetaArray(shape, a.dtype), MetaArray(shape, INT64)


def _topk_shape(a: Any, k: int, dim: int) -> tuple[int, ...]:
    d = layout.wrap_dim(dim, a.ndim)
    if not 0 <= k <= (a.shape[d] if a.ndim else 1):
        raise RuntimeError("selected index k out of range")
    return tuple(k if i == d else n for i, n in enumerate(a.shape))


@op(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor "
    "values, Tensor indices)",
    out=True,
    tags=("out_same_dtype",),
    vjp={"self": _SELECTED},
    meta=_topk_meta,
)
def topk(xp: Any, a: Any, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    """(values, indices) of the k largest or smallest along a dimension, best first; of equals the
    first."""
    shape = _topk_shape(a, k, dim)
    if a.dtype.kind in "cb":
        raise RuntimeError(
            f" topk does not support {'bool' if a.dtype.kind == 'b' else 'complex'} dtypes on CPU"
        )
    lane, d = lanes(a, dim)
    n = lane.shape[d]
    nan = lane.dtype.kind == "f" and bool(xp.isnan(lane).any())
    if 0 < k and n > 1024 and k * 8 <= n and not nan:
        found = _best_places(xp, lane, k, d, largest)
        by_size = order(xp, xp.take_along_axis(lane, found, d), d, largest)
        where = xp.take_along_axis(found, by_size, d)
    else:
        where = order(xp, lane, d, largest)[(slice(None),) * d + (slice(0, k),)]
    values = row_major(xp.take_along_axis(lane, where, d))
    if not shape:  # the one element, also where k is 0
        return a.copy(), xp.zeros((), where.dtype)
    return values.reshape(shape), row_major(where).reshape(shape)


def _best_places(xp: Any, lane: Any, k: int, d: int, largest: bool) -> Any:
    """The positions of the k best, ascending, from a partition instead of a sort: all that are
    better than the k-th, and the first of those that equal it."""
    rows = xp.moveaxis(lane, d, -1)
    n = rows.shape[-1]
    at = n - k if largest else k - 1
    limit = xp.partition(rows, at, axis=-1)[..., at : at + 1]
    better = rows > limit if largest else rows < limit
    equal = rows == limit
    wanted = k - xp.count_nonzero(better, axis=-1, keepdims=True)
    chosen = better | (equal & (xp.cumsum(equal, axis=-1) <= wanted))
    places = xp.nonzero(chosen)[-1].reshape(*rows.shape[:-1], k)
    return xp.moveaxis(places, -1, d)


def _chosen_meta(a: Any, dim: int, keepdim: bool) -> Any:
    shape = reduced_shape(a, dim, keepdim)
    return MetaArray(shape, a.dtype), MetaArray(shape, INT64)


def _chosen(xp: Any, a: Any, where: Any, d: int, keepdim: bool) -> Any:
    """(values, indices) at `where`, which has size 1 along d."""
    lane = a.reshape(1) if a.ndim == 0 else a
    values = row_major(xp.take_along_axis(lane, where, d))
    return squeeze(values, d, keepdim, a.ndim), squeeze(row_major(where), d, keepdim, a.ndim)


@op(
    "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor "
    "indices)",
    out=True,
    tags=("out_same_dtype", "out_apart"),
    vjp={"self": "selected_backward(g0, dim, result1, self.shape, keepdim)"},
    meta=lambda a, k, dim=-1, keepdim=False: _chosen_meta(a, dim, keepdim),
)
def kthvalue(xp: Any, a: Any, k: int, dim: int, keepdim: bool) -> Any:
    """(value, index) of the k-th smallest (from 1) along a dimension."""
    lane, d = lanes(a, dim)
    no_identity("kthvalue", lane.shape, d)
    if not 1 <= k <= lane.shape[d]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}")
    if a.dtype.kind in "cb":
        raise NotImplementedError(f"\"kthvalue_cpu\" not implemented for '{scalar_name(a)}'")
    return _chosen(
        xp, a, order(xp, lane, d, False)[(slice(None),) * d + (slice(k - 1, k),)], d, keepdim
    )


# ---- medians and modes --------------------------------------------------------------------------


def _median(name: str) -> Any:
    skip = name == "nanmedian"

    @op(
        f"{name}(Tensor self) -> Tensor",
        public=False,
        meta=lambda a: MetaArray((), a.dtype),
        tags=("reduction", "real_gradient"),
        vjp={"self": "evenly_backward(g, self, result)"},
        grad_name=f"{name.title()}Backward0",
    )
    def full(xp: Any, a: Any) -> Any:
        """The median of all elements."""
        if a.dtype.kind in "cb" and a.size == 0:
            return xp.asarray(np.nan, a.dtype)
        _check(a)
        flat = a.reshape(-1)
        if is_float(a.dtype):
            nan = xp.isnan(flat)
            if nan.any():
                if not skip:
                    return xp.asarray(np.nan, a.dtype)
                flat = flat[~nan]
        if flat.size == 0:
            return xp.asarray(np.nan if is_float(a.dtype) else np.iinfo(a.dtype).min, a.dtype)
        k = (flat.size - 1) // 2
        return xp.partition(flat, k)[k]

    @op(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        public=False,
        vjp={"self": "selected_backward(g0, dim, result1, self.shape, keepdim)"},
        tags=("reduction", "out_same_dtype"),
        meta=lambda a, dim, keepdim=False: _chosen_meta(a, dim, keepdim),
        grad_name=f"{name.title()}Backward1",
    )
    def along(xp: Any, a: Any, dim: int, keepdim: bool) -> Any:
        """The median along a dimension and where it is."""
        lane, d = lanes(a, dim)
        no_identity("median", lane.shape, d)
        _check(a)
        n = lane.shape[d]
        k: Any = (n - 1) // 2
        if is_float(lane.dtype):
            nans = xp.isnan(lane).sum(axis=d, keepdims=True)
            k = xp.maximum(n - nans - 1, 0) // 2 if skip else xp.where(nans > 0, n - nans, k)
        k = xp.broadcast_to(k, [1 if i == d else m for i, m in enumerate(lane.shape)])
        return _chosen(xp, a, xp.take_along_axis(order(xp, lane, d, False), k, d), d, keepdim)

    def choose(self: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is None:
            return full.out(self, out=out) if out is not None else full.call(self)
        if out is not None:
            return along.out(self, dim, keepdim, out=out)
        return along.call(self, dim, keepdim)

    exact(full.kernel)
    choose.__doc__ = "The median, of two the lower one; over `dim`: (values, indices). " + (
        "NaN does not count." if skip else "NaN if there is one."
    )
    face(name)(choose)
    return full, along


def _check(a: Any) -> None:
    if a.dtype.kind in "cb":
        raise NotImplementedError(f"\"median_cpu\" not implemented for '{scalar_name(a)}'")


median_full, median_along = _median("median")
nanmedian_full, nanmedian_along = _median("nanmedian")


@op(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    out=True,
    vjp={"self": "selected_backward(g0, dim, result1, self.shape, keepdim)"},
    tags=("reduction", "real_gradient", "out_same_dtype"),
    meta=lambda a, dim=-1, keepdim=False: _chosen_meta(a, dim, keepdim),
)
def mode(xp: Any, a: Any, dim: int, keepdim: bool) -> Any:
    """(value, index) of the most frequent element along a dimension: the smallest such, its last
    place."""
    lane, d = lanes(a, dim)
    no_identity("mode", lane.shape, d)
    if a.dtype.kind == "c":
        if a.ndim == 0 or a.size == 0:  # nothing to compare
            shape = reduced_shape(a, dim, keepdim)
            return a.reshape(shape).copy() if a.ndim == 0 else xp.empty(shape, a.dtype), xp.zeros(
                shape, INT64
            )
        raise NotImplementedError(f"\"mode_cpu\" not implemented for '{scalar_name(a)}'")
    by_size = order(xp, lane, d, False)
    values = xp.moveaxis(xp.take_along_axis(lane, by_size, d), d, 0)
    place = xp.arange(values.shape[0]).reshape((-1,) + (1,) * (values.ndim - 1))
    start = xp.zeros(values.shape, np.int64)
    start[1:] = xp.where(values[1:] != values[:-1], place[1:], 0)
    length = place - xp.maximum.accumulate(start, axis=0)
    best = xp.moveaxis(length.argmax(axis=0, keepdims=True), 0, d)
    return _chosen(xp, a, xp.take_along_axis(by_size, best, d), d, keepdim)


# ---- quantiles ----------------------------------------------------------------------------------

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    self: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, skip: bool, out: Any
) -> Any:
    name = "nanquantile" if skip else "quantile"
    if self._a.size == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if self._k.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if isinstance(q, (int, float, np.number)):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = aten.scalar_tensor(float(q), dtype=self.dtype, device=self.device)
    elif q._a.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    elif q._k.dtype is not self._k.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    elif not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    n_dims = self._a.ndim
    one = q._a.ndim == 0
    d = 0 if dim is None else layout.wrap_dim(dim, n_dims)
    x = aten.reshape(self, (-1,)) if dim is None or n_dims == 0 else aten.movedim(self, d, -1)
    values = sort_.call(x, -1, False)[0]
    n = values._a.shape[-1]
    nan = aten.isnan(aten.detach(values))
    q = aten.reshape(q, (-1,))
    last = aten.to(n - 1 - aten.sum(nan, -1, True), dtype=values.dtype) if skip else float(n - 1)
    ranks = aten.clamp_min(q * last, 0.0)
    if not skip:
        ranks = aten.where(aten.any(nan, -1, True), float(n - 1), ranks)
    ranks = aten.expand(ranks, (*values._a.shape[:-1], q._a.shape[0]))
    if interpolation in ("lower", "higher", "nearest"):
        rounded = {"lower": aten.floor, "higher": aten.ceil, "nearest": aten.round}[interpolation](
            ranks
        )
        r = aten.gather(values, -1, aten.to(rounded, dtype=dt.int64))
    else:
        below = aten.to(aten.detach(ranks), dtype=dt.int64)
        above = aten.to(aten.ceil(aten.detach(ranks)), dtype=dt.int64)
        weight = aten.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
        r = aten.lerp(aten.gather(values, -1, below), aten.gather(values, -1, above), weight)
    if not one:
        r = aten.movedim(r, -1, 0)
        if keepdim:
            r = aten.reshape(r, (r._a.shape[0], *_kept_shape(self, dim, d)))
    else:
        r = aten.squeeze_(r, -1)
        if keepdim:
            r = aten.reshape(r, _kept_shape(self, dim, d))
    if out is None:
        return r
    if out._exotic or out._level or r._level:
        return aten.copy_(out.resize_(r.shape) if out._a.shape != r._a.shape else out, r)
    return writes.copy_out(quantile, out, r, ())


def _kept_shape(x: Any, dim: Any, d: int) -> tuple[int, ...]:
    return tuple(1 if dim is None or i == d else n for i, n in enumerate(x._a.shape))


@face("quantile", autocast="float32:cpu")
def quantile(
    self: Any,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
) -> Any:
    """The q-quantiles (0 ≤ q ≤ 1, a number or a vector) of all elements or along `dim`."""
    return _quantile(self, q, dim, keepdim, interpolation, False, out)


@face("nanquantile", autocast="float32:cpu")
def nanquantile(
    self: Any,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
) -> Any:
    """As `quantile`; NaN does not count."""
    return _quantile(self, q, dim, keepdim, interpolation, True, out)
