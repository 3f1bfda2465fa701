"""Sums, norms and softmax of sparse tensors.

`torch.sum` of all elements has a strided gradient as in PyTorch; over dims (and `torch.sparse.sum`)
the gradient has the operand's places. Softmax counts the elements that are specified only: the
others are taken for -inf.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.sparse.sum.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout as shapes
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import exotic, record
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._sparse import (
    CSR,
    Sparse,
    SparseCompressed,
    SparseCoo,
    around,
    coalesced,
    flat,
    like,
    new_coo,
    public,
    values_of,
)
from torchlab._core.ops._sparse_layouts import as_coo, convert

COO_KEY, CSR_KEY = "SparseCPU", "SparseCsrCPU"


@exotic(COO_KEY, "sum.default")
@exotic(CSR_KEY, "sum.default")
def sum_all(self: Any, dtype: Any = None) -> Any:
    made = aten.sum(self._a.values, dtype=dtype)
    shape, d = self._a.shape, self._k.dtype
    return record("SumBackward0", made, (self,), lambda g: (aten.expand(aten.to(g, d), shape),))


def _dims(dim: Any, ndim: int, name: str) -> list[int]:
    given = range(ndim) if dim is None or (type(dim) is not int and len(dim) == 0) else dim
    given = (given,) if isinstance(given, int) else given
    dims = [shapes.wrap_dim(d, ndim, name) for d in given]
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"dim {dims} appears multiple times in the list of dims")
    return sorted(dims)


def sum_coo(x: Any, dims: list[int], keepdim: bool, dtype: Any, node: str) -> Any:
    p = x._a
    k = p.sparse_dim
    v = values_of(x)
    v = aten.to(v, dtype) if dtype is not None else v
    inner = [d - k + 1 for d in dims if d >= k]
    if inner:
        v = aten.sum(v, inner, keepdim)
    else:
        v = v if v._k.dtype.category > 1 or dtype is not None else aten.to(v, aten.sum(v)._k.dtype)
    left = [d for d in range(k) if d not in dims]
    shape = [1 if d in dims else n for d, n in enumerate(p.shape) if keepdim or d not in dims]
    if not left:
        r = aten.sum(v, 0)
        return aten.reshape(r, shape) if keepdim else r
    index = p.indices._a
    inside = [p.shape[d] for d in left] + list(v._a.shape[1:])
    sorted_ = len(left) == k and p.coalesced or p.nnz < 2
    made = coalesced(new_coo(index[left], v, inside, sorted_, node))
    if not keepdim or len(left) == k:
        return made
    q = made._a
    rows = np.zeros((k, q.nnz), np.int64)
    rows[left] = q.indices._a
    return new_coo(rows, values_of(made), shape, q.nnz < 2, node)


@exotic(COO_KEY, "sum.dim_IntList")
def sum_dims(self: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    dims = _dims(dim, self._a.ndim, "sum")
    return sum_coo(self, dims, keepdim, dtype, "SparseSumBackward0")


@exotic(CSR_KEY, "sum.dim_IntList")
def sum_dims_compressed(self: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    if self._a.layout is not CSR:
        raise RuntimeError(
            "Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but"
            f" got layout {self.layout}"
        )
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    dims = _dims(dim, self._a.ndim, "sum")
    r = sum_coo(coalesced(as_coo(self)), dims, True, dtype, "SumBackward1")
    return convert(r if isinstance(r, Sparse) else aten.to_sparse(r), CSR)


@public("sum")
def sparse_sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of the elements of a COO tensor, or over `dim`; the gradient has the operand's
    places."""
    if not isinstance(input, Sparse):
        raise NotImplementedError(
            "torch.sparse.sum expects a sparse tensor; for strided ones there is torch.sum"
        )
    if isinstance(input, SparseCompressed):
        if dim is None:
            raise RuntimeError(
                "coalesce expected sparse coordinate tensor layout but got a compressed one"
            )
        return SparseCompressed.refuse("_indices", False, [input])
    if dim is None:
        return aten.sum(values_of(coalesced(input)), dtype=dtype)
    dims = _dims(dim, input._a.ndim, "sum")
    return sum_coo(input, dims, False, dtype, "SparseSumBackward0")


@exotic(COO_KEY, "linalg_vector_norm")
def vector_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any = None) -> Any:
    if dim is not None and len(_dims(dim, self._a.ndim, "norm")) < self._a.ndim or keepdim:
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or"
            f" contain all dimensions of the input (got {dim})"
        )
    v = values_of(coalesced(self))
    return aten.linalg_vector_norm(aten.reshape(v, (-1,)), ord, dtype=dtype)


@exotic(COO_KEY, "any")
def any_(self: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is not None:
        return SparseCoo.refuse("any.dim", False, [self])
    return aten.any(self._a.values)


# ---- softmax ------------------------------------------------------------------------------------


def _softmax(self: Any, dim: int, dtype: Any, log: bool) -> Any:
    name = "log_softmax" if log else "softmax"
    if not isinstance(self, SparseCoo):
        backend = self.backend if isinstance(self, Sparse) else "CPU"
        raise NotImplementedError(
            f"Could not run 'aten::_sparse_{name}' with arguments from the '{backend}' backend; it"
            " is there for tensors of layout torch.sparse_coo"
        )
    x = coalesced(self)
    p = x._a
    d = shapes.wrap_dim(dim, p.ndim, name)
    v = values_of(x)
    v = aten.to(v, dtype) if dtype is not None else v
    title = "SparseLogSoftmaxBackward0" if log else "SparseSoftmaxBackward0"
    if not v._k.dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{v.dtype.scalar_name}'")
    if d >= p.sparse_dim:
        return like(x, getattr(aten, name)(v, d - p.sparse_dim + 1), title)
    others = [i for i in range(p.sparse_dim) if i != d]
    rest = around(
        type(p)([p.shape[i] for i in others], wrap(p.indices._a[others]), p.values, False)
    )
    groups, at = np.unique(flat(rest._a), return_inverse=True)
    top = np.full((len(groups), *v._a.shape[1:]), -np.inf, v._a.dtype)
    np.maximum.at(top, at, v._a)
    where = wrap(at.reshape(-1).astype(np.int64))
    shifted = v - wrap(top[at])
    e = aten.exp(shifted)
    zeros = aten.zeros((len(groups), *v._a.shape[1:]), dtype=v.dtype)
    total = aten.index_select(aten.index_add(zeros, 0, where, e), 0, where)
    return like(x, shifted - aten.log(total) if log else e / total, title)


@public("softmax")
def sparse_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """exp(x) / Σ exp(x) along `dim` over the specified elements."""
    return _softmax(input, dim, dtype, False)


@public("log_softmax")
def sparse_log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """The logarithm of `torch.sparse.softmax`."""
    return _softmax(input, dim, dtype, True)
