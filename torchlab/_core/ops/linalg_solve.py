"""Solutions of linear equations and inverses, in batches. LAPACK does the work.

Results are stored column by column, as LAPACK leaves them.
Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.solve.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.lazy import lazy
from torchlab._core.ops._lapack import (
    INT32,
    check_square,
    column_major,
    column_meta,
    each,
    offer,
    raise_first,
)
from torchlab._core.ops._matrices import fresh_strides, lu_solve_each, mH, summed_to
from torchlab._core.ops._reduce import is_half, scalar_name

blas = lazy("scipy.linalg.blas")


def raise_singular(name: str, info: Any, text: str) -> None:
    """Raise if a matrix was singular; `text` may name the zero `{pivot}`. Nothing is known of
    matrices without elements."""
    if not isinstance(info, MetaArray):
        info = info.get() if hasattr(info, "get") else info  # CuPy's, to the host
        raise_first(info, lambda pivot: text.format(pivot=pivot), name)


_SINGULAR = "The solver failed because the input matrix is singular."
_NO_INVERSE = (
    "The diagonal element {pivot} is zero, the inversion could not be completed because the input "
    "matrix is singular."
)


def check_same_dtype(name: str, a: Any, b: Any) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{scalar_name(a)} and B of type {scalar_name(b)} instead"
        )


def _infos(xp: Any, a: Any, x: Any) -> Any:
    """NumPy raises if a matrix is singular; CuPy does not, and leaves infinities or NaN."""
    if xp is np:
        return np.zeros(a.shape[:-2], INT32)
    bad = ~xp.isfinite(x).all(axis=(-2, -1)) & xp.isfinite(a).all(axis=(-2, -1))
    return (bad * a.shape[-1]).astype(INT32)


def _solutions(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """(X, infos) with A X = B for matrices of the same batch."""
    try:
        x = xp.linalg.solve(a, b)
        return x, _infos(xp, a, x)
    except np.linalg.LinAlgError:
        return lu_solve_each(a, b)


# ---- solve --------------------------------------------------------------------------------------


def _is_vector(a: Any, b: Any) -> bool:
    """Whether B holds vectors: one, or one for every matrix of A."""
    return b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])


def _solve_shape(a: Any, b: Any, left: bool, name: str = "linalg.solve") -> tuple[int, ...]:
    check_square(name, a, "lu_cpu")
    check_same_dtype(name, a, b)
    vector = a.ndim > 1 and _is_vector(a, b)
    if not vector and b.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    rows, columns = (b.shape[-1], 1) if vector else b.shape[-2:]
    if (rows if left else columns) != a.shape[-1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
            f"({a.shape[-2]}x{a.shape[-1]} and {rows}x{columns})"
        )
    if vector:
        return (*layout.broadcast_shapes(a.shape[:-2], b.shape[:-1]), rows)
    return (*layout.broadcast_shapes(a.shape[:-2], b.shape[:-2]), rows, columns)


def _solve_meta(a: Any, b: Any, left: bool = True, check_errors: bool = False) -> Any:
    shape = _solve_shape(a, b, left)
    lead = shape[:-1] if _is_vector(a, b) else shape[:-2]
    by_columns = left and len(shape) > 1
    result = column_meta(shape, a.dtype) if by_columns else MetaArray(shape, a.dtype)
    return result, MetaArray(lead, INT32)


@op(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
    "-> (Tensor result, Tensor info)",
    method=False,
    spaces=(),
    out=True,
    half=False,
    vjp={"A, B": "solve_backward(g0, A, result0, left, A.shape, B.shape, needs)"},
    grad_name="LinalgSolveExBackward0",
    meta=_solve_meta,
)
def linalg_solve_ex(xp: Any, a: Any, b: Any, left: bool, check_errors: bool) -> Any:
    """X with A X = B (or X A = B), and for each matrix 0 or the number of its first zero pivot:
    (…, n, n), (…, n, k) → (…, n, k). A vector B gives a vector."""
    shape = _solve_shape(a, b, left)
    vector = _is_vector(a, b)
    b = b[..., None] if vector else b
    lead = shape[:-1] if vector else shape[:-2]
    a = xp.broadcast_to(a, (*lead, *a.shape[-2:]))
    b = xp.broadcast_to(b, (*lead, *b.shape[-2:]))
    if left:
        x, info = _solutions(xp, a, b)
    else:
        x, info = _solutions(xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2))
        x = x.swapaxes(-1, -2)
    if check_errors:
        raise_singular("torch.linalg.solve_ex", info, _SINGULAR)
    x = x.reshape(shape)
    by_columns = left and x.ndim > 1
    x = column_major(xp, x) if by_columns else fresh_strides(xp.ascontiguousarray(x))
    return x, xp.asarray(info)


@vjp_helper
def solve_backward(
    g: Any, a: Any, x: Any, left: bool, a_shape: Any, b_shape: Any, needs: Any
) -> Any:
    """gB = A⁻ᴴ g and gA = −gB Xᴴ; mirrored for X A = B."""
    to_b = aten.linalg_solve_ex(mH(a), g, left=left)[0]
    to_a = None
    if needs[0]:
        vector = x._a.ndim == a._a.ndim - 1
        gb, y = (aten.unsqueeze(t, -1) for t in (to_b, x)) if vector else (to_b, x)
        to_a = summed_to(-(aten.matmul(gb, mH(y)) if left else aten.matmul(mH(y), gb)), a_shape)
    return to_a, (summed_to(to_b, b_shape) if needs[1] else None)


@composite("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
           out=True, method=False, spaces=(), autocast="float32:cpu")  # fmt: skip
def linalg_solve(A: Any, B: Any, left: bool) -> Any:
    """X with A X = B, or X A = B: (…, n, n), (…, n, k) → (…, n, k); a vector B gives a vector."""
    x, info = linalg_solve_ex.function(A, B, left=left)
    raise_singular("torch.linalg.solve", info._a, _SINGULAR)
    return x


# ---- inverses -----------------------------------------------------------------------------------


@op(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    method=False,
    spaces=(),
    out=True,
    half=False,
    vjp={"A": "inv_backward(g0, result0)"},
    grad_name="LinalgInvExBackward0",
    meta=lambda a, check_errors=False: (
        column_meta(a.shape, a.dtype),
        MetaArray(a.shape[:-2], INT32),
    ),
    autocast="float32:cpu",
)
def linalg_inv_ex(xp: Any, a: Any, check_errors: bool) -> Any:
    """The inverses of square matrices, and 0 or the number of the first zero pivot of each."""
    if is_half(a.dtype) and a.ndim > 1:
        raise RuntimeError(f"linalg.inv: Low precision dtypes not supported. Got {scalar_name(a)}")
    check_square("linalg.inv", a)
    transposed = a.swapaxes(-1, -2)  # its inverse, row by row, is A's column by column
    try:
        r = xp.linalg.inv(transposed).swapaxes(-1, -2)
        info = _infos(xp, a, r)
    except np.linalg.LinAlgError:
        r, info = lu_solve_each(a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape))
        r = column_major(xp, r)
    if check_errors:
        raise_singular("linalg.inv_ex", info, _NO_INVERSE)
    return r, xp.asarray(info)


@vjp_helper
def inv_backward(g: Any, inverse: Any) -> Any:
    """−A⁻ᴴ g A⁻ᴴ."""
    h = mH(inverse)
    return -aten.matmul(h, aten.matmul(g, h))


@composite(
    "linalg_inv(Tensor A) -> Tensor",
    out=True,
    method=False,
    spaces=(),
    tags=("out_same_dtype",),
    autocast="float32:cpu",
)
def linalg_inv(A: Any) -> Any:
    """The inverses of square matrices: (…, n, n) → (…, n, n)."""
    inverse, info = linalg_inv_ex.function(A)
    raise_singular("linalg.inv", info._a, _NO_INVERSE)
    return inverse


@face("inverse", out=True, tags=("out_same_dtype",), autocast="float32:cpu")
def inverse(self: Any) -> Any:
    """The inverses of square matrices (`torchlab.linalg.inv`)."""
    return linalg_inv.function(self)


# ---- triangular matrices ------------------------------------------------------------------------


def _triangular_shape(a: Any, b: Any, left: bool) -> tuple[int, ...]:
    name = "linalg.solve_triangular"
    check_same_dtype(name, a, b)
    if a.dtype.kind in "iub":
        raise NotImplementedError(
            f"\"triangular_solve_cpu\" not implemented for '{scalar_name(a)}'"
        )
    check_square(name, a, "triangular_solve_cpu")
    if b.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if b.shape[-2 if left else -1] != a.shape[-1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )
    return (*layout.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])


@op(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False) -> Tensor",
    method=False,
    spaces=(),
    out=True,
    half=False,
    vjp={
        "self, B": "solve_triangular_backward(g, self, result, upper, left, unitriangular, "
        "self.shape, B.shape, needs)"
    },
    meta=lambda a, b, upper, left=True, unitriangular=False: column_meta(
        _triangular_shape(a, b, left), a.dtype
    ),
)
def linalg_solve_triangular(
    xp: Any, a: Any, b: Any, upper: bool, left: bool, unitriangular: bool
) -> Any:
    """X with A X = B (or X A = B) for triangular A; the other triangle is not read, nor is the
    diagonal if `unitriangular`."""
    shape = _triangular_shape(a, b, left)
    a = xp.broadcast_to(a, (*shape[:-2], *a.shape[-2:]))
    b = xp.broadcast_to(b, shape)
    if xp is not np:
        return _triangular_by_lu(xp, a, b, upper, left, unitriangular)
    solve = blas.get_blas_funcs("trsm", (a, b))
    x = np.empty(shape, a.dtype)
    if x.size:
        for i in each(shape[:-2]):
            x[i] = solve(1, a[i], b[i], side=not left, lower=not upper, diag=unitriangular)
    return column_major(xp, x)


def _triangular_by_lu(xp: Any, a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Any:
    """For array modules without a batched triangular solver: LU of a triangle is cheap enough."""
    a = xp.triu(a, int(unit)) if upper else xp.tril(a, -int(unit))
    if unit:
        a = a + xp.eye(a.shape[-1], dtype=a.dtype)
    if left:
        return column_major(xp, xp.linalg.solve(a, b))
    x = xp.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2))
    return column_major(xp, x.swapaxes(-1, -2))


@vjp_helper
def solve_triangular_backward(
    g: Any,
    a: Any,
    x: Any,
    upper: bool,
    left: bool,
    unitriangular: bool,
    a_shape: Any,
    b_shape: Any,
    needs: Any,
) -> Any:
    """gB = A⁻ᴴ g; gA = −gB Xᴴ in the triangle that was read."""
    to_b = aten.linalg_solve_triangular(
        mH(a), g, upper=not upper, left=left, unitriangular=unitriangular
    )
    to_a = None
    if needs[0]:
        full = -(aten.matmul(to_b, mH(x)) if left else aten.matmul(mH(x), to_b))
        off = int(unitriangular)
        to_a = summed_to(aten.triu(full, off) if upper else aten.tril(full, -off), a_shape)
    return to_a, (summed_to(to_b, b_shape) if needs[1] else None)


# ---- equations of tensors -----------------------------------------------------------------------


@composite(
    "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    out=True,
    method=False,
    spaces=(),
    autocast="float32:cpu",
    tags=("out_copied",),
)
def linalg_tensorinv(self: Any, ind: int) -> Any:
    """The inverse of a tensor as a map from its dimensions from `ind` on to those before."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = self._a.shape
    rows, columns = layout.numel(shape[:ind]), layout.numel(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    inverse, info = linalg_inv_ex.function(aten.reshape(self, (rows, columns)))
    raise_singular("linalg.inv", info._a, _NO_INVERSE)
    return aten.reshape(inverse, (*shape[ind:], *shape[:ind]))


@composite(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    out=True,
    method=False,
    spaces=(),
    autocast="float32:cpu",
    tags=("out_copied",),
)
def linalg_tensorsolve(self: Any, other: Any, dims: Any) -> Any:
    """X with Σ self[…, k] X[k] = other, over all dimensions of X; `dims` are first moved to the
    end of `self`."""
    if dims is not None:
        n = len(dims)
        self = aten.movedim(self, tuple(dims), tuple(range(self._a.ndim - n, self._a.ndim)))
    shape = self._a.shape[other._a.ndim :]
    rows, columns = layout.numel(self._a.shape[: other._a.ndim]), layout.numel(shape)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    flat = aten.reshape(self, (columns, columns))
    return aten.reshape(linalg_solve.function(flat, aten.reshape(other, (-1,))), shape)


offer("solve", "solve_ex", "inv", "inv_ex", "solve_triangular", "tensorinv", "tensorsolve")
