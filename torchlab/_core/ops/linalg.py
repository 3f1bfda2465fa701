"""Matrix products. BLAS does the work, through NumPy.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#blas-and-lapack-operations
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends import mkl
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._lapack import offer
from torchlab._core.ops._matrices import without_terms
from torchlab._core.ops.kernels import number
from torchlab._core.tape import edge_of
from torchlab._core.tensor import strides_of

_BOOL = np.dtype(np.bool_)
_FLOAT = np.dtype(np.float32)


def no_bool(routine: str) -> NotImplementedError:
    """Truth values have no products of matrices."""
    return NotImplementedError(f"\"{routine}\" not implemented for 'Bool'")


def same_dtype(name: str, *arrays: Any) -> None:
    """Matrix products do not promote."""
    first = arrays[0].dtype
    for a in arrays[1:]:
        if a.dtype != first:
            names = [dt.from_numpy(x.dtype).scalar_name for x in (arrays[0], a)]
            raise RuntimeError(
                f"{name}: expected m1 and m2 to have the same dtype, but got: {names[0]} !="
                f" {names[1]}; convert one of them with .to()"
            )


def product(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    """a @ b; for small matrices ndarray.dot has the lower overhead."""
    if out is None:
        return a.dot(b) if a.ndim == 2 and b.ndim == 2 else xp.matmul(a, b)
    return xp.matmul(a, b, out=out)


def _mm_shape(a: Any, b: Any) -> tuple[int, int]:
    if a.ndim != 2:
        raise RuntimeError(f"mm: self must be a matrix, but its shape is {list(a.shape)}")
    if b.ndim != 2:
        raise RuntimeError(f"mm: mat2 must be a matrix, but its shape is {list(b.shape)}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mm: mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and"
            f" {b.shape[0]}x{b.shape[1]})"
        )
    return a.shape[0], b.shape[1]


@vjp_helper
def mm_left(g: Any, b: Any, strides: Any) -> Any:
    """The gradient of a in a @ b; in column-major order if a is (its strides tell)."""
    if strides[0] == 1 and strides[1] > 1:
        return aten.t(aten.mm(conj(b), aten.t(g)))
    return aten.mm(g, aten.t(conj(b)))


@vjp_helper
def mm_right(g: Any, a: Any, strides: Any) -> Any:
    """The gradient of b in a @ b; in column-major order if b is: a linear layer's weight comes
    transposed, and so its gradient becomes contiguous without a copy."""
    if strides[0] == 1 and strides[1] > 1:
        return aten.t(aten.mm(aten.t(g), conj(a)))
    return aten.mm(aten.t(conj(a)), g)


def conj(x: Any) -> Any:
    return aten.conj(x) if x._k.dtype.is_complex else x


def _half_mm(xp: Any, a: Any, b: Any) -> Any:
    return _from_zero(mm.kernel(xp, a, b), a)


def _from_zero(r: Any, a: Any) -> Any:
    """Products of 16-bit floats are sums that begin with 0 even if they have one term only."""
    if a.shape[1] == 1 and a.dtype is _FLOAT:
        r += r.dtype.type(0)  # -0.0 becomes 0.0
    return r


@op(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    out=True,
    half=_half_mm,
    tags=("out_same_dtype",),
    autocast="lower",
    vjp={"self": "mm_left(g, mat2, self.strides)", "mat2": "mm_right(g, self, mat2.strides)"},
    meta=lambda a, b: MetaArray(_mm_shape(a, b), a.dtype),
)
def mm(xp: Any, a: Any, b: Any) -> Any:
    """The product of two matrices: (n, k) @ (k, m) → (n, m)."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        _mm_shape(a, b)
    if a.dtype is not b.dtype:
        same_dtype("mm", a, b)
    if a.dtype is _BOOL and a.size and b.size:
        raise no_bool("addmm_impl_cpu_")
    if b.size >= 16384 and xp is np:
        r = mkl.product(a, b)
        if r is not None:
            return r
        if _wide(a, b):
            return np.ascontiguousarray(b.T.dot(a.T).T)
    return a.dot(b) if a.shape[1] != 1 else _outer(xp, a, b)


def _outer(xp: Any, a: Any, b: Any) -> Any:
    """(n, 1) @ (1, m). NumPy's `dot` takes 0 times NaN for 0 there. The products of a row or of a
    column are added to 0 as sums are; those of a matrix stay as they are, as in PyTorch."""
    r = xp.multiply(a, b, order="C")
    if r.ndim < 2 or 1 in r.shape:
        r += r.dtype.type(0)  # -0.0 becomes 0.0
    return r


def _wide(a: Any, b: Any) -> bool:
    """Whether a few rows meet a large transposed matrix (a linear layer's weight): BLAS is then up
    to a
    third faster with the sides exchanged, (bᵀ aᵀ)ᵀ."""
    rows, columns = a.shape[0], b.shape[1]
    return (
        columns >= 2 * rows
        and rows > 1
        and b.size >= 16384
        and b.flags.f_contiguous
        and not b.flags.c_contiguous
    )


