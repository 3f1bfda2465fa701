"""What the families of matrix products, solutions and powers share beside `_lapack`."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.lazy import lazy
from torchlab._core.ops import _lapack
from torchlab._core.ops._reduce import is_float, scalar_name
from torchlab._core.ops.kernels import number

lapack = lazy("scipy.linalg.lapack")

mH = vjp_helper(_lapack.mH)


def check_float(name: str, a: Any) -> None:
    if not is_float(a.dtype):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(a)}"
        )


def without_terms(
    name: str, xp: Any, c: Any, shape: Any, dtype: np.dtype, beta: Any, empty: bool = True
) -> Any:
    """beta · c beside a product of no terms, whose factor is not looked at; nor is beta where the
    result is `empty`."""
    r = xp.zeros(shape, dtype)
    if empty or beta == 0:
        return r
    own = dt.from_numpy(dtype)
    result = dt.combine(own, None, dt.of_scalar(beta))
    if not dt.can_cast(result, own):
        raise RuntimeError(
            f"{name}: result type {result.scalar_name} can't be cast to the desired output type"
            f" {own.scalar_name}"
        )
    r[...] = c
    return r if beta == 1 else (r * number(beta, dtype)).astype(dtype, copy=False)


def fresh_strides(a: Any) -> Any:
    """A contiguous array whose dimensions of size 1 have the strides of its order, too."""
    return a.reshape(-1).reshape(a.shape) if a.ndim > 1 and 1 in a.shape else a


@vjp_helper
def summed_to(g: Any, shape: Any) -> Any:
    """The gradient of what was broadcast from `shape`."""
    return g if g._a.shape == tuple(shape) else aten.sum_to_size(g, tuple(shape))


def lu_solve_each(a: Any, b: Any) -> tuple[Any, Any]:
    """(solutions, infos) of A X = B matrix by matrix: info is the number, from 1, of the first
    pivot that is zero, or 0. Solutions of singular systems are infinite or not numbers."""
    lead = a.shape[:-2]
    x, info = np.empty(b.shape, b.dtype), np.zeros(lead, np.int32)
    factor = _lapack.routine(lapack, "getrf", a.dtype)
    solve = _lapack.routine(lapack, "getrs", a.dtype)
    for i in _lapack.each(lead):
        lu, pivots, info[i] = factor(a[i])
        x[i] = solve(lu, pivots, b[i])[0]
    return x, info


__all__ = ["check_float", "fresh_strides", "lu_solve_each", "mH", "summed_to"]
