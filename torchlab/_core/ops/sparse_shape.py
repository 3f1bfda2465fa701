"""Dims of sparse tensors: transpose, permute, select, index_select, cat, unsqueeze; indexing.

Source: https://docs.pytorch.org/docs/2.13/sparse.html#supported-operations
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout as shapes
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import exotic, exotic_method
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._sparse import (
    NAMES,
    OPPOSITE,
    Compressed,
    SparseCompressed,
    SparseCoo,
    bare,
    coalesced,
    new_coo,
    put,
    values_of,
)
from torchlab._core.ops._sparse_layouts import as_coo

COO_KEY, CSR_KEY = "SparseCPU", "SparseCsrCPU"


# ---- order of dims ------------------------------------------------------------------------------


@exotic(COO_KEY, "permute")
def permute(self: Any, dims: Any, name: str = "PermuteBackward0") -> Any:
    p = self._a
    order = [shapes.wrap_dim(d, p.ndim, "permute") for d in dims]
    if sorted(order) != list(range(p.ndim)):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the"
            f" length of the desired ordering of dimensions, or it repeats one: {list(dims)} for"
            f" {p.ndim} dimensions"
        )
    k = p.sparse_dim
    if any((d < k) != (i < k) for i, d in enumerate(order)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not"
            f" allowed. sparse dims: {list(range(k))}, order: {order}"
        )
    index = p.indices._a[order[:k]] if k else p.indices._a
    v = values_of(self)
    if order[k:] != list(range(k, p.ndim)):
        v = aten.permute(v, (0, *(d - k + 1 for d in order[k:])))
    shape = [p.shape[d] for d in order]
    same = order[:k] == list(range(k))
    return new_coo(index, v, shape, p.coalesced and same if name[0] == "P" else not p.nnz, name)


@exotic(COO_KEY, "transpose")
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    p = self._a
    a = shapes.wrap_dim(dim0, p.ndim, "transpose")
    b = shapes.wrap_dim(dim1, p.ndim, "transpose")
    if a == b:
        return self
    if max(a, b) >= p.sparse_dim:
        raise RuntimeError(
            "sparse transpose: transposed dimensions must be sparse Got sparse_dim:"
            f" {p.sparse_dim}, d0: {a}, d1: {b}"
        )
    order = list(range(p.ndim))
    order[a], order[b] = b, a
    return permute(self, order, "TransposeBackward0")


@exotic(COO_KEY, "t")
def t(self: Any) -> Any:
    p = self._a
    if p.sparse_dim > 2 or p.ndim > p.sparse_dim:
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got"
            f" {p.sparse_dim} sparse and {p.ndim - p.sparse_dim} dense dimensions"
        )
    return self if p.ndim < 2 else permute(self, (1, 0), "TBackward0")


@exotic(CSR_KEY, "transpose")
def transpose_compressed(self: Any, dim0: int, dim1: int) -> Any:
    p = self._a
    a = shapes.wrap_dim(dim0, p.ndim, "transpose")
    b = shapes.wrap_dim(dim1, p.ndim, "transpose")
    if a == b:
        return self
    pair = (p.batch, p.batch + 1)
    if tuple(sorted((a, b))) != pair:
        raise RuntimeError(
            "transpose(): can only transpose the two sparse dims of a sparse compressed tensor"
            f" ({pair[0]} and {pair[1]}), got {a} and {b}"
        )
    return _flipped(self)


def _flipped(self: Any) -> Any:
    p = self._a
    shape = list(p.shape)
    i = p.batch
    shape[i], shape[i + 1] = shape[i + 1], shape[i]
    v = values_of(self)
    if p.blocks:
        v = aten.transpose(v, i + 1, i + 2)
    q = Compressed(OPPOSITE[p.layout], shape, p.compressed, p.plain, bare(v))
    return put(q, v, "TransposeBackward0")


@exotic(CSR_KEY, "t")
def t_compressed(self: Any) -> Any:
    if self._a.ndim != 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {self._a.ndim}D"
        )
    return _flipped(self)


# ---- parts --------------------------------------------------------------------------------------


@exotic(COO_KEY, "select")
def select(self: Any, dim: int, index: int) -> Any:
    p = self._a
    d = shapes.wrap_dim(dim, p.ndim, "select")
    n = p.shape[d]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(p.shape)} at dimension"
            f" {d}"
        )
    index %= n
    shape = p.shape[:d] + p.shape[d + 1 :]
    v = values_of(self)
    if d >= p.sparse_dim:
        return new_coo(p.indices._a, aten.select(v, d - p.sparse_dim + 1, index), shape, p.nnz < 2)
    keep = np.flatnonzero(p.indices._a[d] == index)
    v = aten.index_select(v, 0, wrap(keep))
    if p.sparse_dim == 1:
        return aten.sum(v, 0).to(v.dtype)
    rest = np.delete(p.indices._a[:, keep], d, axis=0)
    return new_coo(rest, v, shape, len(keep) < 2)


@exotic(CSR_KEY, "select")
def select_compressed(self: Any, dim: int, index: int) -> Any:
    p = self._a
    d = shapes.wrap_dim(dim, p.ndim, "select")
    n = p.shape[d]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(p.shape)} at dimension"
            f" {d}"
        )
    if d < p.batch:
        q = Compressed(
            p.layout,
            p.shape[:d] + p.shape[d + 1 :],
            wrap(p.compressed._a.take(index, axis=d)),
            wrap(p.plain._a.take(index, axis=d)),
            wrap(p.values._a.take(index, axis=d)),
        )
        return put(q, aten.select(values_of(self), d, index))
    r = select(as_coo(self), dim, index)
    return coalesced(r) if isinstance(r, SparseCoo) else r


@exotic(COO_KEY, "unbind")
@exotic(CSR_KEY, "unbind")
def unbind(self: Any, dim: int) -> Any:
    d = shapes.wrap_dim(dim, self._a.ndim, "unbind")
    return [aten.select(self, d, i) for i in range(self._a.shape[d])]


@exotic(COO_KEY, "index_select")
def index_select(self: Any, dim: int, index: Any) -> Any:
    p = self._a
    d = shapes.wrap_dim(dim, p.ndim, "index_select")
    wanted = np.atleast_1d(index._a).astype(np.int64)
    n = p.shape[d]
    for bad in wanted[(wanted < -n) | (wanted >= n)][:1]:
        raise IndexError(
            f"index_select(): index contains {bad} that is out of range for tensor of size"
            f" {list(p.shape)} at dimension {d}"
        )
    wanted = wanted % max(n, 1)
    shape = (*p.shape[:d], len(wanted), *p.shape[d + 1 :])
    v = values_of(self)
    if d >= p.sparse_dim:
        picked = aten.index_select(v, d - p.sparse_dim + 1, wrap(wanted))
        return new_coo(p.indices._a, picked, shape, p.nnz < 2)
    order = np.argsort(p.indices._a[d], kind="stable")
    have = p.indices._a[d][order]
    low = np.searchsorted(have, wanted, "left")
    counts = np.searchsorted(have, wanted, "right") - low
    starts = np.repeat(low - np.concatenate(([0], counts.cumsum()[:-1])), counts)
    taken = order[starts + np.arange(counts.sum())]
    at = np.repeat(np.arange(len(wanted)), counts)
    source = np.lexsort((at, taken))  # in the order of the elements, as PyTorch has them
    at, taken = at[source], taken[source]
    rows = p.indices._a[:, taken].copy()
    rows[d] = at
    return new_coo(rows, aten.index_select(v, 0, wrap(taken)), shape, len(taken) < 2)


@exotic_method(COO_KEY, "narrow_copy")
@exotic(COO_KEY, "narrow_copy", face=True)
def narrow_copy(self: Any, dim: int, start: int, length: int, *, out: Any = None) -> Any:
    p = self._a
    d = shapes.wrap_dim(dim, p.ndim, "narrow_copy")
    n = p.shape[d]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n}], but got {start})"
        )
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    shape = (*p.shape[:d], length, *p.shape[d + 1 :])
    v = values_of(self)
    if d >= p.sparse_dim:
        return new_coo(
            p.indices._a, aten.narrow(v, d - p.sparse_dim + 1, start, length), shape, p.coalesced
        )
    at = p.indices._a[d]
    keep = np.flatnonzero((at >= start) & (at < start + length))
    rows = p.indices._a[:, keep].copy()
    rows[d] -= start
    return new_coo(rows, aten.index_select(v, 0, wrap(keep)), shape, p.coalesced)


def _item(self: Any, index: Any) -> Any:
    """x[1], x[0, 2], x[None], x[...]: what needs no strides."""
    parts = index if type(index) is tuple else (index,)
    given = sum(x is not None and x is not Ellipsis for x in parts)
    r, d = self, 0
    for x in parts:
        if x is Ellipsis:
            d = d + self._a.ndim - given
        elif x is None:
            r = aten.unsqueeze(r, d)
            d += 1
        elif isinstance(x, slice) and x == slice(None):
            d += 1
        elif hasattr(x, "__index__") and not isinstance(x, bool) and getattr(x, "ndim", 0) == 0:
            if d >= r.ndim:
                raise IndexError(f"too many indices for tensor of dimension {self._a.ndim}")
            r = aten.select(r, d, x.__index__())
        else:
            name = "as_strided" if isinstance(x, slice) else "index.Tensor"
            if isinstance(self, SparseCompressed):
                layout = repr(self._a.layout).removeprefix("torch.sparse_").upper()
                raise RuntimeError(f"Sparse {layout} tensors do not have strides (indexing: {x!r})")
            type(self).refuse(name, False, [self])
    return r


for _key in (COO_KEY, CSR_KEY):
    exotic_method(_key, "__getitem__")(_item)


# ---- more dims, longer dims ---------------------------------------------------------------------


@exotic(COO_KEY, "unsqueeze")
def unsqueeze(self: Any, dim: int) -> Any:
    p = self._a
    d = shapes.wrap_dim(dim, p.ndim + 1, "unsqueeze")
    shape = (*p.shape[:d], 1, *p.shape[d:])
    v = values_of(self)
    if d > p.sparse_dim:
        return new_coo(p.indices._a, aten.unsqueeze(v, d - p.sparse_dim + 1), shape, p.nnz < 2)
    index = np.insert(p.indices._a, d, 0, axis=0)
    return new_coo(index, v, shape, p.nnz < 2)


@exotic(COO_KEY, "cat")
def cat(tensors: Any, dim: int = 0) -> Any:
    for i, x in enumerate(tensors):
        if not isinstance(x, SparseCoo):
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {i}."
            )
    first = tensors[0]._a
    d = shapes.wrap_dim(dim, first.ndim, "cat")
    for i, x in enumerate(tensors):
        p = x._a
        if p.sparse_dim != first.sparse_dim or p.ndim != first.ndim:
            raise RuntimeError(
                f"All tensors must have the same sparse_dim ({first.sparse_dim}) and number of"
                f" dimensions ({first.ndim}), but tensor at position {i} has {p.sparse_dim} and"
                f" {p.ndim}"
            )
        if any(a != b for j, (a, b) in enumerate(zip(p.shape, first.shape, strict=True)) if j != d):
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the"
                f" concatenating dimension), but found shape: {list(p.shape)} at position {i}."
            )
    total = sum(x._a.shape[d] for x in tensors)
    shape = (*first.shape[:d], total, *first.shape[d + 1 :])
    index = np.concatenate([x._a.indices._a for x in tensors], axis=1)
    starts = np.cumsum([0, *(x._a.shape[d] for x in tensors)])
    values = [values_of(x) for x in tensors]
    if d < first.sparse_dim:
        index[d] += np.repeat(starts[:-1], [x._a.nnz for x in tensors])
        return new_coo(index, aten.cat(values), shape, index.shape[1] < 2)
    padded = []
    for i, v in enumerate(values):
        axis = d - first.sparse_dim + 1
        before, after = list(v._a.shape), list(v._a.shape)
        before[axis], after[axis] = int(starts[i]), int(total - starts[i + 1])
        padded.append(aten.cat([v.new_zeros(before), v, v.new_zeros(after)], axis))
    return new_coo(index, aten.cat(padded), shape, index.shape[1] < 2)


@exotic(COO_KEY, "stack")
def stack(tensors: Any, dim: int = 0) -> Any:
    d = shapes.wrap_dim(dim, tensors[0].ndim + 1, "stack")
    return cat([aten.unsqueeze(x, d) for x in tensors], d)


def _refusal(name: str, text: str) -> None:
    def refuse(self: Any, *rest: Any) -> Any:
        raise RuntimeError(text)

    exotic(COO_KEY, name)(refuse)


_refusal("reshape", "reshape is not implemented for sparse tensors")
_refusal("expand", "expand is unsupported for Sparse tensors")
_refusal("contiguous", "unsupported memory format option Contiguous")


_refusal("repeat", "repeat: expand is unsupported for Sparse tensors")


@exotic(CSR_KEY, "expand", "repeat")
def no_expand(self: Any, *rest: Any) -> Any:
    raise RuntimeError(f"expand is unsupported for {NAMES[self._a.layout]} tensors")


@exotic(CSR_KEY, "unsqueeze")
def no_unsqueeze(self: Any, dim: int) -> Any:
    shapes.wrap_dim(dim, self._a.ndim + 1, "unsqueeze")
    return no_strides(self)


@exotic(CSR_KEY, "reshape", "flatten", "contiguous", "squeeze", "cat", "stack")
@exotic(CSR_KEY, "slice", "diagonal", "as_strided", "narrow")
def no_strides(self: Any, *rest: Any) -> Any:
    t = self[0] if isinstance(self, (list, tuple)) else self
    layout = repr(t._a.layout).removeprefix("torch.sparse_").upper()
    raise RuntimeError(f"Sparse {layout} tensors do not have strides")