def _bmm_shape(a: Any, b: Any) -> tuple[int, int, int]:
    if a.ndim != 3 or b.ndim != 3:
        raise RuntimeError(
            f"bmm: batch1 and batch2 must be 3D tensors, got {list(a.shape)} and {list(b.shape)}"
        )
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            f"bmm: Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]},"
            f" {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )
    return a.shape[0], a.shape[1], b.shape[2]


@op(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    out=True,
    tags=("out_same_dtype", "float_result"),  # (of no elements it may be one of integers)
    autocast="lower",
    vjp={
        "self": "bmm(g, transpose(conj_of(mat2), 1, 2))",
        "mat2": "bmm(transpose(conj_of(self), 1, 2), g)",
    },
    meta=lambda a, b: MetaArray(_bmm_shape(a, b), a.dtype if a.size and b.size else b.dtype),
)
def bmm(xp: Any, a: Any, b: Any) -> Any:
    """Batches of matrix products: (b, n, k) @ (b, k, m) → (b, n, m)."""
    shape = _bmm_shape(a, b)
    if a.dtype is not b.dtype:
        if not a.size or not b.size:  # nothing to multiply: PyTorch does not ask
            return xp.zeros(shape, b.dtype)
        if a.dtype is not _BOOL:
            same_dtype("bmm", a, b)
    if a.dtype is _BOOL and a.size and b.size:
        raise no_bool("bmm")
    return xp.matmul(a, b)


@op(
    "mv(Tensor self, Tensor vec) -> Tensor",
    out=True,
    tags=("out_same_dtype",),
    autocast="lower:accelerator",
    vjp={"self": "ger(g, conj_of(vec))", "vec": "mv(t(conj_of(self)), g)"},
    meta=lambda a, b: MetaArray((a.shape[0],), a.dtype),
)
def mv(xp: Any, a: Any, b: Any) -> Any:
    """Matrix times vector: (n, k) @ (k) → (n)."""
    if a.ndim != 2 or b.ndim != 1:
        if a.ndim == 0:
            raise IndexError("mv: Dimension specified as 0 but tensor has no dimensions")
        raise RuntimeError(
            f"mv: vector + matrix @ vector expected, got {list(a.shape)} and {list(b.shape)}"
        )
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mv: size mismatch, got input ({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})"
        )
    same_dtype("mv", a, b)
    if a.dtype is _BOOL and a.size:
        raise no_bool("addmv_impl_cpu")
    return a.dot(b) if b.size != 1 else _outer(xp, a[:, 0], b)


@op(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    out=True,
    tags=("out_same_dtype",),
    autocast="promote:accelerator",
    vjp={"self": "g * conj_of(tensor)", "tensor": "g * conj_of(self)"},
    meta=lambda a, b: MetaArray((), a.dtype),
)
def dot(xp: Any, a: Any, b: Any) -> Any:
    """The inner product of two vectors."""
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src [{b.shape[0]}] to"
            f" have the same number of elements, but got {a.shape[0]} and {b.shape[0]} elements"
            " respectively"
        )
    same_dtype("dot", a, b)
    if a.dtype is _BOOL:
        raise no_bool("dot")
    return np.asarray(a.dot(b) if a.size != 1 else _outer(xp, a, b).reshape(()))


