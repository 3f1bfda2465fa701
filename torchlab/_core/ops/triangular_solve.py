"""`torchlab.triangular_solve`, the older form of `torchlab.linalg.solve_triangular`.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.triangular_solve.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.lazy import lazy
from torchlab._core.ops._lapack import (
    batch_of,
    check_type,
    column_empty,
    column_meta,
    deprecated,
    device,
    each,
    host,
    mH,
    routine,
)
from torchlab._core.ops._reduce import scalar_name

blas = lazy("scipy.linalg.blas")


def _check(b: Any, a: Any) -> tuple[int, ...]:
    """The broadcast batch."""
    name = "torch.triangular_solve"
    for what, x in (("b", b), ("A", a)):
        if x.ndim < 2:
            raise RuntimeError(
                f"{name}: Expected {what} to have at least 2 dimensions, but it has {x.ndim}"
                " dimensions instead"
            )
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
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {a.shape[-1]} by"
            f" {a.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    check_type("triangular_solve", b, "triangular_solve_cpu", integers=True)
    return batch_of("triangular_solve", b, a)


def _meta(
    b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    batch = _check(b, a)
    solution = column_meta((*batch, *b.shape[-2:]), b.dtype)
    return solution, column_meta((*batch, *a.shape[-2:]), a.dtype)


@op(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool"
    " unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    out=True,
    tags=("lapack", "out_same_dtype"),
    half=False,
    vjp={
        "self, A": "triangular_solve_gradient(g0, g1, self.shape, A, result0, upper, transpose,"
        " unitriangular)"
    },
    meta=_meta,
    autocast="float32:cpu",
)
def triangular_solve(
    xp: Any, b: Any, a: Any, upper: bool, transpose: bool, unitriangular: bool
) -> Any:
    """(X, a copy of A) with A X = self, or Aᵀ X = self if `transpose`; A is triangular."""
    deprecated("triangular_solve", "solve_triangular", "torch.linalg.solve_triangular(A, B)")
    batch = _check(b, a)
    b, a = host(xp, b, a)
    x = column_empty(np, (*batch, *b.shape[-2:]), b.dtype)
    coefficient = column_empty(np, (*batch, *a.shape[-2:]), a.dtype)
    x[...] = b
    coefficient[...] = a
    if x.size:
        trsm = routine(blas, "trsm", b.dtype)
        for i in each(batch):
            x[i] = trsm(
                1,
                coefficient[i],
                x[i],
                lower=not upper,
                trans_a=int(transpose),
                diag=int(unitriangular),
                overwrite_b=True,
            )
    return device(xp, x, coefficient)


@vjp_helper
def triangular_solve_gradient(
    gx: Any,
    ga: Any,
    shape: Any,
    a: Any,
    x: Any,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
) -> Any:
    """gB = A⁻ᴴ gX and gA = −gB Xᴴ in A's triangle."""
    to_a = ga
    to_b = None
    if gx is not None:
        if transpose:
            matrix, up = aten.conj(a) if a._k.dtype.is_complex else a, upper
        else:
            matrix, up = mH(a), not upper
        to_b = aten.linalg_solve_triangular(matrix, gx, upper=up, unitriangular=unitriangular)
        part = -(conj(x) @ aten.transpose(to_b, -2, -1)) if transpose else -(to_b @ mH(x))
        shift = int(unitriangular)
        part = aten.triu(part, shift) if upper else aten.tril(part, -shift)
        to_a = part if ga is None else part + ga
        to_b = aten.sum_to_size(to_b, tuple(shape))
    return to_b, None if to_a is None else aten.sum_to_size(to_a, tuple(a._a.shape))


def conj(x: Any) -> Any:
    return aten.conj(x) if x._k.dtype.is_complex else x
