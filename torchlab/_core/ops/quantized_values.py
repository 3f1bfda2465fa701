"""Operators of quantized tensors that look at values: comparisons, order, means, activations,
pooling. Most keep the operand's quantizer and so are integer work on the codes.

Source: https://docs.pytorch.org/docs/2.13/quantization-support.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import exotic, exotic_method
from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
from torchlab._core.ops._quantized import (
    KEY,
    RANGES,
    QuantizedTensor,
    Quantizer,
    affine,
    around,
    codes_of,
    laid,
    need_per_tensor,
    requantized,
    values_of,
)
from torchlab._core.tensor import Tensor

special = lazy("scipy.special")


def _plain(x: Any) -> Any:
    return wrap(values_of(x)) if isinstance(x, QuantizedTensor) else x


def _comparison(name: str) -> None:
    @exotic(KEY, name)
    def entry(self: Any, other: Any) -> Any:
        return getattr(aten, name)(_plain(self), _plain(other))


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _comparison(_name)


# ---- order --------------------------------------------------------------------------------------


def _ordered(name: str, *overloads: str) -> None:
    @exotic(KEY, *(overloads or (name,)))
    def entry(self: Any, *args: Any) -> Any:
        q = need_per_tensor(self, name)
        r = getattr(aten, name)(self._a.codes, *args)
        if isinstance(r, Tensor):
            return around(r, q)
        return type(r)(around(r[0], q), r[1])


for _name in ("max", "min"):
    _ordered(_name, f"{_name}.default", f"{_name}.dim")
_ordered("topk")
_ordered("sort", "sort.default")


@exotic(KEY, "sort.stable")
def sort_stable(self: Any, stable: Any, dim: int = -1, descending: bool = False) -> Any:
    q = need_per_tensor(self, "sort")
    r = aten.sort(self._a.codes, dim=dim, descending=descending, stable=True)
    return type(r)(around(r[0], q), r[1])


# ---- means --------------------------------------------------------------------------------------


def _mean(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    q = need_per_tensor(self, "mean")
    if dtype is not None and dtype is not self._k.dtype:
        raise RuntimeError(
            f"ScalarType {dtype.scalar_name} is not supported in new_qtensor: the mean of a"
            f" {self._k.dtype} tensor has that type"
        )
    codes = wrap(self._a.codes._a.astype(np.float64))
    r = aten.mean(codes, dim, keepdim) if dim is not None else aten.mean(codes)
    return around(wrap(np.asarray(np.rint(r._a)).astype(self._a.codes._a.dtype)), q)


@exotic(KEY, "mean.default")
def mean(self: Any, dtype: Any = None) -> Any:
    return _mean(self, None, False, dtype)


@exotic(KEY, "mean.dim")
def mean_dim(self: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    return _mean(self, dim, keepdim, dtype)


@exotic(KEY, "std.correction")
def std(self: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    q = need_per_tensor(self, "std")
    r = aten.std(_plain(self), dim, correction=correction, keepdim=keepdim)
    return around(wrap(codes_of(r._a, q, self._k.dtype)), q)


# ---- activations that keep the quantizer --------------------------------------------------------


def _code(value: Any, x: Any) -> Any:
    """The code of a number, as x's codes are."""
    return codes_of(np.array(value, np.float32), x._a.quantizer, x._k.dtype)


def between(x: Any, low: Any, high: Any, name: str) -> Any:
    """x with its values kept between two numbers (None: no bound)."""
    q = need_per_tensor(x, name)
    r = x._a.codes._a
    if low is not None:
        r = np.maximum(r, _code(low, x))
    if high is not None:
        r = np.minimum(r, _code(high, x))
    return around(laid(r, x), q)


@exotic(KEY, "relu")
def relu(self: Any) -> Any:
    return between(self, 0, None, "relu")