def _half_addmm(xp: Any, c: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    r = addmm.kernel(xp, c, a, b, beta, alpha)
    return r if beta else _from_zero(r, a)


@op(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace=True,
    out=True,
    half=_half_addmm,
    tags=("out_same_dtype",),
    autocast="lower",
    vjp={
        "self": "times(g, beta)",
        "mat1": "times(mm_left(g, mat2, mat1.strides), alpha)",
        "mat2": "times(mm_right(g, mat1, mat2.strides), alpha)",
    },
    meta=lambda c, a, b, beta=1, alpha=1: MetaArray(_mm_shape(a, b), a.dtype),
)
def addmm(xp: Any, c: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """beta · self + alpha · mat1 @ mat2."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        _mm_shape(a, b)
    if a.dtype is not b.dtype or c.dtype is not a.dtype:
        same_dtype("addmm", a, b, c)
    shape = (a.shape[0], b.shape[1])
    if c.shape != shape and layout.broadcast_shapes(c.shape, shape) != shape:
        raise RuntimeError(
            f"addmm: The expanded size {list(shape)} must match the existing size {list(c.shape)}"
        )
    if a.dtype is _BOOL and a.size and b.size:
        raise no_bool("addmm_impl_cpu_")
    if not a.size or not b.size:
        return without_terms("addmm", xp, c, shape, a.dtype, beta, 0 in shape)
    r = mkl.product(a, b) if xp is np and b.size >= 16384 else None
    if r is None and alpha == beta == 1 and xp is np and _wide(a, b):
        return np.add(b.T.dot(a.T).T, c, order="C")
    if r is None and a.shape[1] == 1:  # beside `_outer` the sum begins with c, not with 0
        r = _outer(xp, a, b) if beta == 0 else xp.multiply(a, b, order="C")
    elif r is None:
        r = a.dot(b)
    if alpha != 1:
        r *= number(alpha, r.dtype)
    if beta == 0:
        return r
    r += c if beta == 1 else c * number(beta, c.dtype)
    return r


@composite(
    "matmul(Tensor self, Tensor other) -> Tensor",
    py=("__matmul__",),
    out=True,
    autocast="lower",
    tags=("out_same_dtype",),
)
def matmul(self: Any, other: Any) -> Any:
    """The matrix product, batched and broadcast over leading dimensions."""
    a, b = self._a, other._a
    n, m = a.ndim, b.ndim
    if n == 2 and m == 2:
        return mm.call(self, other)
    if n == 1 and m == 1:
        return dot.call(self, other)
    if n == 2 and m == 1:
        return mv.call(self, other)
    if n == 0 or m == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {n}D and {m}D"
        )
    if n == 1 and m == 2:
        return aten.squeeze_(mm.call(aten.unsqueeze(self, 0), other), 0)
    if n >= 3 and m <= 2 and _folds(self, other):
        return _folded(self, other)
    if m >= 3 and n <= 2:  # the same turned round: (other's transpose) @ (self's)
        turned = aten.transpose(other, -2, -1)
        if n == 1 and _folds(turned, self):
            return _folded(turned, self)
        if n == 2 and edge_of(self) is not None:
            r = _folded(turned, aten.t(self))
            return aten.contiguous(aten.transpose(r, -2, -1))
    if n == 3 and m == 3 and a.shape[0] != b.shape[0]:  # a batch of one is no batch
        if a.shape[0] == 1 and edge_of(self) is not None:
            return matmul.call(aten.squeeze(self, 0), other)
        if b.shape[0] == 1 and edge_of(other) is not None:
            return matmul.call(self, aten.squeeze(other, 0))
    return _batched(self, other)


def _folds(many: Any, one: Any) -> bool:
    """Whether the batch becomes rows of one product, as PyTorch decides: if the rows follow each
    other in memory, or if otherwise `one` would be repeated for its gradient."""
    shape = many._a.shape
    if many._k.contiguous and 1 not in shape or edge_of(one) is not None:
        return True
    strides = strides_of(many)  # those of dimensions of size 1 count, too
    return not many._a.size or all(
        strides[i] == strides[i + 1] * shape[i + 1] for i in range(len(shape) - 2)
    )


def _folded(many: Any, one: Any) -> Any:
    """Batches of rows times one matrix or vector."""
    shape = many._a.shape
    flat = aten.reshape(many, (layout.numel(shape[:-1]), shape[-1]))
    if one._a.ndim == 1:
        return aten._unsafe_view(mv.call(flat, one), shape[:-1])
    return aten._unsafe_view(mm.call(flat, one), (*shape[:-1], one._a.shape[1]))


def _batched(self: Any, other: Any) -> Any:
    if self._a.ndim == 1:
        r = _batched(aten.unsqueeze(self, 0), other)
        return aten._unsafe_view(r, (*r._a.shape[:-2], r._a.shape[-1]))
    if other._a.ndim == 1:
        r = _batched(self, aten.unsqueeze(other, 1))
        return aten._unsafe_view(r, r._a.shape[:-1])
    a, b = self._a.shape, other._a.shape
    layout.matmul_shape(a, b)
    lead = layout.broadcast_shapes(a[:-2], b[:-2])
    left = aten.reshape(aten.expand(self, (*lead, *a[-2:])), (layout.numel(lead), *a[-2:]))
    right = aten.reshape(aten.expand(other, (*lead, *b[-2:])), (layout.numel(lead), *b[-2:]))
    return aten._unsafe_view(bmm.call(left, right), (*lead, a[-2], b[-1]))


@face("linalg_matmul", method=False, spaces=(), out=True)
def linalg_matmul(self: Any, other: Any) -> Any:
    """The matrix product, batched and broadcast over leading dimensions."""
    return matmul.call(self, other)


offer("matmul")


@face("__rmatmul__")
def rmatmul(self: Any, other: Any) -> Any:
    """other @ self."""
    return matmul.function(other, self)


@composite(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    spaces=("nn.functional",),
    method=False,
    out=True,
    autocast="lower",
)
def linear(input: Any, weight: Any, bias: Any) -> Any:
    """input @ weightᵀ + bias: (…, in) → (…, out), weight (out, in)."""
    n = input._a.ndim
    if not n:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are 0D and"
            f" {weight._a.ndim}D"
        )
    if bias is not None:
        if n == 2:
            return addmm.call(bias, input, aten.t(weight))
        shape = bias._a.shape
        if input._k.contiguous and (len(shape) == 1 or len(shape) == 2 and shape[0] == 1):
            lead = input._a.shape[:-1]
            rows = aten.view(input, (math.prod(lead), input._a.shape[-1]))
            r = addmm.call(bias, rows, aten.t(weight))
            return aten.view(r, (*lead, r._a.shape[1]))
    r = matmul.call(input, aten.t(weight))
    return r if bias is None else aten.add(r, bias)
