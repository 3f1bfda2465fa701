"""The Cholesky factorisation A = L Lᴴ of positive-definite matrices, and what is made with it.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.cholesky.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.lazy import lazy
from torchlab._core.ops._lapack import (
    INT32,
    batch_of,
    check_square,
    check_type,
    column_empty,
    column_major,
    column_meta,
    deprecated,
    device,
    diag,
    each,
    host,
    host_of,
    mH,
    no_data,
    offer,
    raise_first,
    routine,
)
from torchlab._core.ops._reduce import scalar_name

lapack = lazy("scipy.linalg.lapack")


def _not_positive(minor: int) -> str:
    return (
        "The factorization could not be completed because the input is not positive-definite (the"
        f" leading minor of order {minor} is not positive-definite)."
    )


def _check(a: Any) -> None:
    check_square("linalg.cholesky", a, "cholesky_cpu")


def _factor(xp: Any, a: Any, upper: bool) -> tuple[Any, Any]:
    """(factors, infos) in host memory."""
    batch = a.shape[:-2]
    factor = column_major(np, host(xp, a))
    infos = np.zeros(batch, np.int32)
    if factor.size:
        potrf = routine(lapack, "potrf", a.dtype)
        for i in each(batch):
            factor[i], infos[i] = potrf(factor[i], lower=not upper, clean=True, overwrite_a=True)
        # LAPACK stops at a pivot that is NaN, OpenBLAS goes on.
        lost = np.isnan(np.diagonal(factor, axis1=-2, axis2=-1))
        if lost.any():
            minors = (lost.argmax(-1) + 1).astype(np.int32)
            infos = np.where((infos == 0) & lost.any(-1), minors, infos)
    return factor, infos


def _ex_meta(a: Any, upper: bool = False, check_errors: bool = False) -> Any:
    _check(a)
    return column_meta(a.shape, a.dtype), MetaArray(a.shape[:-2], INT32)


@op(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L,"
    " Tensor info)",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
    half=False,
    vjp={"self": "cholesky_backward(g0, result0, upper)"},
    meta=_ex_meta,
    autocast="float32:cpu",
)
def linalg_cholesky_ex(xp: Any, a: Any, upper: bool, check_errors: bool) -> Any:
    """(L, info): info is 0, or the order of the first leading minor that is not positive."""
    _check(a)
    factor, infos = _factor(xp, a, upper)
    if check_errors:
        raise_first(infos, _not_positive, "linalg.cholesky_ex")
    return device(xp, factor, infos)


@composite(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
    autocast="float32:cpu",
)
def linalg_cholesky(self: Any, upper: bool) -> Any:
    """L with A = L Lᴴ, lower triangular; with `upper` U with A = Uᴴ U."""
    factor, infos = linalg_cholesky_ex.call(self, upper=upper)
    if not no_data(infos):
        raise_first(host_of(infos), _not_positive, "linalg.cholesky")
    return factor


@vjp_helper
def cholesky_backward(g: Any, factor: Any, upper: bool) -> Any:
    """Murray (2016), "Differentiation of the Cholesky decomposition",
    https://arxiv.org/abs/1602.07527: L⁻ᴴ Φ(Lᴴ gL) L⁻¹, made Hermitian."""
    if upper:
        g, factor = mH(g), mH(factor)
    h = mH(factor)
    phi = aten.tril(h @ g)
    d = diag(phi)
    d = aten.real(d) if d._k.dtype.is_complex else d
    phi = (phi + mH(phi) - aten.diag_embed(d)) * 0.5
    left = aten.linalg_solve_triangular(h, phi, upper=True)
    return aten.linalg_solve_triangular(factor, left, upper=False, left=False)


# ---- the older functions ------------------------------------------------------------------------


def _check_old(a: Any) -> None:
    check_square("cholesky", a, "cholesky_cpu", integers=True)


def _cholesky_meta(a: Any, upper: bool = False) -> Any:
    _check_old(a)
    return column_meta(a.shape, a.dtype)


@op(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    out=True,
    half=False,
    vjp={"self": "cholesky_backward(g, result, upper)"},
    meta=_cholesky_meta,
    autocast="float32:cpu",
)
def cholesky(xp: Any, a: Any, upper: bool) -> Any:
    """As `torchlab.linalg.cholesky`, which is preferred."""
    deprecated("cholesky", "cholesky", "torch.linalg.cholesky(A), with .mH where upper=True")
    _check_old(a)
    factor, infos = _factor(xp, a, upper)
    raise_first(infos, _not_positive, "cholesky")
    return device(xp, factor)


