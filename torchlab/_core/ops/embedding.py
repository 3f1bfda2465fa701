"""Embedding: rows of a table by index.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.embedding.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import writes
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.factories import transformed
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import FLOATS, NUMBERS
from torchlab._core.ops._row_sums import quick, sum_bags, sum_rows
from torchlab._core.ops._sparse import new_coo

_F = ("nn.functional",)


def _meta(weight: Any, indices: Any, *rest: Any) -> Any:
    return MetaArray((*indices.shape, *weight.shape[1:]), weight.dtype)


def _check(name: str, weight: Any, indices: Any) -> None:
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D ({name}: got {list(weight.shape)})")
    if indices.dtype.kind not in "iu" or indices.dtype.itemsize < 4:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar "
            "types: Long, Int; but got "
            f"{indices.dtype.name} instead (while checking arguments for {name})"
        )


def _in_range(indices: Any, n: int) -> None:
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= n):
        raise IndexError(
            f"index out of range in self (embedding: the table has {n} rows; the indices go from "
            f"{int(indices.min())} to {int(indices.max())})"
        )


@op(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
    "scale_grad_by_freq=False, bool sparse=False) -> "
    "Tensor",
    public=False,
    meta=_meta,
    vjp={
        "weight": (
            "(embedding_sparse_backward if sparse else embedding_dense_backward)"
            "(g, indices, weight.shape[0], padding_idx, scale_grad_by_freq)"
        )
    },
)
def embedding_op(
    xp: Any, weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Any:
    """weight[indices]: (…) → (…, columns)."""
    _check("embedding", weight, indices)
    _in_range(indices, weight.shape[0])
    return weight.take(indices, axis=0)


@vjp_helper
def embedding_sparse_backward(
    g: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """The gradient of the table as a COO tensor of the rows that were looked up, not coalesced."""
    if scale_grad_by_freq:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
        )
    where = indices._a.reshape(-1).astype(np.int64)
    rows = aten.reshape(g, (where.size, g._a.shape[-1]))
    if padding_idx >= 0:
        kept = np.flatnonzero(where != padding_idx)
        where, rows = where[kept], aten.index_select(rows, 0, wrap(kept))
    return new_coo(where[None], rows, (num_weights, g._a.shape[-1]), where.size < 2)


@op(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt "
    "padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    public=False,
    meta=lambda g, i, n, *rest: MetaArray((n, g.shape[-1]), g.dtype),
    vjp={"grad_output": "embedding_double_backward(g, indices, padding_idx, scale_grad_by_freq)"},
)
def embedding_dense_backward(
    xp: Any, g: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """The gradient of the table: sums of the rows of grad_output; none for `padding_idx`."""
    where = indices.reshape(-1)
    rows = g.reshape(where.size, g.shape[-1])
    if scale_grad_by_freq and where.size:
        counts = xp.bincount(where, minlength=num_weights)
        rows = rows / counts[where].astype(rows.dtype)[:, None]
    r = sum_rows(xp, rows, where, num_weights)
    if padding_idx >= 0:
        r[padding_idx] = 0
    return r


@vjp_helper
def embedding_double_backward(
    g: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """The gradient of embedding_dense_backward's grad_output."""
    r = embedding_op.call(g, indices, padding_idx)
    a = indices._a
    if scale_grad_by_freq:
        counts = np.bincount(a.reshape(-1), minlength=g._a.shape[0])[a].astype(g._k.np)
        r = r / aten.unsqueeze(wrap(counts), -1)
    return (
        aten.masked_fill(r, aten.unsqueeze(indices == padding_idx, -1), 0.0)
        if padding_idx >= 0
        else r
    )


def renormalize(weight: Any, indices: Any, max_norm: float, norm_type: float) -> None:
    """Shrink the looked-up rows in place to at most `max_norm`, outside the tape. The write counts:
    whoever saved the table for backward will be told."""
    table = aten.detach(weight)
    a = table._a
    if a.dtype.kind not in NUMBERS:
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{table._k.dtype.scalar_name} instead."
        )
    rows = np.unique(indices._a)
    picked = a[rows].astype(np.float64)
    if norm_type == np.inf:
        norms = np.abs(picked).max(axis=1, initial=0)
    else:
        norms = (np.abs(picked) ** norm_type).sum(axis=1) ** (1 / norm_type)
    long = norms > max_norm
    if long.any():
        scale = max_norm / (norms[long] + 1e-7)
        a[rows[long]] = (picked[long] * scale[:, None]).astype(a.dtype)
    writes.wrote(table)


