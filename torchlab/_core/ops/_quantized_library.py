"""`torch.ops.quantized`: arithmetic of quantized tensors, with the output's scale and zero point as
arguments.

What is computed: the operator on the float values, rounded to the output's codes. Products
(linear, convolution, matmul) are exact integer sums of (code - zero point), scaled once at the end.

Source: https://docs.pytorch.org/docs/2.13/quantization-support.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
from torchlab._core.ops._quantized import (
    RANGES,
    QuantizedTensor,
    Quantizer,
    affine,
    around,
    codes_of,
    laid,
    need_per_tensor,
    need_quantized,
    requantized,
    values_of,
)
from torchlab._core.tensor import Tensor

special = lazy("scipy.special")


class LibraryOp:
    """One operator of the library: its name, and the Python function that it is."""

    __slots__ = ("name", "overload", "namespace", "body")

    def __init__(self, name: str, body: Any) -> None:
        self.name, self.overload, self.namespace, self.body = name, "default", "quantized", body

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.body(*args, **kwargs)

    def __str__(self) -> str:
        return f"quantized.{self.name}.default"

    __repr__ = __str__


LIBRARY: dict[str, dict[str, LibraryOp]] = {}


def library(name: str) -> Callable[[Any], Any]:
    """Let the decorated function be `torch.ops.quantized.<name>`."""

    def declare(body: Any) -> Any:
        LIBRARY[name] = {"default": LibraryOp(name, body)}
        return body

    return declare


def _given(name: str, *tensors: Any) -> None:
    for x in tensors:
        need_quantized(x, f"quantized::{name}")
        need_per_tensor(x, f"quantized::{name}")


def _result(x: Any, values: Any, scale: float, zero_point: int, relu: bool = False) -> Any:
    q = affine(float(scale), int(zero_point))
    r = requantized(x, values, q)
    return _rectified(r) if relu else r


def _rectified(x: Any) -> Any:
    codes = x._a.codes
    codes.copy_(wrap(np.maximum(codes._a, codes._a.dtype.type(x._a.quantizer.zero_point))))
    return x


# ---- two operands -------------------------------------------------------------------------------


def _two(name: str, f: Any, relu: bool) -> None:
    def body(qa: Any, qb: Any, scale: Any = None, zero_point: Any = None) -> Any:
        if not isinstance(qb, Tensor) and scale is None:
            return LIBRARY[f"{name.removesuffix('_relu')}_scalar{'_relu' if relu else ''}"][
                "default"
            ](qa, qb)
        if scale is None or zero_point is None:
            raise RuntimeError(f"quantized::{name}() is missing value for argument 'scale'")
        _given(name, qa, qb)
        if qa._k is not qb._k:
            raise RuntimeError(
                f"{name}: operands should have same data type, not {qa._k.dtype} and {qb._k.dtype}"
            )
        return f(qa, qb, scale, zero_point, relu)

    body.__doc__ = f"{name.replace('_', ', then ')} of two tensors, to the given quantizer."
    library(name)(body)


def _sum(a: Any, b: Any, scale: float, zero_point: int, relu: bool) -> Any:
    return _result(a, values_of(a) + values_of(b), scale, zero_point, relu)


def _product(a: Any, b: Any, scale: float, zero_point: int, relu: bool) -> Any:
    q, one = affine(float(scale), int(zero_point)), np.float32(1)
    units = np.float32(a._a.quantizer.scale) * np.float32(b._a.quantizer.scale)
    total = (_whole(a) * _whole(b)).astype(np.float32)
    low, high = RANGES[a._k.dtype]
    t = np.rint(total * (units * (one / np.float32(q.scale)))) + q.zero_point
    codes = np.clip(t, q.zero_point if relu else low, high).astype(dt.CODES[a._k.dtype])
    return around(laid(codes, a), q)


for _relu in (False, True):
    _suffix = "_relu" if _relu else ""
    _two(f"add{_suffix}", _sum, _relu)
    _two(f"mul{_suffix}", _product, _relu)


def _plus(x: Any, other: Any, relu: bool) -> Any:
    """x + number without a look at the elements: the zero point moves, and where it would leave the
    range of codes the scale grows until it fits."""
    _given("add_scalar", x)
    q, (low, high) = x._a.quantizer, RANGES[x._k.dtype]
    other = float(other.item() if isinstance(other, Tensor) else other)
    shift = int(np.rint(np.float64(other) / np.float64(np.float32(q.scale))))
    zero = q.zero_point - shift
    if low <= zero <= high:
        codes = x._a.codes
        made = around(laid(codes._a.copy(), x), affine(q.scale, zero))
    else:
        if zero < low:
            scale, new = (high - zero) / (high - low) * q.scale, low
        else:
            scale, new = (zero - low) / (high - low) * q.scale, high
        moved = (x._a.codes._a.astype(np.float32) - np.float32(zero)) * np.float32(q.scale)
        made = requantized(x, moved, affine(float(scale), new))
    return _rectified(made) if relu else made


def _times(x: Any, other: Any, relu: bool) -> Any:
    """x · number: the scale is multiplied; a negative number mirrors the codes."""
    _given("mul_scalar", x)
    q, (low, high) = x._a.quantizer, RANGES[x._k.dtype]
    other = float(other.item() if isinstance(other, Tensor) else other)
    if other == 0:
        made = around(laid(np.zeros_like(x._a.codes._a), x), affine(1.0, 0))
    elif other > 0:
        made = around(laid(x._a.codes._a.copy(), x), affine(q.scale * other, q.zero_point))
    else:
        mirrored = (low + high) - x._a.codes._a.astype(np.int64)
        codes = mirrored.astype(x._a.codes._a.dtype)
        made = around(laid(codes, x), affine(-q.scale * other, low + high - q.zero_point))
    return _rectified(made) if relu else made


def _scalar(name: str, f: Any, relu: bool) -> None:
    def body(qa: Any, b: Any) -> Any:
        return f(qa, b, relu)

    body.__doc__ = f.__doc__
    library(name)(body)


for _relu in (False, True):
    _suffix = "_relu" if _relu else ""
    _scalar(f"add_scalar{_suffix}", _plus, _relu)
    _scalar(f"mul_scalar{_suffix}", _times, _relu)


def _cat(qx: Any, dim: int, scale: Any, zero_point: Any, relu: bool) -> Any:
    first = need_quantized(qx[0], "quantized::cat")
    q = first._a.quantizer
    if scale is not None:
        q = affine(float(scale), int(q.zero_point if zero_point is None else zero_point))
    parts = []
    for x in qx:
        _given("cat", x)
        if x._k is not first._k:
            raise RuntimeError("cat: All dtypes must be the same.")
        parts.append(wrap(codes_of(values_of(x), q, x._k.dtype)))
    r = around(aten.cat(parts, dim), q)
    return _rectified(r) if relu else r


@library("cat")
def cat(qx: Any, dim: int, scale: Any = None, zero_point: Any = None) -> Any:
    """Joined along `dim`, to the given quantizer (or the first tensor's)."""
    return _cat(qx, dim, scale, zero_point, False)


@library("cat_relu")
def cat_relu(qx: Any, dim: int, scale: Any = None, zero_point: Any = None) -> Any:
    """cat, then relu."""
    return _cat(qx, dim, scale, zero_point, True)


# ---- one operand --------------------------------------------------------------------------------


@library("relu6")
def relu6(qx: Any, inplace: bool = False) -> Any:
    """Kept between 0 and 6."""
    _given("relu6", qx)
    r = aten.clamp(qx, 0, 6)
    if inplace:
        qx._a.codes.copy_(r._a.codes)
        return qx
    return r


@library("clamp")
def clamp(qx: Any, min: Any = None, max: Any = None) -> Any:
    """Kept between two numbers."""
    return aten.clamp(qx, min, max)


@library("threshold")
def threshold(qx: Any, threshold: float, value: float) -> Any:
    """x where x > threshold, else value."""
    return aten.threshold(qx, threshold, value)


@library("hardswish")
def hardswish(input: Any, output_scale: float, output_zero_point: int) -> Any:
    """x · relu6(x + 3) / 6."""
    _given("hardswish", input)
    v = values_of(input)
    r = v * np.clip(v + np.float32(3), 0, 6) * (np.float32(1) / np.float32(6))
    return _result(input, r, output_scale, output_zero_point)


@library("sigmoid")
def sigmoid(qx: Any, output_scale: float, output_zero_point: int) -> Any:
    """The logistic function."""
    _given("sigmoid", qx)
    return _result(qx, special.expit(values_of(qx)), output_scale, output_zero_point)


def _exponential(v: Any, alpha: float, scale: float, inside: float) -> Any:
    low = np.float32(alpha) * np.expm1(v * np.float32(inside))
    return np.where(v > 0, v, low) * np.float32(scale)


@library("elu")
def elu(
    self: Any,
    output_scale: float,
    output_zero_point: int,
    alpha: float = 1,
    scale: float = 1,
    input_scale: float = 1,
) -> Any:
    """x, or alpha · (exp(x) - 1) below zero."""
    _given("elu", self)
    r = _exponential(values_of(self), alpha, scale, input_scale)
    return _result(self, r, output_scale, output_zero_point)


@library("celu")
def celu(self: Any, output_scale: float, output_zero_point: int, alpha: float = 1) -> Any:
    """x, or alpha · (exp(x / alpha) - 1) below zero."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    _given("celu", self)
    r = _exponential(values_of(self), alpha, 1, 1 / alpha)
    return _result(self, r, output_scale, output_zero_point)


@library("leaky_relu")
def leaky_relu(
    qx: Any, negative_slope: float, inplace: bool, output_scale: float, output_zero_point: int
) -> Any:
    """x, or negative_slope · x below zero."""
    _given("leaky_relu", qx)
    v = values_of(qx)
    r = np.where(v > 0, v, v * np.float32(negative_slope))
    return _result(qx, r, output_scale, output_zero_point)


@library("softmax")
def softmax(qx: Any, dim: int, output_scale: float, output_zero_point: int) -> Any:
    """Softmax along `dim`."""
    _given("softmax", qx)
    r = aten.softmax(wrap(values_of(qx)), dim)._a
    return _result(qx, r, output_scale, output_zero_point)


# ---- products -----------------------------------------------------------------------------------


class LinearPackedParamsBase:
    """Weight (quantized) and bias (float, or None) of a linear layer."""

    __slots__ = ("weight", "_bias", "__weakref__")

    def __init__(self, weight: Any, bias: Any) -> None:
        self.weight, self._bias = weight, bias

    def unpack(self) -> tuple[Any, Any]:
        """Weight and bias as they were given."""
        return self.weight, self._bias

    def bias(self) -> Any:
        """The bias."""
        return self._bias

    def __getstate__(self) -> Any:
        return self.unpack()

    def __setstate__(self, state: Any) -> None:
        self.weight, self._bias = state


def _check_operand(name: str, x: Any) -> None:
    _given(name, x)
    if x._k.dtype is not dt.quint8:
        raise RuntimeError(f"{name}: Expected input data type QUInt8 but got "
                           f"{x._k.dtype.scalar_name}")  # fmt: skip


@library("linear_prepack")
def linear_prepack(W: Any, B: Any = None) -> LinearPackedParamsBase:
    """Keep a qint8 weight (out, in) and a float bias (out) for `linear`."""
    need_quantized(W, "quantized::linear_prepack")
    if W._a.ndim != 2:
        raise RuntimeError(
            f"The weight tensor for quantized::linear_prepack should be 2-dimensional, not"
            f" {W._a.ndim}-dimensional"
        )
    if W._k.dtype is not dt.qint8:
        raise RuntimeError(f"expected scalar type QInt8 but found {W._k.dtype.scalar_name}")
    if W._a.quantizer.axis not in (None, 0):
        raise RuntimeError("linear_prepack: a weight per channel has its channels in dim 0")
    if B is not None and B._a.shape != (W._a.shape[0],):
        raise RuntimeError(
            f"bias should have {W._a.shape[0]} elements (1-D), not shape {list(B._a.shape)}"
        )
    return LinearPackedParamsBase(single(W), B)


def single(w: Any) -> Any:
    """A weight whose scales are float32 numbers: what products are computed with."""
    q = w._a.quantizer
    if not q.per_tensor:
        return w
    return around(w._a.codes, affine(float(np.float32(q.scale)), q.zero_point))


@library("linear_unpack")
def linear_unpack(W_prepack: LinearPackedParamsBase) -> tuple[Any, Any]:
    """Weight and bias as they were given."""
    return W_prepack.unpack()


def _whole(x: Any) -> Any:
    """Codes counted from the zero point, as float64: sums of their products are exact."""
    q = x._a.quantizer
    zero = q.zero_point if q.per_tensor else q.spread(x._a.shape)[1]
    return x._a.codes._a.astype(np.float64) - zero


def _scaled(
    total: Any, scales: Any, bias: Any, q: Quantizer, relu: bool, dtype: Any = dt.quint8
) -> Any:
    """Codes of integer sums whose unit is `scales`, the bias (float) added in that unit."""
    scales = np.asarray(scales, np.float32)
    if bias is not None:
        total = total.astype(np.float32) + (bias / scales).astype(np.float32)
    low, high = RANGES[dtype]
    t = np.rint(total.astype(np.float32) * (scales / np.float32(q.scale))) + q.zero_point
    return np.clip(t, q.zero_point if relu else low, high).astype(dt.CODES[dtype])


def _weight_scale(x: Any, w: Any) -> Any:
    return np.float32(x._a.quantizer.scale) * np.asarray(w._a.quantizer.scale, np.float32)


def _linear(x: Any, packed: Any, scale: float, zero_point: int, relu: bool) -> Any:
    _check_operand("linear", x)
    w, b = packed.unpack()
    if not x._a.ndim or x._a.shape[-1] != w._a.shape[1]:
        raise RuntimeError(
            f"quantized::linear: the input has shape {list(x._a.shape)}, but the weight takes"
            f" {w._a.shape[1]} features: The number of rows in the packB should be equal to K"
        )
    q = affine(float(scale), int(zero_point))
    total = _whole(x) @ _whole(w).T
    codes = _scaled(total, _weight_scale(x, w), None if b is None else b._a, q, relu)
    return around(wrap(np.ascontiguousarray(codes)), q)


@library("linear")
def linear(X: Any, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int) -> Any:
    """X · Wᵀ + b for a quint8 X (…, in): quint8 (…, out)."""
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, False)


@library("linear_relu")
def linear_relu(X: Any, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int) -> Any:
    """linear, then relu."""
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, True)


def _dynamic(x: Any, packed: Any, reduce_range: bool) -> Any:
    if isinstance(x, QuantizedTensor) or x._k.dtype is not dt.float32:
        raise RuntimeError(f"quantized::linear_dynamic: expected a Float tensor, not {x._k.dtype}")
    w, b = packed.unpack()
    q = aten.quantize_per_tensor_dynamic(x, dt.quint8, reduce_range)
    r = (_whole(q) @ _whole(w).T).astype(np.float32) * _weight_scale(q, w)
    return wrap(r if b is None else r + b._a)


@library("linear_dynamic")
def linear_dynamic(X: Any, W_prepack: Any, reduce_range: bool = False) -> Any:
    """X · Wᵀ + b for a float X, quantized by its own range; a float result."""
    return _dynamic(X, W_prepack, reduce_range)


@library("linear_relu_dynamic")
def linear_relu_dynamic(X: Any, W_prepack: Any, reduce_range: bool = False) -> Any:
    """linear_dynamic, then relu."""
    return aten.relu(_dynamic(X, W_prepack, reduce_range))


@library("matmul")
def matmul(qa: Any, qb: Any, scale: float, zero_point: int) -> Any:
    """The matrix product of two quantized tensors."""
    _given("matmul", qa, qb)
    if qa._k is not qb._k:
        raise RuntimeError(f"MatMul operands should have same data type, not {qa._k.dtype} and"
                           f" {qb._k.dtype}")  # fmt: skip
    if qa._a.ndim < 2 or qa._a.ndim != qb._a.ndim:
        raise RuntimeError(
            "MatMul operands should have the same dimensionality of 2 or more, not"
            f" {list(qa._a.shape)} and {list(qb._a.shape)}"
        )
    if qa._a.shape[-1] != qb._a.shape[-2]:
        raise RuntimeError(
            f"matmul: {list(qa._a.shape)} and {list(qb._a.shape)} do not fit for a product"
        )
    q = affine(float(scale), int(zero_point))
    total = np.matmul(_whole(qa), _whole(qb))
    return around(wrap(_scaled(total, _weight_scale(qa, qb), None, q, False, qa._k.dtype)), q)
