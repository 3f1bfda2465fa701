"""Other sizes for sparse tensors, in place.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.sparse_resize_.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import exotic_method
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._sparse import (
    Compressed,
    Coo,
    Sparse,
    SparseCompressed,
    SparseCoo,
    check_writable,
)


def _target(name: str, x: Any) -> Coo:
    if not isinstance(x, SparseCoo):
        key = x.backend if isinstance(x, Sparse) else "CPU"
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the '{key}' backend; it is there for"
            " tensors of layout torch.sparse_coo"
        )
    check_writable(x)
    return x._a


def _check_dims(size: Any, sparse_dim: int, dense_dim: int) -> tuple[int, ...]:
    shape = tuple(int(n) for n in size)
    if sparse_dim + dense_dim != len(shape):
        raise RuntimeError(
            "number of dimensions must be sparse_dim ("
            f"{sparse_dim}) + dense_dim ({dense_dim}), but got {len(shape)}"
        )
    return shape


@face("sparse_resize_", spaces=())
def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Give a COO tensor another size; dims may grow, and only an empty tensor may change their
    number or shrink."""
    p = _target("sparse_resize_", self)
    shape = _check_dims(size, sparse_dim, dense_dim)
    k, inner = p.sparse_dim, p.values._a.shape[1:]
    if p.nnz:
        if sparse_dim != k:
            raise RuntimeError(
                f"changing the number of sparse dimensions (from {k} to {sparse_dim}) on a"
                " non-empty sparse tensor is not supported."
            )
        if dense_dim != len(inner):
            raise RuntimeError(
                f"changing the number of dense dimensions (from {len(inner)} to {dense_dim}) on a"
                " non-empty sparse tensor is not supported."
            )
        parts = (("sparse", p.shape[:k], shape[:k]), ("dense", inner, shape[k:]))
        for what, old, new in parts:
            if any(b < a for a, b in zip(old, new, strict=True)):
                raise RuntimeError(
                    f"shrinking the size of {what} dimensions (from {list(old)} to {list(new)}) on"
                    " a non-empty sparse tensor is not supported."
                )
    index, values = p.indices, p.values
    if not p.nnz:
        index = wrap(np.empty((sparse_dim, 0), np.int64))
    if values._a.shape[1:] != shape[sparse_dim:]:
        wider = np.zeros((p.nnz, *shape[sparse_dim:]), values._a.dtype)
        if p.nnz:
            wider[tuple(slice(n) for n in values._a.shape)] = values._a
        values = wrap(wider)
    self._a = Coo(shape, index, values, p.coalesced)
    return self


@face("sparse_resize_and_clear_", spaces=())
def sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Give a COO tensor another size and no elements."""
    p = _target("sparse_resize_and_clear_", self)
    shape = _check_dims(size, sparse_dim, dense_dim)
    values = aten.empty((0, *shape[sparse_dim:]), dtype=p.values.dtype)
    self._a = Coo(shape, wrap(np.empty((sparse_dim, 0), np.int64)), values, True)
    return self


@face("resize_as_sparse_")
def resize_as_sparse_(self: Any, the_template: Any) -> Any:
    """Give a sparse tensor the size (and kind of dims) of another."""
    if not isinstance(self, Sparse) or type(self) is not type(the_template):
        key = self.backend if isinstance(self, Sparse) else "CPU"
        raise NotImplementedError(
            f"Could not run 'aten::resize_as_sparse_' with arguments from the '{key}' backend: both"
            " tensors must be sparse and of one layout"
        )
    q = the_template._a
    if type(q) is Coo:
        p = self._a
        if p.shape == q.shape and p.sparse_dim == q.sparse_dim:
            return self
        return sparse_resize_.body(self, q.shape, q.sparse_dim, q.ndim - q.sparse_dim)
    return resize_(self, q.shape)


@exotic_method("SparseCsrCPU", "resize_")
def resize_(self: SparseCompressed, *size: Any, memory_format: Any = None) -> Any:
    """Give a compressed tensor another number of rows and columns; what lies outside is dropped."""
    check_writable(self)
    p: Compressed = self._a
    given = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    shape = tuple(int(n) for n in given)
    b = p.batch
    if len(shape) != p.ndim or shape[:b] != p.shape[:b] or shape[b + 2 :] != p.shape[b + 2 :]:
        raise RuntimeError(
            "resize_: only the two sparse dims of a sparse compressed tensor can be resized, got"
            f" {list(p.shape)} and {list(shape)}"
        )
    if shape == p.shape:
        return self
    i = 0 if p.by_rows else 1
    major = shape[b + i] // p.blocksize[i]
    old = p.compressed._a
    if shape[b + 1 - i] < p.shape[b + 1 - i]:
        raise RuntimeError(
            "resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported."
            f" The original size is {list(p.shape)}, the requested one {list(shape)}"
        )
    c = np.concatenate(
        [old[..., : major + 1], np.repeat(old[..., -1:], max(major + 1 - old.shape[-1], 0), -1)], -1
    )
    nnz = int(c[..., -1].max(initial=0))
    if b and not (c[..., -1] == nnz).all():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    keep = (slice(None),) * b + (slice(nnz),)
    self._a = Compressed(
        p.layout, shape, wrap(c), wrap(p.plain._a[keep].copy()), wrap(p.values._a[keep].copy())
    )
    return self


@exotic_method("SparseCPU", "resize_")
def no_resize(self: Any, *size: Any, memory_format: Any = None) -> Any:
    return type(self).refuse("resize_", False, [self])