@exotic(KEY, "clamp")
def clamp(self: Any, min: Any = None, max: Any = None) -> Any:
    for bound in (min, max):
        if isinstance(bound, Tensor):
            dt.promote_types(self._k.dtype, bound._k.dtype)
    return between(self, min, max, "clamp")


@exotic(KEY, "_clamp_low")
def clamp_low(self: Any, min: Any) -> Any:
    return between(self, min, None, "clamp")


@exotic(KEY, "_clamp_high")
def clamp_high(self: Any, max: Any) -> Any:
    return between(self, None, max, "clamp")


@exotic(KEY, "hardtanh")
def hardtanh(self: Any, min_val: Any = -1, max_val: Any = 1) -> Any:
    return between(self, min_val, max_val, "hardtanh")


@exotic(KEY, "threshold")
def threshold(self: Any, threshold: Any, value: Any) -> Any:
    need_per_tensor(self, "threshold")
    v = values_of(self)
    return requantized(self, np.where(v > np.float32(threshold), v, np.float32(value)))


@exotic(KEY, "leaky_relu")
def leaky_relu(self: Any, negative_slope: Any = 0.01) -> Any:
    need_per_tensor(self, "leaky_relu")
    v = values_of(self)
    return requantized(self, np.where(v > 0, v, v * np.float32(negative_slope)))


@exotic(KEY, "gelu")
def gelu(self: Any, approximate: str = "none") -> Any:
    q = need_per_tensor(self, "gelu")
    v = aten.gelu(_plain(self), approximate=approximate)._a
    return requantized(self, v, affine(float(np.float32(q.scale)), q.zero_point))


def _inplace(name: str, entry: Any) -> None:
    @exotic_method(KEY, f"{name}_")
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._a.codes.copy_(entry(self, *args, **kwargs)._a.codes)
        return self


for _name, _entry in (
    ("relu", relu),
    ("hardtanh", hardtanh),
    ("leaky_relu", leaky_relu),
    ("gelu", gelu),
):
    _inplace(_name, _entry)


# ---- activations with a range of their own ------------------------------------------------------

_BITS = {dt.quint8: 8, dt.qint8: 8, dt.qint32: 32}


