"""Matrix products with sparse operands, by SciPy's sparse matrices.

The gradient of `a @ b` for a sparse `a` is strided, that of `torch.sparse.mm(a, b)` has a's places:
so it is in PyTorch.

Source: https://docs.pytorch.org/docs/2.13/sparse.html#torch-functions-specific-to-sparse-tensors
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.arrivals import virtual
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import exotic, record
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
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
    SparseCompressed,
    SparseCoo,
    around,
    coalesced,
    new_coo,
    project,
    public,
    put,
    values_of,
)
from torchlab._core.ops._sparse_layouts import as_coo, convert, in_layout
from torchlab._core.tensor import Tensor

COO_KEY, CSR_KEY = "SparseCPU", "SparseCsrCPU"
sp = lazy("scipy.sparse")


def _wide(a: Any) -> Any:
    return a.astype(np.float32) if a.dtype.itemsize <= 2 and a.dtype.kind in "fV" else a


def matrix(p: Any) -> Any:
    """The pattern as a SciPy matrix; equal indices add up in its products."""
    v = _wide(p.values._a)
    if type(p) is Coo:
        return sp.csr_array((v, tuple(p.indices._a)), shape=p.shape)
    if p.blocks:
        rows, cols = (i.reshape(-1) for i in np.broadcast_arrays(*p.places()))
        return sp.csr_array((v.reshape(-1), (rows, cols)), shape=p.shape)
    make = sp.csr_array if p.layout is CSR else sp.csc_array
    return make((v, p.plain._a, p.compressed._a), shape=p.shape)


def _is_matrix(x: Any) -> bool:
    if not isinstance(x, Sparse):
        return x._a.ndim == 2
    p = x._a
    return p.ndim == 2 and (p.sparse_dim == 2 if type(p) is Coo else p.dense_dim == 0)


def _check(name: str, a: Any, b: Any) -> None:
    for i, x in enumerate((a, b)):
        if not _is_matrix(x):
            sparse = isinstance(x, SparseCoo)
            got = x._a.sparse_dim if sparse else x._a.ndim
            raise RuntimeError(f"{name}: Argument #{i + 2}: matrices expected, got {got}D tensor")
    (n, k), (m, c) = a._a.shape, b._a.shape
    if k != m:
        raise RuntimeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {m}x{c})"
        )
    if a._k.dtype is not b._k.dtype:
        raise RuntimeError(
            f"{name}: expected scalar type {a._k.dtype.scalar_name} but found"
            f" {b._k.dtype.scalar_name}"
        )
    if isinstance(a, SparseCompressed) or isinstance(b, SparseCompressed):
        d = a._k.dtype
        if not d.is_floating_point and not d.is_complex or d.itemsize < 4:
            raise NotImplementedError(
                f"\"addmm_out_sparse_csr_impl_mkl\" not implemented for '{d.scalar_name}'"
            )


def _adjoint(x: Any) -> Any:
    t = aten.t(x)
    return aten.conj(t) if t._k.dtype.is_complex else t


def _plain(r: Any, d: dt.dtype) -> Tensor:
    return wrap(np.ascontiguousarray(r).astype(d.np, copy=False))


def _dense_result(a: Any, b: Any, masked: bool) -> Any:
    """a @ b with one operand strided."""
    if isinstance(b, Sparse) and b._a.layout in (BSR, BSC):
        raise RuntimeError(
            "addmm: computation on CPU is not implemented for Strided + Strided @"
            f" {NAMES[b._a.layout]}"
        )
    if isinstance(a, Sparse):
        r = matrix(a._a) @ _wide(b._a)
    else:
        r = (matrix(b._a).T @ _wide(a._a).T).T
    made = _plain(r, a._k.dtype)

    def back(g: Any, a: Any, b: Any) -> Any:
        return (
            product_at(g, _adjoint(b), a)
            if masked and isinstance(a, Sparse)
            else aten.mm(g, _adjoint(b)),
            product_at(_adjoint(a), g, b)
            if masked and isinstance(b, Sparse)
            else aten.mm(_adjoint(a), g),
        )

    return record("SparseAddmmBackward0" if masked else "MmBackward0", made, (a, b), back, a, b)


def product_at(a: Any, b: Any, x: Any) -> Any:
    """a @ b at the places of the sparse matrix x only; a and b strided if that can be."""
    p = x._a
    if isinstance(a, Sparse) or isinstance(b, Sparse):
        return in_layout(aten.mm(a, b), p)
    rows, cols = (wrap(np.ascontiguousarray(i)) for i in np.broadcast_arrays(*p.places()))
    v = aten.sum(a[rows] * aten.t(b)[cols], -1)
    return put(p, v)


def _sparse_result(a: Any, b: Any) -> Any:
    """a @ b of two sparse matrices: COO, or CSR of compressed ones."""
    for x in (a, b):
        if isinstance(x, SparseCompressed) and x._a.layout in (BSR, BSC):
            raise RuntimeError(
                "zeros_sparse_compressed expected sparse compressed (non-block) tensor layout but"
                f" got {NAMES[x._a.layout]}"
            )
    if type(a) is not type(b):
        raise RuntimeError(
            f"addmm: computation on CPU is not implemented for {NAMES[a._a.layout]} +"
            f" {NAMES[a._a.layout]} @ {NAMES[b._a.layout]}"
        )
    m = sp.csr_array(matrix(a._a) @ matrix(b._a))
    m.sum_duplicates()
    v = _plain(m.data, a._k.dtype)
    shape = (a._a.shape[0], b._a.shape[1])
    if isinstance(a, SparseCoo):
        rows = np.repeat(np.arange(shape[0]), np.diff(m.indptr))
        index = np.array([rows, m.indices], np.int64).reshape(2, -1)
        made = around(Coo(shape, wrap(index), v, True))
    else:
        index_type = a._a.plain._a.dtype
        made = around(
            Compressed(
                CSR, shape, wrap(m.indptr.astype(index_type)), wrap(m.indices.astype(index_type)), v
            )
        )

    def back(g: Any, a: Any, b: Any) -> Any:
        if isinstance(a, SparseCoo) and not isinstance(g, SparseCoo):
            g = as_coo(g) if isinstance(g, Sparse) else aten.to_sparse(g)
        return in_layout(aten.mm(g, _adjoint(b)), a._a), in_layout(aten.mm(_adjoint(a), g), b._a)

    return record("SparseSparseMatmulBackward0", made, (a, b), back, a, b)


def multiply(a: Any, b: Any, masked: bool, name: str = "mm") -> Any:
    """a @ b. `masked`: gradients of sparse operands have their places."""
    if isinstance(a, SparseCoo) and a._a.sparse_dim == 2 and a._a.ndim == 2 and _is_matrix(b):
        if not isinstance(b, Sparse) and a._a.shape[1] != b._a.shape[0]:
            raise RuntimeError(
                f"addmm: Argument #3 (dense): Expected dim 0 size {a._a.shape[1]}, got"
                f" {b._a.shape[0]}"
            )
    _check(name, a, b)
    if isinstance(a, Sparse) and isinstance(b, Sparse):
        return _sparse_result(a, b)
    return _dense_result(a, b, masked)


@exotic(COO_KEY, "mm")
@exotic(CSR_KEY, "mm")
def mm(self: Any, mat2: Any) -> Any:
    return multiply(self, mat2, False)


@exotic(COO_KEY, "mv")
@exotic(CSR_KEY, "mv")
def mv(self: Any, vec: Any) -> Any:
    if not _is_matrix(self) or vec._a.ndim != 1:
        raise RuntimeError(
            "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim:"
            f" {self._a.ndim}, DenseTensor Dim: {vec._a.ndim}"
        )
    if self._a.shape[1] != vec._a.shape[0]:
        raise RuntimeError(
            f"mv: expected self.size(-1) == vec.size(-1), got {list(self.shape)} and"
            f" {list(vec.shape)}"
        )
    made = aten.squeeze(multiply(around(self._a), aten.unsqueeze(aten.detach(vec), 1), False), 1)

    def back(g: Any, x: Any, v: Any) -> Any:
        v = aten.conj(v) if v._k.dtype.is_complex else v
        return aten.mm(aten.unsqueeze(g, 1), aten.unsqueeze(v, 0)), aten.mv(_adjoint(x), g)

    return record("MvBackward0", made, (self, vec), back, self, vec)


@exotic(COO_KEY, "matmul")
@exotic(CSR_KEY, "matmul")
def matmul(self: Any, other: Any) -> Any:
    a, b = self.ndim, other.ndim
    if (a, b) == (2, 2):
        return aten.mm(self, other)
    if (a, b) == (2, 1):
        return aten.mv(self, other)
    if (a, b) == (1, 2):
        return aten.squeeze(aten.mm(aten.unsqueeze(self, 0), other), 0)
    if (a, b) == (3, 3):
        return aten.bmm(self, other)
    raise RuntimeError("matmul: reshape is not implemented for sparse tensors")


@exotic(COO_KEY, "linear")
@exotic(CSR_KEY, "linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if isinstance(weight, Sparse) and not isinstance(input, Sparse) and input.ndim == 2:
        r = aten.t(aten.mm(weight, aten.t(input)))
    else:
        r = aten.matmul(input, aten.t(weight))
    return r if bias is None else r + bias


def _add_product(self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if alpha != 1:
        product = product * alpha
    if isinstance(self, Sparse):
        return aten.add(self if beta == 1 else self * beta, product)
    return product if beta == 0 else aten.add(product, self if beta == 1 else self * beta)


@exotic(COO_KEY, "addmm")
@exotic(CSR_KEY, "addmm")
def addmm(self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    for x in (mat1, mat2):
        if isinstance(x, SparseCoo) and x._a.sparse_dim != 2:
            raise RuntimeError(f"addmm: matrices expected, got {x._a.sparse_dim}D tensor")
    return _add_product(self, multiply(mat1, mat2, False, "addmm"), beta, alpha)


@exotic(CSR_KEY, "addmv")
def addmv(self: Any, mat: Any, vec: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return _add_product(self, mv(mat, vec), beta, alpha)


@exotic(COO_KEY, "addmv")
def no_addmv(self: Any, mat: Any, *rest: Any) -> Any:
    return SparseCoo.refuse("addmv", False, [mat])


@exotic(COO_KEY, "bmm")
def bmm(self: Any, mat2: Any) -> Any:
    """(batch, n, k) COO times (batch, k, m) strided: one product with a block-diagonal matrix."""
    if not isinstance(self, SparseCoo) or isinstance(mat2, Sparse):
        raise NotImplementedError("bmm: only a COO tensor times a strided one is supported")
    p = self._a
    if p.sparse_dim != p.ndim:
        raise RuntimeError(
            f"bmm_sparse: Tensor 'self' must have 0 dense dims, but has {p.ndim - p.sparse_dim}"
        )
    if p.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError(
            f"bmm_sparse: Tensor 'self' and 'mat2' must be 3D, got {p.ndim}D and {mat2.ndim}D"
        )
    n, r, k = p.shape
    if mat2._a.shape[0] != n or mat2._a.shape[1] != k:
        raise RuntimeError(f"bmm_sparse: sizes {list(p.shape)} and {list(mat2.shape)} do not fit")
    index = p.indices._a
    rows = np.array([index[0] * r + index[1], index[0] * k + index[2]])
    wide = new_coo(rows, values_of(self), (n * r, n * k), False)
    m = mat2._a.shape[2]
    return aten.reshape(multiply(wide, aten.reshape(mat2, (n * k, m)), True), (n, r, m))


# ---- torch.sparse -------------------------------------------------------------------------------

_REDUCE = {
    "sum": "sum", "mean": "mean", "amax": "amax", "amin": "amin", "max": "amax", "min": "amin"
}  # fmt: skip


with_dense = face("_masked_mm", method=False, spaces=(), autocast="lower")(multiply)


@public("mm")
def sparse_mm(sparse: Any, dense: Any, reduce: str | None = None) -> Any:
    """sparse @ dense with gradients at the places of sparse operands. `reduce` ("sum", "mean",
    "amax", "amin"; sparse CSR) says how the products of a row are put together."""
    if reduce is not None:
        return _sparse_mm_reduce_impl(sparse, dense, reduce)[0]
    if not isinstance(sparse, Sparse) and not isinstance(dense, Sparse):
        return aten.mm(sparse, dense)
    mixed = not isinstance(sparse, Sparse) or not isinstance(dense, Sparse)
    return (with_dense.function if mixed else multiply)(sparse, dense, True)


@virtual("_sparse_mm.default(Tensor sparse, Tensor dense) -> Tensor")
def _sparse_mm(sparse: Any, dense: Any) -> Any:
    return sparse_mm.function(sparse, dense)


@virtual("_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor")
def _sparse_mm_reduce(sparse: Any, dense: Any, reduce: str) -> Any:
    return sparse_mm.function(sparse, dense, reduce)


@virtual("_sparse_sparse_matmul.default(Tensor self, Tensor other) -> Tensor")
def _sparse_sparse_matmul(a: Any, b: Any) -> Any:
    return multiply(a, b, True)


@virtual(
    "_sparse_mm_reduce_impl.default(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)"
)
def _sparse_mm_reduce_impl(sparse: Any, dense: Any, reduce: str) -> tuple[Any, Any]:
    """The product, and which element of `sparse` it came from ("amax", "amin", to be
    differentiated; their number for an empty row), else an empty tensor."""
    if not isinstance(sparse, SparseCompressed):
        key = sparse.backend if isinstance(sparse, Sparse) else "CPU"
        raise NotImplementedError(
            f"Could not run 'aten::_sparse_mm_reduce_impl' with arguments from the '{key}' backend;"
            " the first operand must be a CSR tensor"
        )
    if sparse._a.layout is not CSR:
        raise RuntimeError(
            f"sparse_mm_reduce: expect self to be SparseCsr, got {NAMES[sparse._a.layout]}"
        )
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    if reduce not in _REDUCE:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    reduce = _REDUCE[reduce]
    p = sparse._a
    if p.ndim != 2 or dense.ndim != 2 or p.shape[1] != dense._a.shape[0]:
        raise RuntimeError(
            "sparse_mm_reduce: mat1 and mat2 shapes cannot be multiplied"
            f" ({list(p.shape)} and {list(dense.shape)})"
        )
    if sparse._k.dtype is not dense._k.dtype:
        raise RuntimeError(
            f"sparse_mm_reduce: expected scalar type {sparse.dtype.scalar_name} but found"
            f" {dense.dtype.scalar_name}"
        )
    rows = wrap(p.majors().astype(np.int64))
    terms = aten.unsqueeze(values_of(sparse), -1) * dense[wrap(p.plain._a.astype(np.int64))]
    shape = (p.shape[0], dense._a.shape[1])
    zeros = aten.zeros(shape, dtype=dense.dtype)
    if reduce == "sum":
        made = aten.index_add(zeros, 0, rows, terms)
    else:
        made = aten.index_reduce(zeros, 0, rows, terms, reduce, include_self=False)
    if reduce not in ("amax", "amin") or made.grad_fn is None:
        return made, wrap(np.empty(0, np.int64))
    number = np.arange(len(rows._a), dtype=np.int64)[:, None]
    origin = np.full(shape, len(number))
    np.minimum.at(origin, rows._a, np.where(terms._a == made._a[rows._a], number, len(number)))
    return made, wrap(origin)


@public("addmm")
def sparse_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """beta · input + alpha · (mat1 @ mat2), with gradients at mat1's places."""
    return _sparse_addmm(input, mat1, mat2, beta=beta, alpha=alpha)


