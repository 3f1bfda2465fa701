"""Reading and writing at index tensors and masks: index, index_put, masked_select, masked_scatter,
nonzero, take, put.

Source of the semantics:
https://docs.pytorch.org/docs/2.13/torch.html#indexing-slicing-joining-mutating-ops
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._places import (
    Places,
    add_at,
    elements,
    in_order,
    index_arrays,
    scalar_name,
    written,
)
from torchlab._core.ops.kernels import meta_like, number


def _index_meta(a: Any, indices: Any) -> Any:
    if any(x is not None and x.dtype.kind in "bu" for x in indices):
        raise NotImplementedError(
            "index: the size of a result chosen by a mask depends on data: not on the meta device"
        )
    arrays = [*indices, *(None,) * (a.ndim - len(indices))]
    given = [i for i, x in enumerate(arrays) if x is not None]
    common = layout.broadcast_shapes(*[arrays[i].shape for i in given], op="index")
    at = (given[0] if given else 0) if not given or given[-1] - given[0] == len(given) - 1 else 0
    kept = [n for n, x in zip(a.shape, arrays, strict=True) if x is None]
    return MetaArray((*kept[:at], *common, *kept[at:]), a.dtype)


def _row_major(a: Any) -> bool:
    """Contiguous, with the usual strides also where a size of 1 leaves them free: the result's
    strides follow the source's there."""
    return a.flags.c_contiguous and (
        1 not in a.shape or elements(a) == layout.contiguous_strides(a.shape)
    )


@op(
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    public=False,
    half=False,
    meta=_index_meta,
    vjp={"self": "index_backward(g, self.shape, indices)"},
    grad_name="IndexBackward0",
)
def index(xp: Any, a: Any, indices: Any) -> Any:
    """The elements at integer tensors and masks, one per dimension; None keeps a dimension."""
    if len(indices) == 1 and a.ndim and _row_major(a) and (x := indices[0]) is not None:
        if x.dtype.kind == "i" and x.itemsize >= 4:
            if not x.flags.c_contiguous:
                x = x.copy(order="C") if x.ndim < 2 else x
            if x.flags.c_contiguous and a.size and x.size:
                try:
                    return a.take(x, axis=0)
                except IndexError:
                    pass
        elif x.dtype.kind == "b" and x.shape == a.shape and xp is np:
            return a[x]
    p = Places(a.shape, index_arrays(xp, a.shape, indices))
    p.check()
    if 0 in p.shape:
        return xp.empty(p.shape, a.dtype)
    return in_order(xp, a[p.key], p.strides(elements(a)))


@op(
    "index_backward(Tensor grad_output, SymInt[] input_sizes, Tensor?[] indices) -> Tensor",
    public=False,
    half=False,
    vjp={"grad_output": "index(g, indices)"},
    meta=lambda g, shape, indices: MetaArray(shape, g.dtype),
)
def index_backward(xp: Any, g: Any, shape: Any, indices: Any) -> Any:
    """Zeros to which g is added at the indices."""
    r = xp.zeros(tuple(shape), g.dtype)
    p = Places(r.shape, index_arrays(xp, r.shape, indices))
    if 0 in p.shape:
        return r
    if (
        any(x is not None and x.dtype.kind in "bu" for x in indices)
        and sum(x is not None for x in indices) == 1
    ):
        r[p.key] = g  # a mask names no place twice
    else:
        p.add(xp, r, g)
    return r


@vjp_helper
def index_put_backward(g: Any, indices: Any, accumulate: bool) -> Any:
    """What was overwritten gets no gradient."""
    return g if accumulate else aten.index_put(g, indices, aten.new_zeros(g, ()), False)


@op(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    inplace=True,
    half=False,
    meta=lambda a, indices, values, accumulate: meta_like(a),
    vjp={"self": "index_put_backward(g, indices, accumulate)", "values": "index(g, indices)"},
    autocast="promote:accelerator",
)
@written
def index_put(xp: Any, a: Any, indices: Any, values: Any, accumulate: bool = False) -> None:
    """self with `values` at `indices` (a tuple of tensors, one per dimension); `accumulate`
    adds.
    """
    p = Places(a.shape, index_arrays(xp, a.shape, indices))
    one_mask = (
        values.size == 1
        and not accumulate
        and sum(x is not None for x in indices) == 1
        and any(x is not None and x.dtype.kind in "bu" for x in indices)
    )
    if values.dtype != a.dtype:
        if one_mask:
            values = number(values.reshape(()).item(), a.dtype)
            p.check()
            a[p.key] = values
            return
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{scalar_name(a)} for the destination and {scalar_name(values)} for the source."
        )
    if not _fits(values.shape, p.shape):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            "indexing result of "
            f"shape {list(p.shape)}"
        )
    p.check()
    if 0 in p.shape:
        return
    if accumulate:
        p.add(xp, a, values)
    else:
        a[p.key] = values


