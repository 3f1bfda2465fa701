"""The factorisation A = L D Lᵀ of symmetric (or L D Lᴴ of Hermitian) matrices that need not be
positive-definite: Bunch and Kaufman's pivoting, D has blocks of 1 × 1 and 2 × 2.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.ldl_factor.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, op
from torchlab._core.lazy import lazy
from torchlab._core.ops._lapack import (
    INT32,
    batch_of,
    check_square,
    column_empty,
    column_major,
    column_meta,
    device,
    each,
    host,
    host_of,
    named,
    no_data,
    offer,
    raise_first,
    routine,
)
from torchlab._core.ops._reduce import scalar_name

lapack = lazy("scipy.linalg.lapack")
_BLOCK = 64  # LAPACK's blocked algorithm wants n × block elements of work space


def _check(a: Any) -> None:
    check_square("torch.linalg.ldl_factor_ex", a, "ldl_factor_kernel_cpu")


def _factor_meta(a: Any, hermitian: bool = False, check_errors: bool = False) -> Any:
    _check(a)
    ints = MetaArray(a.shape[:-1], INT32), MetaArray(a.shape[:-2], INT32)
    return column_meta(a.shape, a.dtype), *ints


def _hermitian(a: Any, hermitian: bool) -> str:
    return "he" if hermitian and a.dtype.kind == "c" else "sy"


def _singular(block: int) -> str:
    return (
        f"The factorization has been completed, but D[{block},{block}] is zero: the matrix is"
        " singular, and solving with it would divide by zero."
    )


@op(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor"
    " LD, Tensor pivots, Tensor info)",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
    half=False,
    vjp={"self": "no_derivative_for('aten::linalg_ldl_factor_ex', g0)"},
    grad_name="NotImplementedBackward",
    meta=_factor_meta,
)
def linalg_ldl_factor_ex(xp: Any, a: Any, hermitian: bool, check_errors: bool) -> Any:
    """(LD, pivots, info): D on the diagonal of LD and L below; negative pivots mark blocks of
    2 × 2; info k says that D[k, k] is zero. Only the lower triangle is read."""
    _check(a)
    batch = a.shape[:-2]
    n = a.shape[-1]
    factor = column_major(np, np.tril(host(xp, a)))
    pivots, infos = np.zeros((*batch, n), np.int32), np.zeros(batch, np.int32)
    if factor.size:
        trf = routine(lapack, _hermitian(a, hermitian) + "trf", a.dtype)
        for i in each(batch):
            factor[i], pivots[i], infos[i] = trf(
                factor[i], lower=True, lwork=n * _BLOCK, overwrite_a=True
            )
    if check_errors:
        raise_first(infos, _singular, "torch.linalg.ldl_factor_ex")
    return device(xp, factor, pivots, infos)


@composite(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
)
def linalg_ldl_factor(self: Any, hermitian: bool) -> Any:
    """(LD, pivots) for `ldl_solve`; refuses singular matrices."""
    ld, pivots, infos = linalg_ldl_factor_ex.call(self, hermitian=hermitian)
    if not no_data(infos):
        raise_first(host_of(infos), _singular, "torch.linalg.ldl_factor")
    return named(linalg_ldl_factor, (ld, pivots))


def _check_solve(ld: Any, pivots: Any, b: Any) -> tuple[int, ...]:
    name = "torch.linalg.ldl_solve"
    check_square(name, ld, "ldl_solve_kernel_cpu")
    if b.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected B to have at least 2 dimensions, but it has {b.ndim} dimensions"
            " instead"
        )
    if tuple(ld.shape[:-1]) != tuple(pivots.shape):
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with"
            f" shape {list(pivots.shape)} instead"
        )
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {scalar_name(pivots)}")
    if ld.dtype != b.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_name(b)} and A"
            f" of type {scalar_name(ld)} instead."
        )
    n = ld.shape[-1]
    if b.shape[-2] != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix"
            f" is {b.shape[-2]} by {b.shape[-1]}"
        )
    return (*batch_of(name, ld, b), *b.shape[-2:])


@op(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack", "out_unrecorded"),
    half=False,
    vjp={
        "LD": "no_derivative_for('aten::linalg_ldl_solve', g)",
        "B": "no_derivative_for('aten::linalg_ldl_solve', g)",
    },
    grad_name="NotImplementedBackward",
    meta=lambda ld, pivots, b, hermitian=False: column_meta(_check_solve(ld, pivots, b), b.dtype),
)
def linalg_ldl_solve(xp: Any, ld: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    """X with A X = B from what `ldl_factor` gives."""
    shape = _check_solve(ld, pivots, b)
    ld, pivots, b = host(xp, ld, pivots, b)
    x = column_empty(np, shape, b.dtype)
    x[...] = b
    if x.size:
        trs = routine(lapack, _hermitian(ld, hermitian) + "trs", b.dtype)
        factor = np.broadcast_to(ld, (*shape[:-2], *ld.shape[-2:]))
        order = np.broadcast_to(pivots.astype(np.int32), (*shape[:-2], ld.shape[-1]))
        for i in each(shape[:-2]):
            x[i] = trs(factor[i], order[i], x[i], lower=True, overwrite_b=True)[0]
    return device(xp, x)


offer("ldl_factor", "ldl_factor_ex", "ldl_solve")
