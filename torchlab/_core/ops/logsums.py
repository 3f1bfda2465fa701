"""Logarithms of sums of exponentials, without overflow.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.logsumexp.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._reduce import (
    accurate_sum,
    is_float,
    keep_reduced,
    lanes,
    reduced_dims,
    reduced_shape,
    reduction_meta,
    row_major,
    scalar_name,
    widened,
)


def _float_dtype(a: Any, _: Any = None) -> np.dtype:
    return a.dtype if is_float(a.dtype) else dt.get_default_dtype().np


@op(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    out=True,
    tags=("reduction",),
    spaces=("torch", "special"),
    vjp={"self": "logsumexp_backward(g, self, result, dim, keepdim)"},
    meta=reduction_meta(_float_dtype),
    autocast="float32:accelerator",
)
def logsumexp(xp: Any, a: Any, dim: Any, keepdim: bool) -> Any:
    """log Σ exp over dimensions; −∞ for nothing, and for −∞ alone."""
    return _log_sum(xp, a, dim, keepdim, _float_dtype(a))


def _log_sum(xp: Any, a: Any, dim: Any, keepdim: bool, made: np.dtype) -> Any:
    """The exponentials in a's type, their sum and its logarithm in `made`."""
    if dim is None:
        raise TypeError("logsumexp(): argument 'dim' must be tuple of ints, not NoneType")
    shape = reduced_shape(a, dim, keepdim)
    dims = reduced_dims(dim, a.ndim) if a.ndim else (0,)
    a = a.astype(_float_dtype(a), copy=False)
    a = a.reshape(1) if a.ndim == 0 else a
    if a.size == 0:
        return xp.full(shape, -np.inf, made)
    top = xp.maximum.reduce(a.real, axis=dims, keepdims=True)
    top = xp.where(xp.isfinite(top), top, top.dtype.type(0))
    total = widened(accurate_sum(xp, xp.exp(a - top), dims, True, made))
    return (xp.log(total) + top).astype(made, copy=False).reshape(shape)


@op(
    "_logsumexp_in(Tensor self, int[1] dim, bool keepdim=False, ScalarType? dtype=None) -> Tensor",
    public=False,
    method=False,
    half=False,
    meta=reduction_meta(lambda a, dtype: dtype.np if dtype else _float_dtype(a)),
)
def logsumexp_in(xp: Any, a: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """`logsumexp` as `out=` has it: added in the type of `out`."""
    if dtype is None:
        dtype = dt.from_numpy(_float_dtype(a))
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "logsumexp(): Expected floating point type for result tensor, but got:"
            f" {dtype.scalar_name}"
        )
    return _log_sum(xp, widened(a), dim, keepdim, dtype.np)


@vjp_helper
def logsumexp_backward(g: Any, x: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """g times the softmax."""
    shape = x._a.shape
    part = aten.exp(x - keep_reduced(result, shape, dim, keepdim))
    return keep_reduced(g, shape, dim, keepdim) * (
        aten.conj(part) if part._k.dtype.is_complex else part
    )


def _log_add(x: Any, y: Any) -> Any:
    """log(exp x + exp y) of complex arrays."""
    swap = x.real < y.real
    high, low = np.where(swap, y, x), np.where(swap, x, y)
    r = np.log1p(np.exp(low - high)) + high
    r = np.where(np.isneginf(low.real), high, r)
    same_infinity = np.isinf(high.real) & (low.real == high.real) & (low.real > 0)
    return np.where(same_infinity, np.log(np.exp(low) + np.exp(high)), r)


_NAN = complex(math.nan, math.nan)


def _running(xp: Any, lane: Any, dim: int) -> Any:
    if lane.dtype.kind != "c":
        return xp.logaddexp.accumulate(lane, axis=dim, dtype=np.float64).astype(lane.dtype)
    r = xp.moveaxis(lane, dim, 0).astype(np.complex128)
    r[xp.isnan(r)] = _NAN
    r[xp.isneginf(r.real)] = -math.inf  # no angle can be told of what counts for nothing
    for i in range(1, r.shape[0]):
        broken = xp.isnan(r[i]) | xp.isnan(r[i - 1])
        added = _log_add(r[i], r[i - 1])  # of equal real parts the new one counts as the larger
        r[i] = xp.where(broken, _NAN, added)
    return xp.moveaxis(r, 0, dim).astype(lane.dtype)


def _scan(xp: Any, a: Any, dim: int, backwards: bool) -> Any:
    lane, dim = lanes(a, dim)
    if not is_float(a.dtype):
        raise NotImplementedError(
            f"\"logcumsumexp_out_cpu\" not implemented for '{scalar_name(a)}'"
        )
    if not a.ndim:
        return a.copy()
    r = (
        xp.flip(_running(xp, xp.flip(lane, dim), dim), dim)
        if backwards
        else _running(xp, lane, dim)
    )
    return row_major(r).reshape(a.shape)


@op(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    out=True,
    tags=("out_same_dtype", "out_type_first"),
    meta=lambda a, dim: MetaArray(a.shape, a.dtype),
    vjp={"self": "logcumsumexp_backward(g, self, result, dim, False)"},
)
def logcumsumexp(xp: Any, a: Any, dim: int) -> Any:
    """log Σ exp of all elements up to each one along a dimension."""
    return _scan(xp, a, dim, False)


@op(
    "_reversed_logcumsumexp(Tensor self, int dim) -> Tensor",
    public=False,
    meta=lambda a, dim: MetaArray(a.shape, a.dtype),
    vjp={"self": "logcumsumexp_backward(g, self, result, dim, True)"},
)
def reversed_logcumsumexp(xp: Any, a: Any, dim: int) -> Any:
    """log Σ exp of all elements from each one on."""
    return _scan(xp, a, dim, True)


@vjp_helper
def logcumsumexp_backward(g: Any, x: Any, result: Any, dim: int, backwards: bool) -> Any:
    """exp(x) Σ g exp(−result) over all later (earlier) elements, in logarithms: positive and
    negative gradients apart."""
    if x._a.ndim == 0 or x._a.size == 0:
        return aten.clone(g)
    scan = aten.logcumsumexp if backwards else aten._reversed_logcumsumexp
    if x._k.dtype.is_complex:
        return aten.conj(aten.exp(scan(aten.log(aten.conj(g)) - result, dim) + x))
    size = aten.log(aten.abs(g))
    lowest = (
        float(np.finfo(g._a.dtype).min) if g._a.dtype.kind == "f" else -3e38
    )  # −∞ − −∞ would be NaN
    parts = []
    for wanted in (g > 0, g < 0):
        logs = aten.where(wanted, size, lowest)
        parts.append(aten.exp(scan(logs - result, dim) + x))
    return parts[0] - parts[1]