@face("embedding", method=False, spaces=("torch",))
def embedding_torch(
    weight: Any,
    indices: Any,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """weight[indices]."""
    return embedding_op.call(weight, indices, padding_idx, scale_grad_by_freq, sparse)


def _wrap_padding(padding_idx: Any, rows: int) -> int:
    if padding_idx is None:
        return -1
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


def lookup(
    indices: Any,
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """nn.functional.embedding: weight[indices] with its options (indices first)."""
    if SLOW and max_norm is not None:
        seen = transformed(lookup, locals(), "indices", "weight")
        if seen is not NotImplemented:
            return seen
    if weight._a.ndim != 2:
        _check("embedding", weight._a, indices._a)
    padding = _wrap_padding(padding_idx, weight._a.shape[0])
    if max_norm is not None:
        _check("embedding", weight._a, indices._a)
        _in_range(indices._a, weight._a.shape[0])
        renormalize(weight, indices, float(max_norm), float(norm_type))
    return embedding_op.call(weight, indices, padding, scale_grad_by_freq, sparse)


# ---- bags ---------------------------------------------------------------------------------------

_MODES = {"sum": 0, "mean": 1, "max": 2}


def bags(
    indices: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: Any = None,
) -> Any:
    """nn.functional.embedding_bag: the sum, mean or maximum of each bag of rows."""
    if SLOW:
        padded = padding_idx is not None
        seen = transformed(bags, locals(), "offsets", *(("indices",) if padded else ()))
        if seen is not NotImplemented:
            return seen
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if weight._a.dtype.kind not in FLOATS:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
            f"Half, BFloat16, Float, Double; but got torch.{weight._k.dtype.scalar_name}Tensor "
            "instead (while checking arguments for embedding_bag)"
        )
    if indices._a.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                "of fixed "
                "length sequences."
            )
        bag = np.repeat(np.arange(indices._a.shape[0]), indices._a.shape[1])
        count = indices._a.shape[0]
        per_sample_weights = (
            None if per_sample_weights is None else aten.reshape(per_sample_weights, (-1,))
        )
        indices = aten.reshape(indices, (-1,))
    elif indices._a.ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        starts = offsets._a
        if starts.ndim != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        if starts.size and starts[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                "from "
                f"position 0. However, got {int(starts[0])}"
            )
        count = starts.size - 1 if include_last_offset else starts.size
        bag = np.searchsorted(starts[:count], np.arange(indices._a.size), side="right") - 1
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {indices._a.ndim}"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
            "supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    padding = _wrap_padding(padding_idx, weight._a.shape[0])
    if max_norm is not None:
        renormalize(weight, indices, float(max_norm), float(norm_type))
    if padding >= 0:
        kept = np.flatnonzero(indices._a != padding)
        bag, keep = bag[kept], wrap(kept)
        indices = aten.index_select(indices, 0, keep)
        if per_sample_weights is not None:
            per_sample_weights = aten.index_select(per_sample_weights, 0, keep)
    return embedding_bag_op.call(
        weight,
        indices,
        wrap(bag.astype(np.int64)),
        count,
        _MODES[mode],
        per_sample_weights,
        scale_grad_by_freq,
        sparse,
    )


def _bag_meta(weight: Any, indices: Any, bag: Any, count: int, *rest: Any) -> Any:
    return MetaArray((count, weight.shape[1]), weight.dtype)


