"""GELU: Hendrycks and Gimpel, arXiv:1606.08415.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.gelu.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core.dispatch.op import pointwise
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.lazy import lazy

special = lazy("scipy.special")

_TANH_SCALE = math.sqrt(2 / math.pi)

# erf(x) ≈ tanh(x·R(x²)): R from a weighted least-squares fit of atanh(erf(x))/x; within 1.4e-7 in
# float32.
# Highest power first; the leading coefficient is positive, so that large |x| saturate.
_ERF_R = (
    1.589659348899514e-07,
    -5.985783777886659e-06,
    8.971310370059925e-05,
    -0.0006257207825636531,
    -0.00018438249357950956,
    0.10276548101966519,
    1.1283797055076834,
)
_BLOCK = 1 << 15  # elements that stay in the cache from one step to the next


def _erf(xp: Any, x: Any) -> Any:
    """erf as a fresh array: SciPy's, but for large float32 arrays by tanh, which NumPy vectorises:
    eight
    times as fast."""
    if x.dtype != np.float32 or x.size < 256 or xp is not np:
        return special.erf(x)
    result = np.empty(x.shape, np.float32)
    source, target = np.ascontiguousarray(x).reshape(-1), result.reshape(-1)
    for i in range(0, x.size, _BLOCK):
        y = source[i : i + _BLOCK]
        t = y * y
        r = t * np.float32(_ERF_R[0])
        for c in _ERF_R[1:-1]:
            r += np.float32(c)
            r *= t
        r += np.float32(_ERF_R[-1])
        r *= y
        np.tanh(r, out=target[i : i + _BLOCK])
    return result


def _gelu_decomposed(self: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * self * (1 + aten.tanh(_TANH_SCALE * (self + 0.044715 * self * self * self)))
    return 0.5 * self * (1 + aten.erf(self * math.sqrt(0.5)))


def _approximation(approximate: str) -> bool:
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, got '{approximate}'")
    return approximate == "tanh"


@pointwise(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    spaces=("nn.functional",),
    method=False,
    decompose=_gelu_decomposed,
    vjp={"self": "gelu_backward(g, self, approximate=approximate)"},
)
def gelu(xp: Any, x: Any, approximate: str = "none", out: Any = None) -> Any:
    """x·Φ(x), Φ the normal distribution function; `approximate="tanh"`: the usual tanh formula."""
    if x.dtype.kind in "iubc":
        raise NotImplementedError(f'"GeluKernelImpl" not implemented for {x.dtype.name}')
    formula = _gelu_tanh if _approximation(approximate) else _gelu_erf
    if xp is not np or x.size <= _BLOCK or not x.flags.c_contiguous:
        return xp.multiply(formula(xp, x), x.dtype.type(0.5), out=out)
    result = np.empty(x.shape, x.dtype) if out is None else out
    if not result.flags.c_contiguous:
        result[...] = gelu.kernel(np, x, approximate)
        return result
    if formula is _gelu_erf and x.dtype == np.float32:
        return _in_pieces(_gelu_piece, result, x)
    source, target = x.reshape(-1), result.reshape(-1)
    for i in range(0, x.size, _BLOCK):  # all steps on a piece that stays in the cache
        piece, into = source[i : i + _BLOCK], target[i : i + _BLOCK]
        np.multiply(formula(np, piece), x.dtype.type(0.5), out=into)
    return result


def _gelu_tanh(xp: Any, x: Any) -> Any:
    """Twice the tanh form of gelu."""
    t = x * x
    t *= 0.044715
    t += 1
    t *= x
    t *= _TANH_SCALE
    t = xp.tanh(t)
    t += 1
    t *= x
    return t


# The same R, so that gelu(x) = x · Φ(x) = x / (1 + exp(x·S(x²))). As arrays without dimensions,
# which a ufunc takes half a microsecond faster than numbers.
_S = tuple(
    np.array(-math.sqrt(2) * c / 2**k, np.float32)
    for c, k in zip(_ERF_R, range(6, -1, -1), strict=True)
)
_ONE, _HALF, _PEAK = (
    np.array(v, np.float32) for v in (1.0, -0.5, 1 / math.sqrt(2 * math.pi))
)  # φ(x) = _PEAK · exp(_HALF · x²)


def _inverse_phi(x: Any, t: Any, r: Any) -> None:
    """t ← x², r ← 1 / Φ(x), of a piece of float32."""
    np.multiply(x, x, out=t)
    np.multiply(t, _S[0], out=r)
    for c in _S[1:-1]:
        np.add(r, c, out=r)
        np.multiply(r, t, out=r)
    np.add(r, _S[-1], out=r)
    np.multiply(r, x, out=r)
    np.exp(r, out=r)
    np.add(r, _ONE, out=r)


def _gelu_piece(out: Any, x: Any, t: Any, r: Any) -> None:
    """gelu of a piece of float32, five passes fewer than through erf."""
    _inverse_phi(x, t, r)
    np.divide(x, r, out=out)


def _backward_piece(out: Any, x: Any, t: Any, r: Any, g: Any) -> None:
    """The gradient of a piece of float32: g (Φ(x) + x φ(x))."""
    _inverse_phi(x, t, r)
    np.reciprocal(r, out=r)
    np.multiply(t, _HALF, out=t)
    np.exp(t, out=t)
    np.multiply(t, _PEAK, out=t)
    np.multiply(t, x, out=t)
    np.add(r, t, out=r)
    np.multiply(g, r, out=out)


def _in_pieces(step: Any, out: Any, x: Any, *more: Any) -> Any:
    """Fill `out` by pieces that stay in the cache, all steps on each; arrays are contiguous."""
    room = np.empty((2, min(_BLOCK, x.size)), x.dtype)
    target, source, *rest = (a.reshape(-1) for a in (out, x, *more))
    for i in range(0, x.size, _BLOCK):
        piece = source[i : i + _BLOCK]
        t, r = room[:, : piece.size]
        step(target[i : i + _BLOCK], piece, t, r, *(a[i : i + _BLOCK] for a in rest))
    return out


def _gelu_erf(xp: Any, x: Any) -> Any:
    """Twice gelu."""
    t = _erf(xp, x * x.dtype.type(math.sqrt(0.5)))
    t += 1
    t *= x
    return t


def _gelu_slope(self: Any, approximate: str) -> Any:
    """The derivative of gelu, in operators."""
    if approximate == "tanh":
        t = aten.tanh(_TANH_SCALE * (self + 0.044715 * self * self * self))
        inner = _TANH_SCALE * (1 + 3 * 0.044715 * self * self)
        return 0.5 * (1 + t) + 0.5 * self * (1 - t * t) * inner
    density = aten.exp(-0.5 * self * self) * (1 / math.sqrt(2 * math.pi))
    return 0.5 * (1 + aten.erf(self * math.sqrt(0.5))) + self * density


@vjp_helper
def gelu_curvature(g: Any, grad_output: Any, self: Any, approximate: str) -> Any:
    """g · grad · gelu''(self)."""
    if approximate == "tanh":
        x2 = self * self
        t = aten.tanh(_TANH_SCALE * (self + 0.044715 * x2 * self))
        inner = _TANH_SCALE * (1 + 3 * 0.044715 * x2)
        slope = (1 - t * t) * inner
        second = (
            slope
            - self * t * slope * inner
            + 0.5 * self * (1 - t * t) * (_TANH_SCALE * 6 * 0.044715) * self
        )
    else:
        second = (2 - self * self) * aten.exp(-0.5 * self * self) * (1 / math.sqrt(2 * math.pi))
    return g * grad_output * second


@pointwise(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    inplace=False,
    out=False,
    public=False,
    decompose=lambda g, x, approximate="none": g * _gelu_slope(x, approximate),
    vjp={
        "grad_output": "gelu_backward(g, self, approximate=approximate)",
        "self": "gelu_curvature(g, grad_output, self, approximate)",
    },
)
def gelu_backward(xp: Any, g: Any, x: Any, approximate: str = "none", out: Any = None) -> Any:
    """grad · gelu'(x)."""
    if (
        xp is np
        and approximate == "none"
        and out is None
        and x.size > 256
        and g.dtype == x.dtype == np.float32
        and g.shape == x.shape
        and g.flags.c_contiguous
        and x.flags.c_contiguous
    ):
        return _in_pieces(_backward_piece, np.empty(x.shape, x.dtype), x, g)
    one = x.dtype.type
    x2 = x * x
    if _approximation(approximate):
        t = xp.tanh(x * (one(_TANH_SCALE) * (1 + one(0.044715) * x2)))
        r = x * (1 - t * t)
        r *= one(0.5 * _TANH_SCALE) * (1 + one(3 * 0.044715) * x2)
        r += one(0.5) * (1 + t)
    else:
        r = xp.exp(x2 * one(-0.5))
        r *= one(1 / math.sqrt(2 * math.pi))
        r *= x
        r += one(0.5) * (1 + _erf(xp, x * one(math.sqrt(0.5))))
    return xp.multiply(g, r, out=out)