def _unit(x: Any, signed: bool) -> Quantizer:
    """The quantizer by which all codes cover [0, 1), or (-1, 1) if `signed`."""
    d = x._k.dtype
    low, high = RANGES[d]
    if signed:
        return affine(2.0 ** (1 - _BITS[d]), (low + high + 1) // 2)
    if d is dt.qint32:
        return affine(2.0**-32, 0)
    return affine(2.0 ** -_BITS[d], low)


def sigmoid_to(x: Any, q: Quantizer) -> Any:
    """The logistic function with the output's quantizer given."""
    return requantized(x, _rounded_once(special.expit, x), q)


def _rounded_once(f: Any, x: Any) -> Any:
    """f of the values in float32; of 32-bit codes, which show its last bit, by way of float64."""
    values = values_of(x)
    return f(values.astype(np.float64)).astype("f") if x._k.dtype is dt.qint32 else f(values)


@exotic(KEY, "sigmoid")
def sigmoid(self: Any) -> Any:
    need_per_tensor(self, "sigmoid")
    return sigmoid_to(self, _unit(self, False))


@exotic(KEY, "tanh")
def tanh(self: Any) -> Any:
    need_per_tensor(self, "tanh")
    return requantized(self, _rounded_once(np.tanh, self), _unit(self, True))


@exotic(KEY, "hardsigmoid")
def hardsigmoid(self: Any) -> Any:
    need_per_tensor(self, "hardsigmoid")
    v = np.clip(values_of(self) + np.float32(3), 0, 6) / np.float32(6)
    return requantized(self, v, _unit(self, False))


# ---- pooling and resampling ---------------------------------------------------------------------


def _pooled(name: str, q: Any, self: Any, args: Any) -> Any:
    """A dense operator on the codes counted from the zero point; its results rounded to codes."""
    wide = np.float64 if self._k.dtype is dt.qint32 else np.float32
    a = wrap(self._a.codes._a.astype(wide) - wide(q.zero_point))
    r = getattr(aten, name)(a, *args)._a
    low, high = RANGES[self._k.dtype]
    codes = np.clip(np.rint(r + wide(q.zero_point)), low, high)
    return around(laid(codes.astype(self._a.codes._a.dtype), self), q)


@exotic(KEY, "adaptive_avg_pool2d", face=True)
def adaptive_avg_pool2d(self: Any, output_size: Any) -> Any:
    q, inner = need_per_tensor(self, "adaptive_avg_pool2d"), self._a.shape[-2:]
    wanted = output_size if isinstance(output_size, (tuple, list)) else (output_size, output_size)
    size = tuple(n if w is None else int(w) for n, w in zip(inner, wanted, strict=True))
    if size != (1, 1) or self._a.ndim not in (3, 4) or not self._a.size:
        return _pooled("_adaptive_avg_pool2d", q, self, (size,))
    # One window: row-major sums are multiplied by 1/n in float32, others divided by n, as
    # PyTorch does; the two differ at halves.
    total = self._a.codes._a.sum((-2, -1), dtype=np.int64, keepdims=True).astype(np.float32)
    n = np.float32(inner[0] * inner[1])
    r = np.rint(total * (np.float32(1) / n) if self.is_contiguous() else total / n)
    return around(laid(r.astype(self._a.codes._a.dtype), self), q)


def _pooling(name: str) -> None:
    @exotic(KEY, name)
    def entry(self: Any, *args: Any) -> Any:
        return _pooled(name, need_per_tensor(self, name.lstrip("_")), self, args)


for _name in (
    "_max_pool2d",
    "_max_pool3d",
    "_avg_pool2d",
    "_avg_pool3d",
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
):
    _pooling(_name)


def _fused(a: Any, b: Any, c: Any) -> Any:
    """a·b + c, rounded once to float32: both products' codes are exact in float64."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


def _between(old: int, new: int, scale: float | None, corners: bool) -> tuple[Any, ...]:
    """Of each new position the two old ones it lies between, and their weights in float32."""
    one, rows = np.float32(1), np.arange(new)
    if corners:
        step = np.float32(old - 1) / np.float32(new - 1) if new > 1 else np.float32(0)
        at = (rows * np.float64(step)).astype(np.float32)
    else:
        step = np.float32(1 / scale) if scale else np.float32(old) / np.float32(new)
        at = np.maximum((rows + 0.5) * np.float64(step) - 0.5, 0).astype(np.float32)
    low = np.minimum(at.astype(np.int64), old - 1)
    upper = (at - low).astype(np.float32)
    return low, np.minimum(low + 1, old - 1), one - upper, upper


@exotic(KEY, "upsample_bilinear2d")
def upsample_bilinear2d(self: Any, size: Any, scales: Any, corners: bool) -> Any:
    """The codes weighed along the rows, then the columns, in PyTorch's order of roundings: whole
    results and halves often lie side by side."""
    q = need_per_tensor(self, "upsample_bilinear2d")
    codes = self._a.codes._a
    a = codes.astype(np.float32)
    up, down, h0, h1 = _between(a.shape[2], size[0], scales[0], corners)
    left, right, w0, w1 = _between(a.shape[3], size[1], scales[1], corners)
    h0, h1 = h0[:, None], h1[:, None]

    def row(at: Any) -> Any:
        lines = a[:, :, at]
        return _fused(lines[..., left], w0, lines[..., right] * w1)

    r = _fused(row(up), h0, row(down) * h1)
    low, high = RANGES[self._k.dtype]
    zero = np.float32(q.zero_point)
    made = np.clip(np.rint(zero + (r - zero)), low, high)
    return around(laid(made.astype(codes.dtype), self), q)