@op(
    "_embedding_bag_rows(Tensor weight, Tensor indices, Tensor bag, int count, int mode, Tensor? "
    "per_sample_weights, "
    "bool scale_grad_by_freq, bool sparse=False) -> Tensor",
    public=False,
    meta=_bag_meta,
    grad_name="EmbeddingBagBackward0",
    vjp={
        "weight, per_sample_weights": (
            "embedding_bag_backward(g, weight, indices, bag, count, "
            "mode, per_sample_weights, "
            "scale_grad_by_freq, sparse, needs)"
        )
    },
)
def embedding_bag_op(
    xp: Any,
    weight: Any,
    indices: Any,
    bag: Any,
    count: int,
    mode: int,
    per_sample_weights: Any,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Any:
    """`bag` tells the bag of each index and never falls. Empty bags give zeros."""
    _check("embedding_bag", weight, indices)
    _in_range(indices, weight.shape[0])
    sizes = xp.bincount(bag, minlength=count)
    ends = xp.cumsum(sizes)
    if mode == 2:
        r = xp.zeros((count, weight.shape[1]), weight.dtype)
        kept = xp.flatnonzero(sizes)
        if len(kept):
            r[kept] = xp.maximum.reduceat(weight[indices], (ends - sizes)[kept], axis=0)
        return r
    if quick(xp, weight.dtype, indices.size * weight.shape[1]):
        r = sum_bags(weight, indices, ends, per_sample_weights)
    else:
        rows = weight[indices]
        if per_sample_weights is not None:
            rows = rows * per_sample_weights[:, None]
        r = sum_rows(xp, rows, bag, count)
    return r / xp.maximum(sizes, 1).astype(r.dtype)[:, None] if mode == 1 else r


@vjp_helper
def embedding_bag_backward(
    g: Any,
    weight: Any,
    indices: Any,
    bag: Any,
    count: int,
    mode: int,
    per_sample_weights: Any,
    scale_grad_by_freq: bool,
    sparse: bool,
    needs: Any,
) -> Any:
    """The gradients of the table and of the weights of its rows."""
    n = weight._a.shape[0]
    rows = embedding_op.call(g, bag)
    if mode == 1:
        sizes = np.maximum(np.bincount(bag._a, minlength=count), 1)[bag._a].astype(g._k.np)
        rows = rows / aten.unsqueeze(wrap(sizes), -1)
    elif mode == 2:
        best = embedding_op.call(
            embedding_bag_op.call(aten.detach(weight), indices, bag, count, 2, None, False), bag
        )
        hit = _first_hits(embedding_op.call(aten.detach(weight), indices) == best, bag._a)
        rows = aten.where(hit, rows, 0)
    gw = gs = None
    if needs[0]:
        scaled = (
            rows if per_sample_weights is None else rows * aten.unsqueeze(per_sample_weights, -1)
        )
        back = embedding_sparse_backward if sparse else embedding_dense_backward.call
        gw = back(scaled, indices, n, -1, scale_grad_by_freq)
    if needs[1]:
        gs = aten.sum(rows * embedding_op.call(weight, indices), -1)
    return gw, gs


def _first_hits(hit: Any, bag: Any) -> Any:
    """Of equal maxima in a bag, only the first in each column; `bag` never falls."""
    if not bag.size:
        return hit
    new = np.concatenate([[True], bag[1:] != bag[:-1]])
    begin = np.flatnonzero(new)[np.cumsum(new) - 1]  # of each row: where its bag begins
    count = aten.cumsum(hit, 0)
    before = aten.index_select(aten.sub(count, aten.to(hit, count._k.dtype)), 0, wrap(begin))
    return aten.logical_and(hit, aten.eq(aten.sub(count, before), 1))


@face("embedding_bag", method=False, spaces=("torch",))
def embedding_bag_torch(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: Any = None,
) -> tuple[Any, Any, Any, Any]:
    """(bags, the bag of each index, the size of each bag, the rows the maxima are from); mode: 0
    sum, 1 mean, 2 max. As in PyTorch, sums do without the last three."""
    names = {number: name for name, number in _MODES.items()}
    if mode not in names:
        raise RuntimeError(f"embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got {mode}")
    if indices._a.ndim != 1 or offsets._a.ndim != 1:
        raise RuntimeError(
            "embedding_bag: indices and offsets must be 1-dimensional, got "
            f"{list(indices._a.shape)} and {list(offsets._a.shape)}"
        )
    r = bags(
        indices,
        weight,
        offsets,
        None,
        2.0,
        scale_grad_by_freq,
        names[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
    i, starts, kind = indices._a, offsets._a, indices._a.dtype
    count = r._a.shape[0]
    bag = np.searchsorted(starts[:count], np.arange(i.size), side="right") - 1
    padding = _wrap_padding(padding_idx, weight._a.shape[0])
    if mode == 0:
        none = np.zeros(starts.size, kind)
        bag = bag if padding >= 0 else bag[:0]
        return r, wrap(bag.astype(kind)), wrap(none), wrap(none.copy())
    kept = i != padding
    sizes = np.bincount(bag[kept], minlength=count).astype(kind)
    if mode == 1:
        return r, wrap(bag.astype(kind)), wrap(sizes), wrap(sizes.copy())
    where = np.zeros((count, weight._a.shape[1]), kind)
    rows, of = i[kept], bag[kept]
    row, column = np.nonzero(_first_hits(wrap(weight._a[rows] == r._a[of]), of)._a)
    where[of[row], column] = rows[row]
    return r, wrap(bag.astype(kind)), wrap(sizes), wrap(where)


@face("embedding_renorm_", method=False, spaces=("torch",))
def embedding_renorm_(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Shrinks the rows of a table that `indices` names to at most `max_norm`, in place."""
    _check("embedding_renorm_", self._a, indices._a)
    _in_range(indices._a, self._a.shape[0])
    renormalize(self, indices, float(max_norm), float(norm_type))
    return self
