"""Products of Householder reflections, as `geqrf` gives them: Q = H₀ H₁ … with Hᵢ = I − τᵢ vᵢ vᵢᴴ.

Source of the semantics:
https://docs.pytorch.org/docs/2.13/generated/torch.linalg.householder_product.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch.op import composite, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.lazy import lazy
from torchlab._core.ops._lapack import (
    check_type,
    column_major,
    column_meta,
    device,
    each,
    host,
    mH,
    offer,
    routine,
    rows,
)
from torchlab._core.ops._reduce import scalar_name

lapack = lazy("scipy.linalg.lapack")
_BLOCK = 64  # LAPACK's blocked algorithms want columns × block elements of work space


def _check_product(a: Any, tau: Any) -> None:
    name = "torch.linalg.householder_product"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if a.shape[-2] < a.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if tau.ndim == 0 or a.shape[-1] < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if a.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to"
            f" {tau.ndim} and input.ndim is equal to {a.ndim}"
        )
    if tuple(a.shape[:-2]) != tuple(tau.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got"
            f" {list(tau.shape[:-1])}"
        )
    if tau.dtype != a.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {scalar_name(tau)} does not match input dtype {scalar_name(a)}"
        )
    check_type(name, a, "orgqr_cpu", integers=True)


def _product_meta(a: Any, tau: Any) -> Any:
    _check_product(a, tau)
    return column_meta(a.shape, a.dtype)


@op(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    method=False,
    spaces=(),
    out=True,
    tags=("lapack",),
    half=False,
    vjp={"input, tau": "householder_backward(g, result, input, tau)"},
    meta=_product_meta,
    autocast="float32:cpu",
)
def linalg_householder_product(xp: Any, a: Any, tau: Any) -> Any:
    """The first n columns of H₀ H₁ …; the vectors lie below the diagonal of the (…, m, n) input."""
    _check_product(a, tau)
    q = column_major(np, host(xp, a))
    tau = host(xp, tau)
    if q.size:
        name = "ungqr" if a.dtype.kind == "c" else "orgqr"
        generate = routine(lapack, name, a.dtype)
        for i in each(q.shape[:-2]):
            q[i] = generate(q[i], tau[i], lwork=a.shape[-1] * _BLOCK, overwrite_a=True)[0]
    return device(xp, q)


@composite(
    "orgqr(Tensor self, Tensor input2) -> Tensor",
    out=True,
    tags=("lapack",),
    autocast="float32:cpu",
)
def orgqr(self: Any, input2: Any) -> Any:
    """As `torchlab.linalg.householder_product`."""
    return linalg_householder_product.call(self, input2)


def _vectors(a: Any, k: int) -> Any:
    """The first k Householder vectors as columns: 1 on the diagonal, 0 above."""
    v = aten.tril(aten.narrow(a, -1, 0, k), -1)
    return v + aten.eye(a._a.shape[-2], k, dtype=a.dtype, device=a.device)


def _reflections_backward(g: Any, r: Any, v: Any, tau: Any, reverse: bool) -> tuple[Any, Any, Any]:
    """The gradients (of v, of τ, of C) of r = H₀ H₁ … C, or with `reverse` of r = … H₁ H₀ C.

    From the left, each reflection is taken off the result, r ← Hᵢ⁻¹ r, and applied to the
    gradient, g ← Hᵢᴴ g. Hᵢ⁻¹ = I − σ v vᴴ with σ = τ / (τ vᴴv − 1)."""
    k = v._a.shape[-1]
    order = range(k - 1, -1, -1) if reverse else range(k)
    gv: list[Any] = [None] * k
    gt: list[Any] = [None] * k
    for i in order:
        x = aten.narrow(v, -1, i, 1)
        t = rows(aten.narrow(tau, -1, i, 1))
        xh = mH(x)
        sigma = t / (t * (xh @ x) - 1)
        r = r - sigma * (x @ (xh @ r))
        w = xh @ r
        wg = g @ mH(w)
        gt[i] = -aten.squeeze(xh @ wg, -1)
        gv[i] = -(conj(t) * wg + t * (r @ (mH(g) @ x)))
        g = g - conj(t) * (x @ (xh @ g))
    if not k:
        return aten.zeros_like(v), aten.zeros_like(tau), g
    return aten.cat(gv, -1), aten.cat(gt, -1), g


def conj(x: Any) -> Any:
    return aten.conj(x) if x._k.dtype.is_complex else x


def _packed(gv: Any, shape: Any) -> Any:
    """The gradient of what holds the vectors: nothing on and above the diagonal."""
    gv = aten.tril(gv, -1)
    more = shape[-1] - gv._a.shape[-1]
    return aten.cat([gv, aten.new_zeros(gv, (*shape[:-1], more))], -1) if more else gv


@vjp_helper
def householder_backward(g: Any, q: Any, a: Any, tau: Any) -> Any:
    gv, gt, _ = _reflections_backward(g, q, _vectors(a, tau._a.shape[-1]), tau, False)
    return _packed(gv, a._a.shape), gt


# ---- products with other matrices ---------------------------------------------------------------


def _check_ormqr(a: Any, tau: Any, c: Any, left: bool) -> None:
    name = "torch.ormqr"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if c.ndim < 2:
        raise RuntimeError(f"{name}: other must have at least 2 dimensions.")
    side = -2 if left else -1
    if c.shape[side] != a.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.ndim == 0 or tau.shape[-1] != min(c.shape[side], a.shape[-1]):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    if a.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to"
            f" {tau.ndim} and input.ndim is equal to {a.ndim}"
        )
    if a.ndim != c.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got"
            f" other.ndim equal to {c.ndim} and input.ndim is equal to {a.ndim}"
        )
    for what, shape in (("tau", tau.shape[:-1]), ("other", c.shape[:-2])):
        if tuple(shape) != tuple(a.shape[:-2]):
            raise RuntimeError(
                f"{name}: Expected batch dimensions of {what} to be equal to input.shape[:-2], but"
                f" got {list(shape)}"
            )
    for what, x in (("tau", tau), ("other", c)):
        if x.dtype != a.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {what} to have the same dtype, but input has dtype"
                f"{scalar_name(a)} and {what} has dtype {scalar_name(x)}"
            )
    check_type(name, a, "ormqr_cpu", integers=True)


def _ormqr_meta(a: Any, tau: Any, c: Any, left: bool = True, transpose: bool = False) -> Any:
    _check_ormqr(a, tau, c, left)
    return column_meta(c.shape, c.dtype)


@op(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) ->"
    " Tensor",
    out=True,
    tags=("lapack",),
    half=False,
    vjp={
        "self, input2": "ormqr_backward(g, result, self, input2, left, transpose)",
        "input3": "ormqr(self, input2, g, left, not transpose)",
    },
    meta=_ormqr_meta,
    autocast="float32:cpu",
)
def ormqr(xp: Any, a: Any, tau: Any, c: Any, left: bool, transpose: bool) -> Any:
    """Q C (C Q if not `left`; Qᴴ for Q if `transpose`) with the square Q that `geqrf` describes."""
    _check_ormqr(a, tau, c, left)
    a, tau = host(xp, a, tau)
    r = column_major(np, host(xp, c))
    k = tau.shape[-1]
    if r.size and k:
        is_complex = a.dtype.kind == "c"
        multiply = routine(lapack, "unmqr" if is_complex else "ormqr", a.dtype)
        side = "L" if left else "R"
        trans = "N" if not transpose else "C" if is_complex else "T"
        work = max(1, r.shape[-1] if left else r.shape[-2]) * _BLOCK
        # SciPy wants as many columns as tau has elements
        for i in each(r.shape[:-2]):
            r[i] = multiply(side, trans, a[i][:, :k], tau[i], r[i], work, overwrite_c=True)[0]
    return device(xp, r)


@vjp_helper
def ormqr_backward(g: Any, result: Any, a: Any, tau: Any, left: bool, transpose: bool) -> Any:
    """(C Q)ᴴ = Qᴴ Cᴴ, and Qᴴ is the product in reverse order with conj(τ)."""
    if not left:
        g, result, transpose = mH(g), mH(result), not transpose
    v = _vectors(a, tau._a.shape[-1])
    gv, gt, _ = _reflections_backward(g, result, v, conj(tau) if transpose else tau, transpose)
    return _packed(gv, a._a.shape), conj(gt) if transpose else gt


offer("householder_product")
