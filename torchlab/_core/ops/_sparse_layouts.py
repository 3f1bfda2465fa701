"""Between layouts: how a dense or sparse tensor becomes a sparse one.

Source: https://docs.pytorch.org/docs/2.13/sparse.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import record
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._sparse import (
    BSC,
    BSR,
    COO,
    CSC,
    CSR,
    NAMES,
    Compressed,
    Coo,
    Sparse,
    around,
    check_place,
    coalesced,
    flat,
    project,
    put,
    unflat,
)
from torchlab._core.tensor import Tensor

BOTH = ("SparseCPU", "SparseCsrCPU")


def name_of(t: Any) -> str:
    return NAMES[t._a.layout] if isinstance(t, Sparse) else "Strided"


def in_layout(g: Any, p: Any) -> Any:
    """A gradient in the layout and at the places of a pattern."""
    return put(p, project(g, p))


# ---- from dense ---------------------------------------------------------------------------------


def to_coo(x: Tensor, sparse_dim: int | None) -> Any:
    check_place(x, "to_sparse")
    n = x._a.ndim
    k = n if sparse_dim is None else sparse_dim
    if n and k <= 0:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    if k > n:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{n}] range, but {k} is given"
        )
    a = x._a
    some = a != 0
    if k < n:
        some = some.any(axis=tuple(range(k, n)))
    if n == 0:
        index = np.empty((0, int(bool(some))), np.int64)
        values = a.reshape(1)[: index.shape[1]].copy()
    else:
        places = np.nonzero(some)
        index, values = np.array(places, np.int64).reshape(k, -1), a[places]
    made = around(Coo(a.shape, wrap(index), wrap(values), True))
    return record("ToSparseBackward0", made, (x,), lambda g: (aten.to_dense(g),))


def _blocked(a: Any, layout: Any, b: int, block: tuple[int, int]) -> Any:
    """(batch, major, minor, *block, dense): the matrix cut in blocks."""
    h, w = block
    rows, cols = a.shape[b] // h, a.shape[b + 1] // w
    cut = a.reshape(*a.shape[:b], rows, h, cols, w, *a.shape[b + 2 :])
    rest = range(b + 4, cut.ndim)
    order = (b, b + 2) if layout in (CSR, BSR) else (b + 2, b)
    return cut.transpose(*range(b), *order, b + 1, b + 3, *rest)


def _to_compressed(x: Tensor, layout: Any, blocksize: Any, dense_dim: int | None) -> Any:
    check_place(x, "to_sparse")
    what = "dense_to_" + repr(layout).removeprefix("torch.")
    a, k = x._a, dense_dim or 0
    blocks = layout in (BSR, BSC)
    if a.ndim < 2 and not blocks:
        raise IndexError(f"{what}: a tensor of {a.ndim} dimension(s) has no rows and columns")
    if not 0 <= k <= max(a.ndim - 2, 0):
        raise RuntimeError(
            f"{what}: dense_dim argument must be in [0,{a.ndim - 2}] range, but {k} is given"
        )
    b = a.ndim - 2 - k
    block = tuple(int(n) for n in blocksize) if blocks else (1, 1)
    if blocks:
        if len(block) != 2 or min(block) <= 0:
            raise RuntimeError(f"{what}: blocksize needs to be two positive numbers, got {block}")
        if a.shape[b] % block[0] or a.shape[b + 1] % block[1]:
            raise RuntimeError(
                f"{what}: tensor sparse size ({a.shape[b]},{a.shape[b + 1]}) must be divisible by"
                f" given blocksize ({block[0]},{block[1]})"
            )
    cut = _blocked(a, layout, b, block)
    some = cut != 0
    some = some.any(axis=tuple(range(b + 2, some.ndim)))
    counts = some.sum(axis=-1)
    lead = a.shape[:b]
    each = counts.reshape(int(np.prod(lead)), -1).sum(axis=-1)
    if each.size and (each != each[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    nnz = int(each[0]) if each.size else 0
    compressed = np.zeros((*lead, counts.shape[-1] + 1), np.int64)
    compressed[..., 1:] = counts.cumsum(axis=-1)
    places = np.nonzero(some)
    plain = places[-1].reshape(*lead, nnz).astype(np.int64)
    picked = cut[places]
    tail = picked.shape[1:] if blocks else picked.shape[3:]
    values = np.ascontiguousarray(picked.reshape(*lead, nnz, *tail))
    made = around(Compressed(layout, a.shape, wrap(compressed), wrap(plain), wrap(values)))
    title = "ToSparse" + NAMES[layout][6:] + "Backward0"
    return record(title, made, (x,), lambda g: (aten.to_dense(g),))


# ---- between sparse layouts ---------------------------------------------------------------------


def as_coo(x: Any) -> Any:
    """A COO tensor with the same elements: those of CSR in order, of CSC column by column."""
    p = x._a
    if type(p) is Coo:
        return x
    places = np.broadcast_arrays(*p.places())
    index = np.array([i.reshape(-1) for i in places], np.int64).reshape(len(places), -1)
    b = p.batch
    rest = p.values._a.shape[b + (3 if p.blocks else 1) :]
    values = wrap(p.values._a.reshape(-1, *rest))
    made = around(Coo(p.shape, wrap(index), values, p.layout is CSR or p.plain._a.size < 2))
    return record("ToSparseBackward1", made, (x,), lambda g: (in_layout(g, p),))


def _compress(x: Any, layout: Any, block: tuple[int, int], what: str) -> Any:
    """A COO matrix (batches too) compressed; what is there stays there, zeros included."""
    origin = x._a
    c = coalesced(as_coo(x))
    p = c._a
    rest = p.shape[p.sparse_dim :]
    b = p.sparse_dim - 2
    h, w = block
    lead = p.shape[:b]
    rows, cols = p.shape[b] // h, p.shape[b + 1] // w
    by_rows = layout in (CSR, BSR)
    index = p.indices._a
    major, minor = (index[b] // h, index[b + 1] // w)
    n_major, n_minor = rows, cols
    if not by_rows:
        major, minor, n_major, n_minor = minor, major, cols, rows
    batch = flat(Coo(p.shape, wrap(index[:b]), p.values, False)) if b else np.zeros_like(major)
    keys = (batch * n_major + major) * n_minor + minor
    blocks = layout in (BSR, BSC)
    if blocks:
        found, at = np.unique(keys, return_inverse=True)
        values = np.zeros((len(found), h, w, *rest), p.dtype)
        values[at, index[b] % h, index[b + 1] % w] = p.values._a
    else:
        order = np.argsort(keys, kind="stable")
        found, values = keys[order], p.values._a[order]
    lanes = int(np.prod(lead))
    per = (
        np.bincount(found // (n_major * n_minor), minlength=lanes)
        if found.size
        else np.zeros(lanes, int)
    )
    if per.size and (per != per[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    counts = np.bincount(found // max(n_minor, 1), minlength=lanes * n_major)
    compressed = np.zeros((*lead, n_major + 1), np.int64)
    compressed[..., 1:] = counts.reshape(*lead, n_major).cumsum(axis=-1)
    nnz = int(per[0]) if per.size else 0
    plain = (found % max(n_minor, 1)).reshape(*lead, nnz)
    tail = values.shape[1:]
    dtype = origin.plain._a.dtype if type(origin) is Compressed else np.int64
    made = around(
        Compressed(
            layout,
            p.shape,
            wrap(compressed.astype(dtype)),
            wrap(plain.astype(dtype)),
            wrap(values.reshape(*lead, nnz, *tail)),
        )
    )
    title = "ToSparse" + NAMES[layout][6:] + "Backward0"
    return record(title, made, (x,), lambda g: (in_layout(g, origin),))


def convert(x: Any, layout: Any, blocksize: Any = None, dense_dim: int | None = None) -> Any:
    """x in another layout."""
    if not isinstance(x, Sparse):
        what = f"dense_to_sparse: conversion from Strided to {NAMES[layout]}"
        if layout is COO:
            if blocksize is not None:
                raise RuntimeError(f"{what} with blocksize argument given is not supported")
            k = None if dense_dim is None else x._a.ndim - dense_dim
            return to_coo(x, k)
        if layout in (BSR, BSC) and blocksize is None:
            raise RuntimeError(f"{what} without blocksize argument given is not supported")
        if layout in (CSR, CSC) and blocksize is not None:
            raise RuntimeError(f"{what} with blocksize argument given is not supported")
        return _to_compressed(x, layout, blocksize, dense_dim)
    p = x._a
    name = repr(layout).removeprefix("torch.")
    if layout is COO:
        return as_coo(x)
    if type(p) is Compressed:
        if p.layout is layout and (not p.blocks or tuple(blocksize or p.blocksize) == p.blocksize):
            return x
        if p.blocks and not (
            layout in (BSR, BSC) and tuple(blocksize or p.blocksize) == p.blocksize
        ):
            raise RuntimeError(
                f"sparse_compressed_to_{name}: conversion from {name_of(x)} to {NAMES[layout]} with"
                f" blocksize {blocksize or p.blocksize} is not supported: expected SparseCsr or"
                " SparseCsc, or the same blocksize"
            )
    elif p.sparse_dim != 2:
        raise RuntimeError(
            f"coo_to_{name}: conversion from Sparse to {NAMES[layout]} for input tensors with"
            f" sparse_dim()!=2 is not supported, got {p.sparse_dim}"
        )
    if layout in (BSR, BSC):
        if blocksize is None and not (type(p) is Compressed and p.blocks):
            raise RuntimeError(
                f"to_{name}: conversion from {name_of(x)} to {NAMES[layout]} without blocksize"
                " argument given is not supported"
            )
        block = tuple(int(n) for n in (blocksize or p.blocksize))
        i = len(p.shape) - 2 - (len(p.shape) - p.sparse_dim if type(p) is Coo else p.dense_dim)
        if p.shape[i] % block[0] or p.shape[i + 1] % block[1]:
            raise RuntimeError(
                f"to_{name}: tensor sparse size ({p.shape[i]},{p.shape[i + 1]}) must be divisible"
                f" by given blocksize ({block[0]},{block[1]})"
            )
    else:
        block = (1, 1)
    return _compress(x, layout, block, f"to_{name}")


def merge(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Of two coalesced COO tensors: the union of the indices and where each has its place there."""
    fa, fb = flat(a), flat(b)
    union = np.union1d(fa, fb)
    return (
        unflat(union, a.shape[: a.sparse_dim]),
        np.searchsorted(union, fa),
        np.searchsorted(union, fb),
    )
