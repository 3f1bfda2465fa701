"""Least squares: the X of smallest ‖A X − B‖, by four of LAPACK's drivers.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.lstsq.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, op
from torchlab._core.dispatch.registry import aten, vjp_helper, vjp_helpers
from torchlab._core.lazy import lazy
from torchlab._core.ops._lapack import (
    column_strides,
    device,
    each,
    host,
    named,
    offer,
    raise_first,
    routine,
)
from torchlab._core.ops._matrices import mH, summed_to
from torchlab._core.ops._reduce import scalar_name

lapack = lazy("scipy.linalg.lapack")
scipy_linalg = lazy("scipy.linalg")
_NAME = "torch.linalg.lstsq"
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")
_INT64 = np.dtype(np.int64)


def _is_vector(a: Any, b: Any) -> bool:
    return b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])


def _check(a: Any, b: Any, driver: str) -> tuple[tuple[int, ...], bool]:
    """(the batch's shape, whether B holds vectors)."""
    if a.ndim < 2:
        raise RuntimeError(f"{_NAME}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{_NAME}: other must have at least 1 dimension.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{_NAME}: Expected input and other to have the same dtype, but got input's dtype "
            f"{scalar_name(a)} and other's dtype {scalar_name(b)}"
        )
    if a.dtype.char not in "fdFD":
        raise RuntimeError(
            f"{_NAME}: This function doesn't handle types other than float and double, real or "
            f"complex; got {scalar_name(a)}"
        )
    if driver not in _DRIVERS:
        raise RuntimeError(
            f"{_NAME}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    vector = _is_vector(a, b)
    if a.shape[-2] != b.shape[-1 if vector else -2]:
        which = "other.size(-1)" if vector else "other.size(-2)"
        raise RuntimeError(
            f"{_NAME}: input.size(-2) should match {which} (shapes {list(a.shape)} and "
            f"{list(b.shape)})"
        )
    lead = layout.broadcast_shapes(a.shape[:-2], b.shape[:-1] if vector else b.shape[:-2])
    return lead, vector


def _real(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype


def _solution_strides(a: Any, b: Any, lead: Any, vector: bool) -> Any:
    """LAPACK writes X over B, padded to the longer side of A: X is its upper part."""
    rows = max(a.shape[-2:])
    if vector:
        return layout.contiguous_strides((*lead, rows))
    return column_strides((*lead, rows, b.shape[-1]))


def _meta(a: Any, b: Any, rcond: Any, driver: str) -> Any:
    lead, vector = _check(a, b, driver)
    m, n = a.shape[-2:]
    k = () if vector else (b.shape[-1],)
    strides = _solution_strides(a, b, lead, vector)
    return (
        MetaArray((*lead, n, *k), a.dtype, strides),
        MetaArray((*lead, *(k or (1,))) if m > n and driver != "gelsy" else (0,), _real(a.dtype)),
        MetaArray(lead if driver != "gels" else (0,), _INT64),
        MetaArray((*lead, min(m, n)) if driver in ("gelsd", "gelss") else (0,), _real(a.dtype)),
    )


@op(
    "_linalg_lstsq(Tensor self, Tensor b, float rcond, str driver) -> (Tensor solution, "
    "Tensor residuals, Tensor rank, Tensor singular_values)",
    method=False,
    public=False,
    half=False,
    vjp={"self, b": "lstsq_backward(g0, g1, self, b, result0, needs)"},
    grad_name="LinalgLstsqBackward0",
    meta=_meta,
)
def lstsq_(xp: Any, a: Any, b: Any, rcond: float, driver: str) -> Any:
    """(X, squared residuals, rank, singular values): the last three are empty where the driver
    does not find them, the residuals also where a matrix has not full rank."""
    lead, vector = _check(a, b, driver)
    m, n = a.shape[-2:]
    k = 1 if vector else b.shape[-1]
    real = _real(a.dtype)
    wide = np.zeros((*lead, k, max(m, n)), a.dtype).swapaxes(-1, -2)
    rank = np.zeros(lead, _INT64)
    values = np.zeros((*lead, min(m, n)), real)
    a, b = host(xp, a, b)
    a = np.broadcast_to(a, (*lead, m, n))
    right = np.broadcast_to(b[..., None] if vector else b, (*lead, m, k))
    if wide.size and m and n:
        if driver == "gels":
            _full_rank(a, right, wide, lead)
        else:
            for i in each(lead):
                x, _, rank[i], s = scipy_linalg.lstsq(
                    a[i], right[i], cond=rcond, lapack_driver=driver, check_finite=False
                )
                wide[i][:n] = x
                if s is not None:
                    values[i] = s
    residuals = np.zeros(0, real)
    full = driver == "gels" or bool((rank == min(m, n)).all())
    if m > n and driver != "gelsy" and full:
        d = right - a @ wide[..., :n, :]
        residuals = (d.real**2 + d.imag**2).sum(-2)
    solution = wide[..., :n, 0] if vector else wide[..., :n, :]
    empty = np.zeros(0, real)
    return device(
        xp,
        solution,
        residuals,
        np.zeros(0, _INT64) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else empty,
    )


def _full_rank(a: Any, b: Any, wide: Any, lead: Any) -> None:
    """`gels`: QR or LQ of matrices taken to have full rank."""
    solve = routine(lapack, "gels", a.dtype)
    infos = np.zeros(lead, np.int32)
    m = a.shape[-2]
    for i in each(lead):
        padded = wide[i].copy(order="F")
        padded[:m] = b[i]
        _, wide[i], infos[i] = solve(a[i], padded)
    raise_first(
        infos,
        lambda at: (
            "The least squares solution could not be computed because the input matrix does not "
            f"have full rank (error code: {at})."
        ),
        _NAME,
    )


@vjp_helper
def lstsq_backward(to_x: Any, to_residuals: Any, a: Any, b: Any, x: Any, needs: Any) -> Any:
    """X = A⁺ B; the squared residuals are stationary in X."""
    vector = _is_vector(a._a, b._a)
    column = (lambda t: aten.unsqueeze(t, -1)) if vector else (lambda t: t)
    to_a = to_b = None
    right, solution = column(b), column(x)
    if to_x is not None:
        p, g = aten.linalg_pinv(a), column(to_x)
        if needs[0]:
            to_p = aten.matmul(g, mH(right))
            to_a = summed_to(vjp_helpers["pinv_backward"](to_p, p, a), a._a.shape)
        if needs[1]:
            to_b = aten.matmul(mH(p), g)
    if to_residuals is not None and to_residuals._a.size:
        d = aten.matmul(a, solution) - right
        d = 2 * d * aten.unsqueeze(to_residuals, -2)
        if needs[0]:
            part = summed_to(aten.matmul(d, mH(solution)), a._a.shape)
            to_a = part if to_a is None else to_a + part
        if needs[1]:
            to_b = -d if to_b is None else to_b - d
    if to_b is not None:
        to_b = summed_to(aten.squeeze(to_b, -1) if vector else to_b, b._a.shape)
    return to_a, to_b


@composite(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> "
    "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    out=True,
    method=False,
    spaces=(),
    autocast="float32:cpu",
)
def linalg_lstsq(self: Any, b: Any, rcond: Any, driver: Any) -> Any:
    """The X of smallest ‖A X − B‖: (…, m, n), (…, m, k) → (…, n, k), with the squared residuals,
    the rank and the singular values as far as the driver finds them. Singular values up to rcond
    times the largest count as 0; by default rcond is ε times the longer side."""
    _check(self._a, b._a, driver or "gelsy")
    if rcond is None:
        rcond = float(np.finfo(self._a.dtype).eps) * max(self._a.shape[-2:])
    return named(linalg_lstsq, lstsq_.call(self, b, float(rcond), driver or "gelsy"))


offer("lstsq")