def _fits(shape: Any, target: Any) -> bool:
    if len(shape) > len(target):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False))


# ---- masks --------------------------------------------------------------------------------------


@op(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    half=False,
    out=True,
    tags=("out_apart", "out_same_dtype"),
    vjp={"self": "kept(masked_select_backward(g, self.shape, mask), self)"},
)
def masked_select(xp: Any, a: Any, mask: Any) -> Any:
    """The elements where the mask (bool, broadcast) holds, in one dimension."""
    _bool(mask, "masked_select", "self")
    shape = layout.broadcast_shapes(a.shape, mask.shape, op="masked_select")
    return xp.broadcast_to(a, shape)[xp.broadcast_to(mask, shape)]


def _bool(mask: Any, name: str, what: str) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(f"{name}: expected BoolTensor for mask, but got {scalar_name(mask)}")


@op(
    "masked_select_backward(Tensor grad_output, SymInt[] sizes, Tensor mask) -> Tensor",
    public=False,
    vjp={"grad_output": "masked_select_again(g, mask)"},
    meta=lambda g, shape, mask: MetaArray(
        layout.broadcast_shapes(tuple(shape), mask.shape), g.dtype
    ),
)
def masked_select_backward(xp: Any, g: Any, shape: Any, mask: Any) -> Any:
    """Zeros of `sizes` broadcast with the mask, with g where the mask holds: the engine sums."""
    wide = layout.broadcast_shapes(tuple(shape), mask.shape)
    r = xp.zeros(wide, g.dtype)
    r[xp.broadcast_to(mask, wide)] = g
    return r


@vjp_helper
def masked_select_again(g: Any, mask: Any) -> Any:
    return aten.masked_select(g, mask)


@op(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    inplace=True,
    half=False,
    meta=lambda a, mask, source: MetaArray(layout.broadcast_shapes(a.shape, mask.shape), a.dtype),
    vjp={
        "self": "masked_fill(g, mask, 0)",
        "source": "masked_scatter_backward(g, mask, source.shape)",
    },
)
def masked_scatter(xp: Any, a: Any, mask: Any, source: Any) -> Any:
    """self with the elements of `source`, in order, where the mask holds."""
    _bool(mask, "masked_scatter", "mask")
    if a.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{scalar_name(a)} and {scalar_name(source)}"
        )
    shape = layout.broadcast_shapes(a.shape, mask.shape, op="masked_scatter")
    where = xp.broadcast_to(mask, shape)
    count = int(xp.count_nonzero(where))
    if source.size < count:
        raise RuntimeError(
            f"masked_scatter: source has {source.size} elements, fewer than the {count} ones in "
            "the mask "
            "(Number of elements of source < number of ones in mask)"
        )
    r = xp.broadcast_to(a, shape).copy(order="C") if shape != a.shape else a.copy(order="C")
    r[where] = source.ravel()[:count]
    return r


@op(
    "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
    public=False,
    vjp={"grad_output": "masked_scatter_again(g, mask, grad_output.shape)"},
    meta=lambda g, mask, s: MetaArray(s, g.dtype),
)
def masked_scatter_backward(xp: Any, g: Any, mask: Any, sizes: Any) -> Any:
    """g where the mask holds, in order, zeros behind, in the source's shape."""
    r = xp.zeros(tuple(sizes), g.dtype)
    found = g[xp.broadcast_to(mask, g.shape)]
    r.reshape(-1)[: found.size] = found
    return r


@vjp_helper
def masked_scatter_again(g: Any, mask: Any, shape: Any) -> Any:
    return aten.masked_scatter(aten.new_zeros(g, tuple(shape)), mask, g)


@op("nonzero(Tensor self) -> Tensor", public=False, half=False)
def nonzero_op(xp: Any, a: Any) -> Any:
    """The indices of the elements that are not zero, one row each."""
    r = xp.empty((a.ndim, int(xp.count_nonzero(a))), np.int64)
    for d, x in enumerate(xp.nonzero(a) if a.ndim else ()):
        r[d] = x
    return r.T  # PyTorch's memory: dimension by dimension