@virtual(
    "_sparse_addmm.default(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)"
    " -> Tensor"
)
def _sparse_addmm(input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    if not isinstance(mat1, Sparse) and not isinstance(mat2, Sparse):
        return aten.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return add_product.function(input, mat1, mat2, beta, alpha)


@face("_masked_addmm", method=False, spaces=(), autocast="lower")
def add_product(input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    """`sparse_addmm` in autocast's dtype."""
    return _add_product(input, multiply(mat1, mat2, True, "addmm"), beta, alpha)


@public("sampled_addmm", out=True)
def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """alpha · (mat1 @ mat2) at the places of the CSR tensor `input`, plus beta · input."""
    if not isinstance(input, SparseCompressed):
        key = input.backend if isinstance(input, Sparse) else "CPU"
        raise NotImplementedError(
            f"Could not run 'aten::sparse_sampled_addmm' with arguments from the '{key}' backend;"
            " `input` must be a CSR tensor"
        )
    p = input._a
    if p.layout is not CSR:
        raise RuntimeError(
            f"sampled_addmm: Expected result to have sparse csr layout, but got {NAMES[p.layout]}"
        )
    for x, name in ((mat1, "mat1"), (mat2, "mat2")):
        if isinstance(x, Sparse):
            raise RuntimeError(
                f"sampled_addmm: Expected {name} to have strided layout, but got {x.layout}"
            )
        if x._k.dtype is not input._k.dtype:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} and self to have the same dtype, but got"
                f" {x.dtype} and {input.dtype}"
            )
        if x.ndim < 2:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} to be a matrix, got {x.ndim}-D tensor."
            )
    if not input._k.dtype.is_floating_point and not input._k.dtype.is_complex:
        raise NotImplementedError(
            f"\"sampled_addmm_out_sparse_csr\" not implemented for '{input.dtype.scalar_name}'"
        )
    (n, k), (j, m) = mat1.shape[-2:], mat2.shape[-2:]
    if n != p.shape[-2]:
        raise RuntimeError("sampled_addmm: self.shape[-2] must match mat1.shape[-2]")
    if m != p.shape[-1]:
        raise RuntimeError("sampled_addmm: self.shape[-1] must match mat2.shape[-1]")
    if k != j:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {j}x{m})")
    if mat1.shape[:-2] != p.shape[:-2] or mat2.shape[:-2] != p.shape[:-2]:
        raise RuntimeError(
            "sampled_addmm: Expected mat1, mat2 and self to have the same batch dimensions, got"
            f" {list(mat1.shape)}, {list(mat2.shape)} and {list(p.shape)}"
        )
    *lead, rows, cols = (wrap(np.ascontiguousarray(i)) for i in p.places())
    product = aten.sum(mat1[(*lead, rows)] * aten.transpose(mat2, -2, -1)[(*lead, cols)], -1)
    v = _scaled(aten.detach(product), alpha)
    made = around(p.with_values(v if beta == 0 else p.values * beta + v))
    return record(
        "SparseSampledAddmmBackward0",
        made,
        (input, product),
        lambda g: (_scaled(g, beta.conjugate()), _scaled(project(g, p), alpha.conjugate())),
    )


