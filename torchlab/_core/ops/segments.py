"""Reductions over segments of a dimension.

Source of the semantics: `torch.segment_reduce` of PyTorch 2.13 (it has no page of its own)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.factories import transformed
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import alias, aten, vjp_helper

_UFUNC = {"sum": "add", "mean": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}
_START = {"sum": 0.0, "mean": 0.0, "max": -math.inf, "min": math.inf, "prod": 1.0}


def _bounds(lengths: Any, offsets: Any) -> tuple[Any, Any]:
    """(first, behind the last) of every segment, shape (…, segments)."""
    if offsets is not None:
        offsets = np.asarray(offsets)
        return offsets[..., :-1], offsets[..., 1:]
    ends = np.cumsum(np.asarray(lengths), -1)
    return ends - lengths, ends


def _owners(shape: Any, axis: int, lengths: Any, offsets: Any) -> tuple[Any, Any]:
    """(number of the segment that each row of data.reshape(rows · size, −1) is in, −1 for none;
    elements in each segment). Segments are numbered through all rows."""
    first, behind = _bounds(lengths, offsets)
    rows, size, n = math.prod(shape[:axis]), shape[axis], first.shape[-1]
    first, behind = first.reshape(rows, n), behind.reshape(rows, n)
    counts = np.maximum(behind - first, 0)
    at = np.arange(size)
    owner = np.full((rows, size), -1, np.int64)
    for r in range(rows) if n else ():
        segment = np.searchsorted(behind[r], at, side="right")
        inside = (segment < n) & (at >= first[r, np.minimum(segment, n - 1)])
        owner[r, inside] = r * n + segment[inside]
    return owner.ravel(), counts.ravel()


def _shape(shape: Any, axis: int, lengths: Any, offsets: Any) -> tuple[int, ...]:
    n = lengths.shape[-1] if offsets is None else offsets.shape[-1] - 1
    return (*shape[:axis], n, *shape[axis + 1 :])


@op(
    "_segmented(Tensor data, str reduce, Tensor? lengths, Tensor? offsets, int axis, Scalar?"
    " initial) -> Tensor",
    public=False,
    vjp={
        "data": "segment_reduce_backward(g, result, data, reduce, lengths, offsets, axis, initial)"
    },
    grad_name="SegmentReduceBackward0",
    meta=lambda a, reduce, lengths, offsets, axis, initial: MetaArray(
        _shape(a.shape, axis, lengths, offsets), a.dtype
    ),
)
def _segmented(
    xp: Any, a: Any, reduce: str, lengths: Any, offsets: Any, axis: int, initial: Any
) -> Any:
    """Segments lie one after the other, so that one `reduceat` does all that are not empty."""
    owner, counts = _owners(a.shape, axis, lengths, offsets)
    flat = a.reshape(owner.size, math.prod(a.shape[axis + 1 :]))
    start = _START[reduce] if initial is None else float(initial)
    r = xp.full((counts.size, flat.shape[1]), start, a.dtype)
    kept = owner >= 0
    if kept.any():
        owner = owner[kept]
        firsts = np.flatnonzero(np.diff(owner, prepend=-1))
        ufunc = getattr(xp, _UFUNC[reduce])
        found = ufunc.reduceat(flat[kept], firsts, axis=0)
        r[owner[firsts]] = ufunc(r[owner[firsts]], found)
    if reduce == "mean":
        n = counts[:, None]
        empty = math.nan if initial is None else start
        r = xp.where(n == 0, empty, r / np.maximum(n, 1)).astype(a.dtype)
    return r.reshape(_shape(a.shape, axis, lengths, offsets))


@vjp_helper
def segment_reduce_backward(
    g: Any, result: Any, data: Any, reduce: str, lengths: Any, offsets: Any, axis: int, initial: Any
) -> Any:
    """To every element from its segment; extremes share among the elements that equal them."""
    shape = data._a.shape
    places = [None if x is None else x.cpu().numpy() for x in (lengths, offsets)]
    owner, counts = _owners(shape, axis, *places)
    inner = math.prod(shape[axis + 1 :])
    device = data._k.device
    index = aten.to(aten.from_numpy(np.maximum(owner, 0)), device=device)
    outside = aten.to(aten.from_numpy(owner < 0), device=device)

    def spread(x: Any) -> Any:
        """One value for each element, (…, segments, …) → data's shape."""
        rows = aten.index_select(aten.reshape(x, (counts.size, inner)), 0, index)
        return aten.reshape(aten.masked_fill(rows, aten.unsqueeze(outside, 1), 0), shape)

    def reduced(x: Any) -> Any:
        return aten._segmented(x, "sum", lengths, offsets, axis, None)

    if counts.size == 0:
        return aten.zeros_like(data)
    if reduce == "sum":
        return spread(g)
    if reduce == "mean":
        n = aten.from_numpy(np.maximum(counts, 1)).to(dtype=g._k.dtype, device=device)
        return spread(aten.reshape(aten.reshape(g, (counts.size, inner)) / n[:, None], g._a.shape))
    if reduce == "prod":
        return spread(g) * _others(data, owner, counts, inner, initial)
    chosen = aten.to(data == spread(aten.detach(result)), g._k.dtype)
    return chosen * spread(g / aten.clamp(reduced(chosen), min=1))