@face("nonzero")
def nonzero(self: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """The indices of the nonzero elements: a row for each, or (as_tuple) a tensor for each
    dimension.
    """
    if out is not None:
        return nonzero_op.out(self, out=out)
    if not as_tuple:
        return nonzero_op.call(self)
    if self._a.ndim == 0:
        self = aten.unsqueeze(aten.detach(self), 0)
    return aten.unbind(nonzero_op.call(self), 1)


@op(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    half=False,
    out=True,
    meta=lambda a, size, fill_value=-1: MetaArray((size, a.ndim), np.dtype(np.int64)),
)
def nonzero_static(xp: Any, a: Any, size: int, fill_value: int) -> Any:
    """As `nonzero` with exactly `size` rows: cut off, or filled up with `fill_value`."""
    if size < 0:
        raise RuntimeError(
            f"nonzero_static: 'size' must be an non-negative integer, but got {size}"
        )
    r = xp.full((size, a.ndim), fill_value, np.int64)
    for d, x in enumerate(xp.nonzero(a) if a.ndim else ()):
        r[: x.size, d] = x[:size]
    return r


@composite("argwhere(Tensor self) -> Tensor")
def argwhere(self: Any) -> Any:
    """The indices of the nonzero elements, one row each."""
    return nonzero_op.call(self)


# ---- flat positions -----------------------------------------------------------------------------


def _flat_index(xp: Any, a: Any, index: Any, name: str) -> Any:
    if index.dtype != np.int64:
        raise RuntimeError(
            f"{name}(): Expected a long tensor for index, but got {scalar_name(index)}"
        )
    if index.size:
        if a.size == 0:
            raise IndexError(f"{name}(): tried to take from an empty tensor")
        low, high = int(index.min()), int(index.max())
        if low < -a.size or high >= a.size:
            raise IndexError(
                f"{name}: out of range: index {low if low < -a.size else high} with {a.size} "
                "elements"
            )
    return xp.where(index < 0, index + a.size, index)


@op(
    "take(Tensor self, Tensor index) -> Tensor",
    half=False,
    out=True,
    tags=("out_apart", "out_same_dtype", "out_type_first"),
    vjp={"self": "kept(take_backward(g, self.shape, index), self)"},
    meta=lambda a, index: MetaArray(index.shape, a.dtype),
)
def take(xp: Any, a: Any, index: Any) -> Any:
    """The elements at positions of the flattened tensor, in the shape of `index`."""
    return a.ravel()[_flat_index(xp, a, index, "take")]


@vjp_helper
def take_backward(g: Any, shape: Any, index: Any) -> Any:
    return aten.put(aten.new_zeros(g, tuple(shape)), index, g, True)


@op(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    inplace=True,
    half=False,
    meta=lambda a, index, source, accumulate=False: meta_like(a),
    vjp={
        "self": "put_backward(g, index, accumulate)",
        "source": "kept(reshape(take(g, index), source.shape), source)",
    },
)
@written
def put(xp: Any, a: Any, index: Any, source: Any, accumulate: bool = False) -> None:
    """self with `source` at positions of the flattened tensor; `accumulate` adds."""
    if source.dtype != a.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got {scalar_name(a)} "
            f"and {scalar_name(source)}"
        )
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"{source.size} and {index.size}"
        )
    at = _flat_index(xp, a, index, "put_").ravel()
    values = source.ravel()
    if accumulate:
        add_at(xp, a, at, values)
    elif a.flags.c_contiguous:
        a.reshape(-1)[at] = values
    elif at.size:
        a[np.unravel_index(at, a.shape) if a.ndim else ()] = values if a.ndim else values[-1]


@vjp_helper
def put_backward(g: Any, index: Any, accumulate: bool) -> Any:
    return g if accumulate else aten.put(g, index, aten.new_zeros(g, index._a.shape), False)


# ---- with a mask for indices that are out of range ----------------------------------------------


def _within(self: Any, indices: Any) -> list[Any]:
    """The indices with those out of range moved to the nearest end."""
    return [
        i if i is None else aten.clamp(i, min=-n, max=n - 1)
        for i, n in zip(indices, self._a.shape, strict=False)
    ]


@face("_unsafe_masked_index", method=False)
def unsafe_masked_index(self: Any, mask: Any, indices: Any, fill: Any) -> Any:
    """self[indices] where `mask` holds, else `fill`: there the indices need not be in range."""
    if self._a.size == 0:
        return aten.new_full(self, aten.broadcast_tensors(*indices, mask)[0]._a.shape, fill)
    found = aten.index(self, _within(self, indices))
    return aten.masked_fill(found, aten.logical_not(mask), fill)


@face("_unsafe_masked_index_put_accumulate", method=False)
def unsafe_masked_index_put_accumulate(self: Any, mask: Any, indices: Any, values: Any) -> Any:
    """self with `values` added at the indices where `mask` holds."""
    if self._a.size == 0:
        return aten.clone(self)
    added = aten.masked_fill(values, aten.logical_not(mask), 0)
    return aten.index_put(self, _within(self, indices), added, True)
