"""The LU factorisation with partial pivoting, A = P L U.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.lu_factor.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.lazy import lazy
from torchlab._core.ops._lapack import (
    INT32,
    batch_of,
    check_type,
    column_empty,
    column_major,
    column_meta,
    deprecated,
    device,
    each,
    host,
    host_of,
    mH,
    named,
    no_data,
    offer,
    raise_first,
    routine,
)
from torchlab._core.ops._reduce import scalar_name
from torchlab._core.ops.kernels import exact

lapack = lazy("scipy.linalg.lapack")


def _check(name: str, a: Any, pivot: bool) -> None:
    if a.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(a.shape)} instead"
        )
    check_type(name, a, "lu_cpu", integers=True)
    if not pivot and a.size:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _factor_meta(a: Any, pivot: bool = True, check_errors: bool = False) -> Any:
    _check("torch.lu_factor", a, pivot)
    *batch, m, n = a.shape
    pivots, infos = MetaArray((*batch, min(m, n)), INT32), MetaArray(batch, INT32)
    return column_meta(a.shape, a.dtype), pivots, infos


def _factor(xp: Any, a: Any) -> Any:
    """(LU column-major, pivots from 1, infos)."""
    *batch, m, n = a.shape
    lu = column_major(np, host(xp, a))
    pivots = np.empty((*batch, min(m, n)), np.int32)
    pivots[...] = np.arange(1, min(m, n) + 1)
    infos = np.zeros(batch, np.int32)
    if a.size:
        getrf = routine(lapack, "getrf", a.dtype)
        for i in each(batch):
            lu[i], pivots[i], infos[i] = getrf(lu[i], overwrite_a=True)
        pivots += 1  # SciPy counts from 0
    return lu, pivots, infos


def _singular(pivot: int) -> str:
    return (
        f"U[{pivot},{pivot}] is zero and using it on lu_solve would result in a division by zero."
        " If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or"
        " linalg.lu_factor_ex(A, pivot)"
    )


@op(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU,"
    " Tensor pivots, Tensor info)",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
    half=False,
    vjp={"A": "lu_factor_backward(g0, result0, result1)"},
    meta=_factor_meta,
)
def linalg_lu_factor_ex(xp: Any, a: Any, pivot: bool, check_errors: bool) -> Any:
    """(LU, pivots, info): L without its unit diagonal below U; rows i and pivots[i] (from 1) were
    exchanged in turn; info k says that U[k, k] is zero."""
    _check("torch.lu_factor", a, pivot)
    lu, pivots, infos = _factor(xp, a)
    if check_errors:
        raise_first(infos, _singular, "torch.linalg.lu_factor_ex", RuntimeError)
    return device(xp, lu, pivots, infos)


@composite(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
)
def linalg_lu_factor(a: Any, pivot: bool) -> Any:
    """(LU, pivots) for `lu_solve`; refuses singular matrices."""
    lu, pivots, infos = linalg_lu_factor_ex.call(a, pivot=pivot)
    if not no_data(infos):
        raise_first(host_of(infos), _singular, "torch.linalg.lu_factor", RuntimeError)
    return named(linalg_lu_factor, (lu, pivots))


@composite(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor"
    " pivots, Tensor info)",
    method=False,
    spaces=("torch",),
    autocast="float32:cpu",
)
def _lu_with_info(self: Any, pivot: bool, check_errors: bool) -> Any:
    """As `linalg.lu_factor_ex`."""
    r = linalg_lu_factor_ex.call(self, pivot=pivot, check_errors=check_errors)
    return named(_lu_with_info, r)


# ---- P, L and U ---------------------------------------------------------------------------------


def _unpack(xp: Any, lu: Any) -> Any:
    *batch, m, n = lu.shape
    k = min(m, n)
    lower = xp.tril(lu[..., :k], -1)
    lower[..., xp.arange(k), xp.arange(k)] = 1
    return xp.ascontiguousarray(lower), xp.ascontiguousarray(xp.triu(lu[..., :k, :]))


def _permutations(pivots: Any, m: int) -> Any:
    """The rows in their order after all exchanges."""
    order = np.empty((*pivots.shape[:-1], m), np.int64)
    order[...] = np.arange(m)
    for i in range(pivots.shape[-1]):
        here = order[..., i].copy()
        other = pivots[..., i : i + 1].astype(np.int64) - 1
        order[..., i] = np.take_along_axis(order, other, -1)[..., 0]
        np.put_along_axis(order, other, here[..., None], -1)
    return order


def _matrices(order: Any, dtype: Any) -> Any:
    p = np.zeros((*order.shape, order.shape[-1]), dtype)
    np.put_along_axis(p, order[..., None, :], np.ones(1, dtype), -2)
    return p


def _unpack_meta(lu: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    _check_unpack(lu, pivots, unpack_pivots)
    *batch, m, n = lu.shape
    k, nothing = min(m, n), MetaArray((0,), lu.dtype)
    p = MetaArray((*batch, m, m), lu.dtype) if unpack_pivots else nothing
    if not unpack_data:
        return p, nothing, nothing
    return p, MetaArray((*batch, m, k), lu.dtype), MetaArray((*batch, k, n), lu.dtype)


def _check_unpack(lu: Any, pivots: Any, unpack_pivots: bool) -> None:
    if lu.ndim < 2:
        raise RuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size:"
            f" {list(lu.shape)} instead"
        )
    if unpack_pivots and pivots.dtype != INT32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32"
            " dtype.\nNote: this function is intended to be used with the output produced by"
            " torch.linalg.lu_factor"
        )


@op(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) ->"
    " (Tensor P, Tensor L, Tensor U)",
    method=False,
    out=True,
    half=False,
    vjp={"LU_data": "lu_unpack_backward(g1, g2, LU_data.shape)"},
    meta=_unpack_meta,
)
@exact
def lu_unpack(xp: Any, lu: Any, pivots: Any, unpack_data: bool, unpack_pivots: bool) -> Any:
    """(P, L, U) from what `lu_factor` gives; parts not asked for are empty."""
    _check_unpack(lu, pivots, unpack_pivots)
    nothing = xp.empty(0, lu.dtype)
    p = nothing
    m = lu.shape[-2]
    if unpack_pivots:
        swaps = host(xp, pivots)
        if swaps.size and not (swaps.min() >= 1 and swaps.max() <= m):
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you"
                " properly pass the result of lu_factor?"
            )
        p = device(xp, _matrices(_permutations(swaps, m), lu.dtype))
    lower, upper = _unpack(xp, lu) if unpack_data else (nothing, nothing.copy())
    return p, lower, upper


@vjp_helper
def lu_unpack_backward(gl: Any, gu: Any, shape: Any) -> Any:
    """L's and U's gradients in the places where the packed form keeps them."""
    if gl is None and gu is None:
        return None
    *batch, m, n = shape
    k = min(m, n)
    lower = None if gl is None else aten.tril(gl, -1)
    upper = None if gu is None else aten.triu(gu)
    if lower is not None and n > k:
        lower = aten.cat([lower, aten.new_zeros(lower, (*batch, m, n - k))], -1)
    if upper is not None and m > k:
        upper = aten.cat([upper, aten.new_zeros(upper, (*batch, m - k, n))], -2)
    if lower is None or upper is None:
        return upper if lower is None else lower
    return lower + upper


@vjp_helper
def lu_factor_backward(g: Any, lu: Any, pivots: Any) -> Any:
    """The gradient of A from that of the packed factors."""
    *_, m, n = lu._a.shape
    k = min(m, n)
    p, lower, upper = lu_unpack.call(lu, pivots)
    gl = aten.tril(aten.narrow(g, -1, 0, k), -1)
    gu = aten.triu(aten.narrow(g, -2, 0, k))
    return lu_backward(gl, gu, p, lower, upper)


@vjp_helper
def lu_backward(gl: Any, gu: Any, p: Any, lower: Any, upper: Any) -> Any:
    """From PᴴA = L U: for square matrices P L⁻ᴴ (tril(Lᴴ gL, −1) + triu(gU Uᴴ)) U⁻ᴴ. What lies
    beside the square of a wide matrix is L⁻¹ times A's part, below that of a tall one A's part
    times U⁻¹: they add to the gradients of the square."""
    if gl is None and gu is None:
        return None
    m, n = lower._a.shape[-2], upper._a.shape[-1]
    k = min(m, n)
    square_l = aten.narrow(lower, -2, 0, k)
    square_u = aten.narrow(upper, -1, 0, k)
    beside = below = None
    from_l = from_u = None
    if gl is not None:
        from_l = mH(square_l) @ aten.tril(aten.narrow(gl, -2, 0, k), -1)
    if gu is not None:
        from_u = aten.triu(aten.narrow(gu, -1, 0, k)) @ mH(square_u)
    if n > k and gu is not None:
        g2, u2 = aten.narrow(gu, -1, k, n - k), aten.narrow(upper, -1, k, n - k)
        from_l = -(g2 @ mH(u2)) if from_l is None else from_l - g2 @ mH(u2)
        beside = _solve(mH(square_l), g2, upper=True, unitriangular=True)
    if m > k and gl is not None:
        g2, l2 = aten.narrow(gl, -2, k, m - k), aten.narrow(lower, -2, k, m - k)
        from_u = -(mH(l2) @ g2) if from_u is None else from_u - mH(l2) @ g2
        below = _solve(mH(square_u), g2, upper=False, left=False)
    inner = aten.tril(from_l, -1) if from_l is not None else 0
    inner = inner + aten.triu(from_u) if from_u is not None else inner
    inner = _solve(mH(square_l), inner, upper=True, unitriangular=True)
    inner = _solve(mH(square_u), inner, upper=False, left=False)
    if n > k:
        if beside is None:
            beside = aten.new_zeros(inner, (*inner.shape[:-1], n - k))
        inner = aten.cat([inner, beside], -1)
    if m > k:
        if below is None:
            below = aten.new_zeros(inner, (*inner.shape[:-2], m - k, inner.shape[-1]))
        inner = aten.cat([inner, below], -2)
    return p @ inner


def _solve(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    return aten.linalg_solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)


def _lu_meta(a: Any, pivot: bool = True) -> Any:
    _check("linalg.lu", a, pivot)
    p, lower, upper = _unpack_meta(a, MetaArray((), INT32))
    return p if pivot else MetaArray((0,), a.dtype), lower, upper


@op(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    method=False,
    spaces=(),
    out=True,
    half=False,
    vjp={"A": "lu_backward(g1, g2, result0, result1, result2)"},
    meta=_lu_meta,
)
def linalg_lu(xp: Any, a: Any, pivot: bool) -> Any:
    """(P, L, U) with A = P L U: P a permutation, L unit lower and U upper triangular."""
    _check("linalg.lu", a, pivot)
    lu, pivots, _ = _factor(xp, a)
    lower, upper = _unpack(np, lu)
    if not pivot:
        return device(xp, np.empty(0, a.dtype), lower, upper)
    return device(xp, _matrices(_permutations(pivots, a.shape[-2]), a.dtype), lower, upper)


# ---- solutions ----------------------------------------------------------------------------------


def _check_solve(lu: Any, pivots: Any, b: Any, left: bool) -> tuple[int, ...]:
    """The broadcast batch."""
    check_type("torch.linalg.lu_solve", lu, "linalg.lu_solve_cpu")
    if lu.ndim < 2:
        raise RuntimeError(
            "torch.linalg.lu_solve: The input tensor A must have at least 2 dimensions."
        )
    n = lu.shape[-1]
    if lu.shape[-2] != n:
        raise RuntimeError(
            "torch.linalg.lu_solve: A must be batches of square matrices, but they are"
            f" {lu.shape[-2]} by {n} matrices"
        )
    if pivots.dtype != INT32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if b.ndim < 2:
        raise RuntimeError("linalg.lu_solve: The input tensor B must have at least 2 dimensions.")
    if b.shape[-2 if left else -1] != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.lu_solve: Incompatible shapes of A and B for the equation {equation} ({n}x{n}"
            f" and {b.shape[-2]}x{b.shape[-1]})"
        )
    if b.dtype != lu.dtype:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type"
            f" {scalar_name(lu)} and B of type {scalar_name(b)} instead"
        )
    if pivots.ndim == 0 or pivots.shape[-1] != n:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the"
            " matrix"
        )
    if tuple(pivots.shape[:-1]) != tuple(lu.shape[:-2]):
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got"
            f" pivots with shape {list(pivots.shape)} instead"
        )
    return batch_of("linalg.lu_solve", lu, b)


def _solve_meta(lu: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    shape = (*_check_solve(lu, pivots, b, left), *b.shape[-2:])
    return column_meta(shape, b.dtype) if left else MetaArray(shape, b.dtype)


@op(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) ->"
    " Tensor",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
    half=False,
    vjp={
        "LU": "lu_solve_factors(g, LU, pivots, result, left, adjoint)",
        "B": "sum_to(linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint), B.shape)",
    },
    meta=_solve_meta,
)
def linalg_lu_solve(xp: Any, lu: Any, pivots: Any, b: Any, left: bool, adjoint: bool) -> Any:
    """X with A X = B (X A = B if not `left`; Aᴴ for A if `adjoint`) from A's factors."""
    batch = _check_solve(lu, pivots, b, left)
    lu, pivots, b = host(xp, lu, pivots, b)
    # X A = B is Aᵀ Xᵀ = Bᵀ; with Aᴴ it is A conj(X)ᵀ = conj(B)ᵀ
    if not left:
        b = (b.conj() if adjoint else b).swapaxes(-1, -2)
    transposed = (2 if adjoint else 0) if left else (0 if adjoint else 1)
    x = column_empty(np, (*batch, *b.shape[-2:]), b.dtype)
    x[...] = b
    if x.size:
        getrs = routine(lapack, "getrs", b.dtype)
        lu = np.broadcast_to(lu, (*batch, *lu.shape[-2:]))
        order = np.broadcast_to(pivots - 1, (*batch, pivots.shape[-1]))
        for i in each(batch):
            x[i] = getrs(lu[i], order[i], x[i], trans=transposed, overwrite_b=True)[0]
    if not left:
        x = (x.conj() if adjoint else x).swapaxes(-1, -2)
    return device(xp, x)