def _others(data: Any, owner: Any, counts: Any, inner: int, initial: Any) -> Any:
    """The product of the other elements of the same segment, also where elements are 0."""
    device, width = data._k.device, max(int(counts.max(initial=0)), 1)
    kept = np.flatnonzero(owner >= 0)
    first = np.flatnonzero(np.diff(owner[kept], prepend=-1))
    lead = np.zeros(counts.size, np.int64)
    lead[owner[kept][first]] = first
    cells = owner[kept] * width + np.arange(kept.size) - lead[owner[kept]]
    cells_, kept_ = (aten.to(aten.from_numpy(x), device=device) for x in (cells, kept))
    rows = aten.reshape(data, (owner.size, inner))
    grid = aten.new_ones(data, (counts.size * width, inner))
    grid = aten.index_copy(grid, 0, cells_, aten.index_select(rows, 0, kept_))
    grid = aten.reshape(grid, (counts.size, width, inner))
    edge = aten.new_ones(data, (counts.size, 1, inner))

    def before(x: Any) -> Any:
        return aten.cat([edge, aten.narrow(aten.cumprod(x, 1), 1, 0, width - 1)], 1)

    others = before(grid) * aten.flip(before(aten.flip(grid, (1,))), (1,))
    if initial is not None:
        others = others * initial
    found = aten.index_select(aten.reshape(others, (counts.size * width, inner)), 0, cells_)
    empty = aten.new_zeros(data, (owner.size, inner))
    return aten.reshape(aten.index_copy(empty, 0, kept_, found), data._a.shape)


@face("segment_reduce", method=False)
def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Any:
    """The sum, mean, max, min or prod of each segment of a dimension. `lengths` (or `offsets`, with
    one more entry) says where segments lie; it has a row for each index of the dimensions before
    `axis`. `initial` is what an empty segment gives and every other starts from. Lengths must cover
    the dimension, unless `unsafe`."""
    if SLOW:
        seen = transformed(segment_reduce.body, locals(), "lengths", "offsets")
        if seen is not NotImplemented:
            return seen
    axis = layout.wrap_dim(axis, data._a.ndim)
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in _UFUNC:
        raise RuntimeError(
            f"segment_reduce(): reduce argument must be either sum, prod, mean, max or min, got"
            f" {reduce}"
        )
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    where = lengths if lengths is not None else offsets
    if where is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if where._k.dtype not in (dt.int32, dt.int64):
        raise NotImplementedError(
            "segment_reduce(): lengths and offsets must be int32 or int64; not implemented for"
            f" '{where._k.dtype.scalar_name}'"
        )
    if data._a.ndim < max(where._a.ndim, 1):
        raise RuntimeError(
            f"segment_reduce(): data of shape {list(data._a.shape)} has fewer dimensions than"
            f" lengths or offsets of shape {list(where._a.shape)}"
        )
    if axis != where._a.ndim - 1:
        raise RuntimeError(
            "segment_reduce(): Expected axis to be the last dimension of lengths but got"
            f" {axis} for shape {list(where._a.shape)}."
        )
    if where._a.shape[:-1] != data._a.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): lengths or offsets of shape {list(where._a.shape)} do not match"
            f" data of shape {list(data._a.shape)} in the dimensions before axis {axis}"
        )
    if not unsafe and lengths is not None:
        _check_lengths(lengths, data._a.shape[axis])
    if data._k.dtype.category != dt.FLOAT:
        raise NotImplementedError(
            f"\"_segment_reduce_cpu\" not implemented for '{data._k.dtype.scalar_name}'"
        )
    if lengths is not None:
        offsets = None
    return aten._segmented(data, reduce, lengths, offsets, axis, initial)


alias("_segment_reduce", "segment_reduce")


def _check_lengths(lengths: Any, size: int) -> None:
    if lengths._k.device.type == "meta":
        return
    a = lengths.cpu().numpy()
    if a.size == 0:
        raise RuntimeError("segment_reduce(): lengths must not be empty unless unsafe=True")
    if a.min() < 0:
        raise RuntimeError("segment_reduce(): lengths contains negative value!")
    if (a.sum(-1) != size).any():
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to"
            f" data.size(lengths.dim()-1) = {size} when !unsafe."
        )