def _inverse_meta(a: Any, upper: bool = False) -> Any:
    check_square("cholesky_inverse", a, "cholesky_inverse_out_cpu", integers=True)
    return column_meta(a.shape, a.dtype)


@op(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    out=True,
    tags=("lapack",),
    half=False,
    vjp={"self": "cholesky_inverse_backward(g, self, upper, result)"},
    meta=_inverse_meta,
    autocast="float32:cpu",
)
def cholesky_inverse(xp: Any, a: Any, upper: bool) -> Any:
    """A⁻¹ from A's Cholesky factor: (L Lᴴ)⁻¹, or (Uᴴ U)⁻¹ if `upper`."""
    check_square("cholesky_inverse", a, "cholesky_inverse_out_cpu", integers=True)
    batch = a.shape[:-2]
    inverse = column_major(np, host(xp, a))
    infos = np.zeros(batch, np.int32)
    if inverse.size:
        potri = routine(lapack, "potri", a.dtype)
        for i in each(batch):
            inverse[i], infos[i] = potri(inverse[i], lower=not upper, overwrite_c=True)
        raise_first(infos, _singular, "cholesky_inverse")
        # LAPACK leaves the other triangle as it was
        half = np.triu(inverse, 1) if upper else np.tril(inverse, -1)
        kept = np.einsum("...ii->...i", inverse).copy()
        inverse[...] = half + half.conj().swapaxes(-1, -2)
        at = np.arange(a.shape[-1])
        inverse[..., at, at] = kept
    return device(xp, inverse)


def _singular(element: int) -> str:
    return (
        f"The diagonal element {element} is zero, the inversion could not be completed because the"
        " input matrix is singular."
    )


@vjp_helper
def cholesky_inverse_backward(g: Any, factor: Any, upper: bool, inverse: Any) -> Any:
    """d(A⁻¹) = −A⁻¹ dA A⁻¹ with dA = dL Lᴴ + L dLᴴ."""
    common = inverse @ (g + mH(g)) @ inverse
    return -(factor @ common) if upper else -(common @ factor)


def _check_solve(b: Any, a: Any) -> tuple[int, ...]:
    if b.ndim < 2:
        raise RuntimeError(
            f"b should have at least 2 dimensions, but has {b.ndim} dimensions instead"
        )
    if a.ndim < 2:
        raise RuntimeError(
            f"u should have at least 2 dimensions, but has {a.ndim} dimensions instead"
        )
    same_kind("cholesky_solve", a, b)
    check_type("cholesky_solve", b, "cholesky_solve_cpu", integers=True)
    return (*batch_of("cholesky_solve", b, a), *b.shape[-2:])


def same_kind(name: str, a: Any, b: Any) -> None:
    """The checks that PyTorch's older solvers have in common."""
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_name(b)} and A"
            f" of type {scalar_name(a)} instead."
        )
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {a.shape[-2]} by"
            f" {a.shape[-1]} matrices"
        )
    if a.shape[-2] != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {a.shape[-1]} by"
            f" {a.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )


@op(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    out=True,
    half=False,
    vjp={
        "self": "sum_to(cholesky_solve(g, input2, upper), self.shape)",
        "input2": "cholesky_solve_factor(g, input2, result, upper)",
    },
    meta=lambda b, a, upper=False: column_meta(_check_solve(b, a), b.dtype),
    autocast="float32:cpu",
)
def cholesky_solve(xp: Any, b: Any, a: Any, upper: bool) -> Any:
    """X with A X = self from A's Cholesky factor `input2`."""
    shape = _check_solve(b, a)
    b, a = host(xp, b, a)
    x = column_empty(np, shape, b.dtype)
    x[...] = b
    if x.size:
        potrs = routine(lapack, "potrs", b.dtype)
        factor = np.broadcast_to(a, (*shape[:-2], *a.shape[-2:]))
        for i in each(shape[:-2]):
            x[i] = potrs(factor[i], x[i], lower=not upper, overwrite_b=True)[0]
    return device(xp, x)


@vjp_helper
def cholesky_solve_factor(g: Any, factor: Any, x: Any, upper: bool) -> Any:
    """The gradient of L from dX = −A⁻¹ (dL Lᴴ + L dLᴴ) X."""
    common = cholesky_solve.call(g, factor, upper) @ mH(x)
    common = common + mH(common)
    gl = -(factor @ common) if upper else -(common @ factor)
    return aten.sum_to_size(gl, tuple(factor.shape))


offer("cholesky", "cholesky_ex")
