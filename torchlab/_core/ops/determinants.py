"""Determinants and their logarithms, in batches.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.linalg.det.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._lapack import check_square, named, offer
from torchlab._core.ops._matrices import mH


def _real(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype


@op(
    "linalg_det(Tensor A) -> Tensor",
    method=False,
    spaces=(),
    out=True,
    half=False,
    tags=("out_same_dtype",),
    vjp={"A": "det_backward(g, A, result)"},
    meta=lambda a: MetaArray(a.shape[:-2], a.dtype),
)
def linalg_det(xp: Any, a: Any) -> Any:
    """The determinants of square matrices: (…, n, n) → (…)."""
    check_square("linalg.det", a, "lu_cpu")
    return xp.asarray(xp.linalg.det(a), dtype=a.dtype)


@face("det", out=True)
def det(self: Any) -> Any:
    """The determinants of square matrices (`torchlab.linalg.det`)."""
    return linalg_det.function(self)


@vjp_helper
def det_backward(g: Any, a: Any, result: Any) -> Any:
    """d det(A) / dA = det(A) · A⁻ᵀ; matrices that have no inverse have cofactors."""
    if a._a.shape[-1] == 0:
        return aten.zeros_like(a)
    k = aten.unsqueeze(aten.unsqueeze(g, -1), -1)
    if a._a.shape[-1] == 1:
        return aten.expand(k, a._a.shape)
    if result._level or aten.any(result == 0).item():  # (wrappers: no data to look at)
        cofactors = aten._cofactors(a)
        return k * (aten.conj(cofactors) if a._k.dtype.is_complex else cofactors)
    r = aten.conj(result) if a._k.dtype.is_complex else result
    return k * aten.unsqueeze(aten.unsqueeze(r, -1), -1) * mH(aten.linalg_inv(a))


@op(
    "_cofactors(Tensor A) -> Tensor",
    method=False,
    public=False,
    half=False,
    vjp={"A": "cofactors_backward(g, A)"},
    meta=lambda a: MetaArray(a.shape, a.dtype),
)
def cofactors(xp: Any, a: Any) -> Any:
    """The matrices of cofactors, also of singular matrices: with A = U S Vᴴ they are
    det(U) det(Vᴴ) conj(U) C Vᵀ, where C has for each singular value the product of the others."""
    u, s, vh = xp.linalg.svd(a)
    n = s.shape[-1]
    others = xp.where(xp.eye(n, dtype=bool), s.dtype.type(1), s[..., None, :]).prod(axis=-1)
    factor = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
    return (factor * ((xp.conj(u) * others[..., None, :]) @ xp.conj(vh))).astype(a.dtype)


@vjp_helper
def cofactors_backward(g: Any, a: Any) -> Any:
    """The gradient through the determinants of all minors."""
    n = a._a.shape[-1]
    if n == 1:
        return aten.zeros_like(a)
    total = None
    places = [[x for x in range(n) if x != i] for i in range(n)]
    index = [aten.tensor(p, device=a.device) for p in places]
    for i in range(n):
        rows = aten.index_select(a, -2, index[i])
        for j in range(n):
            minor = aten.index_select(rows, -1, index[j])
            weight = aten.select(aten.select(g, -1, j), -1, i) * (-1) ** (i + j)
            part = det_backward(weight, minor, aten.linalg_det(minor))
            wide = aten.index_add(
                aten.zeros((*part._a.shape[:-1], n), dtype=a.dtype, device=a.device),
                -1,
                index[j],
                part,
            )
            full = aten.index_add(aten.zeros_like(a), -2, index[i], wide)
            total = full if total is None else total + full
    return total


# ---- logarithms ---------------------------------------------------------------------------------


@op(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    method=False,
    spaces=(),
    out=True,
    half=False,
    tags=("out_same_dtype",),
    vjp={"A": "slogdet_backward(grads, A, result0)"},
    meta=lambda a: (
        MetaArray(a.shape[:-2], a.dtype),
        MetaArray(a.shape[:-2], _real(a.dtype)),
    ),
)
def linalg_slogdet(xp: Any, a: Any) -> Any:
    """(sign, log |det|) of square matrices: det = sign · exp(log |det|)."""
    check_square("linalg.slogdet", a, "lu_cpu")
    sign, log = xp.linalg.slogdet(a)
    return xp.asarray(sign, dtype=a.dtype), xp.asarray(log, dtype=_real(a.dtype))


@vjp_helper
def slogdet_backward(grads: Any, a: Any, sign: Any) -> Any:
    """With t = tr(A⁻¹ dA): d log |det| = Re t, d sign = i · sign · Im t."""
    to_sign, to_log = grads
    if not a._k.dtype.is_complex:
        if to_log is None:
            return aten.zeros_like(a)
        k = to_log
    else:
        k = aten.to(to_log, dtype=a.dtype) if to_log is not None else None
        if to_sign is not None:
            turn = 1j * aten.imag(to_sign * aten.conj(sign))
            k = turn if k is None else k + turn
    h = mH(aten.linalg_inv_ex(a)[0])
    return aten.unsqueeze(aten.unsqueeze(k, -1), -1) * h


@composite(
    "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", out=True, tags=("out_same_dtype",)
)
def slogdet(self: Any) -> Any:
    """(sign, log |det|) of square matrices (`torchlab.linalg.slogdet`)."""
    return named(slogdet, linalg_slogdet.function(self))


@composite("logdet(Tensor self) -> Tensor")
def logdet(self: Any) -> Any:
    """The logarithm of the determinant; not a number where a real determinant is negative."""
    check_square("logdet", self._a, "lu_cpu")
    sign, log = linalg_slogdet.function(self)
    if self._k.dtype.is_complex:
        return aten.log(sign) + log
    return aten.where(sign == -1, math.nan, log)


@face("linalg_diagonal", method=False, spaces=())
def linalg_diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices, as the last dimension: a view."""
    return aten.diagonal(A, offset, dim1, dim2)


offer("det", "slogdet", "diagonal")
