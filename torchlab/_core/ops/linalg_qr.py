"""The QR factorisation A = Q R.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.qr.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._lapack import (
    check_matrix,
    check_type,
    column_empty,
    column_major,
    column_meta,
    deprecated,
    diag,
    mH,
    named,
    offer,
    wants_gradient,
)


def _check(a: Any, mode: str) -> None:
    check_matrix("linalg.qr", a, "geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r',"
            " or 'complete'"
        )


def _qr_meta(a: Any, mode: str = "reduced") -> Any:
    _check(a, mode)
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    q = MetaArray((0,), a.dtype) if mode == "r" else column_meta((*batch, m, k), a.dtype)
    return q, column_meta((*batch, k, n), a.dtype)


@op(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    method=False,
    spaces=(),
    out=True,
    tags=("lapack", "out_same_dtype"),
    half=False,
    vjp={"A": "qr_backward(g0, g1, result0, result1, mode)"},
    meta=_qr_meta,
    autocast="float32:cpu",
)
def linalg_qr(xp: Any, a: Any, mode: str) -> Any:
    """(Q, R): Q has orthonormal columns, R is upper triangular. `mode` 'reduced' gives min(m, n)
    columns, 'complete' m, and 'r' no Q."""
    _check(a, mode)
    *batch, m, n = a.shape
    if a.size:
        if mode == "r":
            return xp.empty(0, a.dtype), column_major(xp, xp.linalg.qr(a, mode="r"))
        q, r = xp.linalg.qr(a, mode=mode)
        return column_major(xp, q), column_major(xp, r)
    k = m if mode == "complete" else min(m, n)
    r = column_empty(xp, (*batch, k, n), a.dtype)
    r[...] = 0
    if mode == "r":
        return xp.empty(0, a.dtype), r
    q = column_empty(xp, (*batch, m, k), a.dtype)
    q[...] = xp.eye(m, k)
    return q, r


@vjp_helper
def qr_backward(gq: Any, gr: Any, q: Any, r: Any, mode: str) -> Any:
    """Seeger et al. (2017), "Auto-differentiating linear algebra",
    https://arxiv.org/abs/1710.08717; wide matrices: Roberts and Roberts (2020), "QR and LQ
    decomposition matrix backpropagation algorithms", https://arxiv.org/abs/2009.10071."""
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please"
            " use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if gq is None and gr is None:
        return None
    m, n = q._a.shape[-2], r._a.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    if m >= n:
        return _tall(gq, gr, q, r)
    # A = (X | Y) with X = Q U square and Y = Q V
    u = aten.narrow(r, -1, 0, m)
    if gr is None:
        left = _tall(gq, None, q, u)
        return aten.cat([left, aten.new_zeros(left, (*left.shape[:-1], n - m))], -1)
    v, gv = aten.narrow(r, -1, m, n - m), aten.narrow(gr, -1, m, n - m)
    from_v = q @ (v @ mH(gv))
    left = _tall(from_v if gq is None else gq + from_v, aten.narrow(gr, -1, 0, m), q, u)
    return aten.cat([left, q @ gv], -1)


def _tall(gq: Any, gr: Any, q: Any, r: Any) -> Any:
    x = None
    if gr is not None:
        x = gr @ mH(r)
    if gq is not None:
        x = -(mH(q) @ gq) if x is None else x - mH(q) @ gq
    x = aten.triu(x)
    d = diag(x)
    x = x + mH(x) - aten.diag_embed(aten.real(d) if d._k.dtype.is_complex else d)
    x = q @ x
    if gq is not None:
        x = x + gq
    return aten.linalg_solve_triangular(mH(r), x, upper=False, left=False)


@composite(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    out=True,
    tags=("lapack", "out_same_dtype"),
    autocast="float32:cpu",
)
def qr(self: Any, some: bool) -> Any:
    """(Q, R) with A = Q R; `torchlab.linalg.qr` is preferred."""
    deprecated("qr", "qr", "torch.linalg.qr(A, 'reduced' if some else 'complete')")
    return named(qr, linalg_qr.call(self, "reduced" if some else "complete"))


def _check_geqrf(a: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_type("torch.geqrf", a, "geqrf_cpu", integers=True)


def _geqrf_meta(a: Any) -> Any:
    _check_geqrf(a)
    *batch, m, n = a.shape
    return column_meta(a.shape, a.dtype), MetaArray((*batch, min(m, n)), a.dtype)


@op(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    out=True,
    tags=("lapack",),
    public=False,
    half=False,
    vjp={"self": "no_derivative_of_geqrf(g0, g1)"},
    meta=_geqrf_meta,
    autocast="float32:cpu",
)
def geqrf_(xp: Any, a: Any) -> Any:
    """LAPACK's form of A = Q R: R in and above the diagonal, the Householder vectors of Q below
    it, and their factors tau."""
    _check_geqrf(a)
    if not a.size:
        tau = xp.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
        return column_empty(xp, a.shape, a.dtype), tau
    h, tau = xp.linalg.qr(a, mode="raw")
    return column_major(xp, xp.swapaxes(h, -1, -2), a.dtype), xp.asarray(tau, a.dtype)


@face("geqrf")
def geqrf(self: Any, *, out: Any = None) -> Any:
    """(a, tau): LAPACK's form of A = Q R. R lies in and above the diagonal of a, the Householder
    vectors of Q below it; tau are their factors."""
    if out is not None:
        return geqrf_.out(self, out=out)
    if self._k.dtype.is_complex and wants_gradient(self):
        raise RuntimeError(
            "geqrf does not support automatic differentiation for outputs with complex dtype."
        )
    return geqrf_.call(self)


@vjp_helper
def no_derivative_of_geqrf(ga: Any, gtau: Any) -> Any:
    """PyTorch has no formula for it either."""
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


offer("qr")