def _scaled(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * factor


def _sparse_operand(name: str, x: Any) -> None:
    if not isinstance(x, SparseCoo):
        key = x.backend if isinstance(x, Sparse) else "CPU"
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the '{key}' backend; it is there for"
            " tensors of layout torch.sparse_coo"
        )
    if not _is_matrix(x):
        raise RuntimeError(f"{name}: Argument #2: matrices expected, got {x._a.sparse_dim}D tensor")


def _used_rows(mat1: Any, mat2: Any, name: str) -> tuple[Any, Any]:
    """(the rows in which mat1 has elements, those rows of mat1 @ mat2)"""
    product = multiply(mat1, mat2, True, name)
    rows = np.unique(mat1._a.indices._a[0])
    return rows, aten.index_select(product, 0, wrap(rows))


@face("hspmm", method=False, out=True)
def hspmm(mat1: Any, mat2: Any) -> Any:
    """mat1 (COO) @ mat2 (strided) as a hybrid COO tensor: one sparse and one dense dim."""
    _sparse_operand("hspmm", mat1)
    rows, part = _used_rows(mat1, mat2, "hspmm")
    return new_coo(rows[None], part, (mat1.shape[0], mat2.shape[1]), not rows.size)


@face("sspaddmm", out=True)
def sspaddmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta · input + alpha · (mat1 @ mat2), all sparse but mat2; the result is not coalesced."""
    _sparse_operand("sspaddmm", mat1)
    _sparse_operand("sspaddmm", self)
    rows, part = _used_rows(mat1, mat2, "sspaddmm")
    m = mat2.shape[1]
    index = np.array([np.repeat(rows, m), np.tile(np.arange(m), len(rows))]).reshape(2, -1)
    shape = (mat1.shape[0], m)
    if tuple(self.shape) != shape:
        raise RuntimeError(
            f"sspaddmm: Argument #1: Expected size {list(shape)}, got {list(self.shape)}"
        )
    v = aten.cat([values_of(self) * beta, aten.reshape(part, (-1,)) * alpha])
    both = np.concatenate([self._a.indices._a, index], axis=1)
    return new_coo(both, v, shape, both.shape[1] < 2)


@face("smm")
def smm(self: Any, mat2: Any) -> Any:
    """input (COO) @ mat2 (strided) as a COO tensor."""
    if isinstance(self, SparseCompressed):
        raise RuntimeError(
            "torch.empty: Only batched sparse compressed (non-block) tensors are supported; smm is"
            " for COO tensors"
        )
    _sparse_operand("sspaddmm", self)
    empty = aten.zeros((self.shape[0], mat2.shape[1]), dtype=self.dtype, layout=COO)
    return sspaddmm.body(empty, self, mat2)


@face("saddmm", method=False, out=True)
def saddmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """The same as `sspaddmm`."""
    return sspaddmm.body(self, mat1, mat2, beta=beta, alpha=alpha)


@face("hsmm", method=False)
def hsmm(self: Any, mat2: Any) -> Any:
    """The same as `hspmm`."""
    return hspmm.body(self, mat2)


@face("dsmm", method=False)
def dsmm(self: Any, mat2: Any) -> Any:
    """input @ mat2."""
    return aten.mm(self, mat2)


@face("spmm", method=False)
def spmm(self: Any, mat2: Any) -> Any:
    """input @ mat2."""
    return aten.mm(self, mat2)


_LAYOUTS = (None, COO, CSR, CSC)


@public("spdiags")
def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """A matrix with the rows of `diagonals` on its diagonals `offsets` (column j holds what stands
    in column j)."""
    d = aten.unsqueeze(diagonals, 0) if diagonals.ndim == 1 else diagonals
    o = aten.reshape(offsets, (1,)) if offsets.ndim == 0 else offsets
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if d.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if o.ndim != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if d.shape[0] != o.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({d.shape[0]}) does not match the number of offsets"
            f" ({o.shape[0]})"
        )
    if layout not in _LAYOUTS:
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsr, SparseCsc) are supported, got {layout}"
        )
    if o.dtype is not dt.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {o.dtype.scalar_name}")
    offs = o._a
    if len(np.unique(offs)) != len(offs):
        raise RuntimeError("Offset tensor contains duplicate values")
    n, m = (int(x) for x in shape)
    for k in offs:
        if min(m, n + k) - max(k, 0) < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension: offset {k} lies outside a matrix"
                f" of shape {n}x{m}"
            )
    cols = np.arange(d.shape[1])
    lane, col = np.nonzero((cols < m) & (cols - offs[:, None] >= 0) & (cols - offs[:, None] < n))
    index = np.array([col - offs[lane], col])
    r = new_coo(index, d[(wrap(lane), wrap(col))], (n, m), index.shape[1] < 2)
    if layout in (None, COO):
        return r
    return convert(coalesced(r), layout)