@vjp_helper
def lu_solve_factors(g: Any, lu: Any, pivots: Any, x: Any, left: bool, adjoint: bool) -> Any:
    """The gradient of the packed factors; X A = B is Aᴴ Xᴴ = Bᴴ."""
    if not left:
        return lu_solve_factors(mH(g), lu, pivots, mH(x), True, not adjoint)
    p, lower, upper = lu_unpack.call(aten.detach(lu), pivots)
    _, lower, upper = lu_unpack.call(lu, pivots, True, False)
    if not adjoint:  # d(L U) X = −L U dX
        y = _solve(mH(upper), g, upper=False)
        gl = _solve(mH(lower), y, upper=True, unitriangular=True) @ mH(upper @ x)
        gu = y @ mH(x)
    else:  # Z = Pᵀ X solves Uᴴ Lᴴ Z = B
        z = mH(p) @ x
        y = _solve(lower, mH(p) @ g, upper=False, unitriangular=True)
        gl = z @ mH(y)
        gu = (mH(lower) @ z) @ mH(_solve(upper, y, upper=True))
    return aten.sum_to_size(-(aten.tril(gl, -1) + aten.triu(gu)), tuple(lu.shape))


@composite(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    out=True,
    tags=("lapack", "out_same_dtype"),
    autocast="float32:cpu",
)
def lu_solve(self: Any, lu: Any, pivots: Any) -> Any:
    """X with A X = self; `torchlab.linalg.lu_solve` is preferred."""
    deprecated("lu_solve", "lu_solve", "torch.linalg.lu_solve(LU, pivots, B)")
    return linalg_lu_solve.call(lu, pivots, self)


# ---- the deprecated torch.lu --------------------------------------------------------------------


def _lu(self: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    return tuple(_factored(self, pivot, get_infos))


def _factored(a: Any, pivot: bool, get_infos: bool) -> Any:
    deprecated("lu", "lu_factor / torch.linalg.lu_factor_ex", "torch.linalg.lu_factor(A, pivot)")
    result = _lu_with_info.call(a, pivot, False)
    return result if get_infos else tuple(result)[:2]


@face("lu", method=_lu)
def torch_lu(
    A: Any,
    pivot: bool = True,
    get_infos: bool = False,
    out: Any = None,
) -> Any:
    """(LU, pivots) and, if asked, infos; `torchlab.linalg.lu_factor` is preferred."""
    result = _factored(A, pivot, get_infos)
    if out is None:
        return result
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(result):
        raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
    for o, r in zip(out, result, strict=True):
        aten.copy_(aten.resize_(o, tuple(r.shape)), r)
    return out


offer("lu", "lu_factor", "lu_factor_ex", "lu_solve")
