"""New quantized tensors: from values, from codes, or empty; and back to values.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.quantize_per_tensor.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.device import cpu, device
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import contiguous_format
from torchlab._core.ops._making import format_strides
from torchlab._core.ops._quantized import (
    FLOAT_QPARAMS,
    PER_CHANNEL,
    RANGES,
    QuantizedTensor,
    Quantizer,
    affine,
    around,
    check_host,
    check_type,
    choose,
    laid,
    need_quantized,
    quantized,
    values_of,
)
from torchlab._core.tensor import Tensor


def _need_float(x: Any, words: str) -> None:
    if isinstance(x, QuantizedTensor):
        raise NotImplementedError(
            "Could not run 'aten::quantize_per_tensor' with arguments from the 'QuantizedCPU'"
            " backend: the tensor is quantized already; use dequantize() first"
        )
    check_host(x, "quantize")
    if x._k.dtype is not dt.float32:
        raise RuntimeError(f"{words}, got {x._k.dtype.scalar_name}; convert it with .float()")


def _check_zero(name: str, zero: Any, d: Any) -> None:
    low, high = RANGES[d]
    for z in np.ravel(zero).tolist():
        if not low <= z <= high:
            side = "below lower" if z < low else "above upper"
            raise RuntimeError(f"{name} zero_point {z} is {side} bound ({d}: {low} … {high}).")


def _one(x: Any, scale: float, zero_point: int, dtype: Any) -> Any:
    check_type(dtype)
    _need_float(x, "Quantize only works on Float Tensor")
    _check_zero("quantize_tensor_per_tensor_affine", zero_point, dtype)
    return quantized(x._a, affine(float(scale), int(zero_point)), dtype, x)


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _is_int(x: Any) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


@face("quantize_per_tensor", method=False)
def quantize_per_tensor(self: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    """Round to codes of one scale and zero point; a list of tensors with a tensor of each gives a
    tuple. RuntimeError for other types than float32 or a zero point out of the type's range."""
    several = isinstance(self, (list, tuple))
    pair = isinstance(scale, Tensor), isinstance(zero_point, Tensor)
    if several:
        good = all(isinstance(x, Tensor) for x in self) and all(pair)
    else:
        plain = isinstance(scale, (int, float, np.number)) and _is_int(zero_point)
        good = isinstance(self, Tensor) and (all(pair) or plain)
    if not good or not isinstance(dtype, dt.dtype):
        got = ", ".join(type(v).__name__ for v in (self, scale, zero_point, dtype))
        raise TypeError(
            f"quantize_per_tensor() received an invalid combination of arguments - got ({got});"
            " expected (Tensor input, float scale, int zero_point, dtype), both as tensors, or a"
            " list of tensors with a tensor of scales and one of zero points"
        )
    if not several:
        return _one(self, _number(scale), int(_number(zero_point)), dtype)
    return tuple(
        _one(x, scale[i].item(), int(zero_point[i].item()), dtype) for i, x in enumerate(self)
    )


def _per_channel(scales: Any, zero_points: Any, axis: int, shape: Any, fit: bool) -> Quantizer:
    """The quantizer, checked; `fit`: there must be one scale for each channel of `shape`."""
    if scales._a.ndim != 1:
        raise RuntimeError("scale tensor must have dimension 1")
    if zero_points._a.ndim != 1:
        raise RuntimeError("zero_points tensor must have dimension 1")
    if not scales._k.dtype.is_floating_point:
        raise RuntimeError("scale tensor must be floating point")
    if scales._a.size != zero_points._a.size:
        raise RuntimeError("number of elements in scales and zero_points must match")
    if not 0 <= axis < len(shape):
        raise RuntimeError(
            "Channel axis out of range in per channel affine quantization. Got: "
            f"{axis}Expected: [0, {len(shape)})"
        )
    if fit and scales._a.size != shape[axis]:
        raise RuntimeError(
            f"length of scales must equal to channel, expected {shape[axis]} got, {scales._a.size}"
        )
    return quantizer_of(scales, zero_points, axis)


def quantizer_of(scales: Any, zero_points: Any, axis: int) -> Quantizer:
    """A quantizer per channel; floating zero points make the scheme with float parameters."""
    if zero_points._k.dtype.is_floating_point:
        pair = scales._a.astype(np.float32), zero_points._a.astype(np.float32)
        return Quantizer(FLOAT_QPARAMS, *pair, axis)
    pair = scales._a.astype(np.float64), zero_points._a.astype(np.int64)
    return Quantizer(PER_CHANNEL, *pair, axis)


@face("quantize_per_channel", method=False)
def quantize_per_channel(self: Any, scales: Any, zero_points: Any, axis: int, dtype: Any) -> Any:
    """Round to codes with a scale and a zero point for each index of dim `axis`."""
    check_type(dtype)
    q = _per_channel(scales, zero_points, axis, self._a.shape, True)
    _need_float(self, "quantize_tensor_per_channel_affine expects a Float Tensor")
    if q.scheme is PER_CHANNEL:
        _check_zero("quantize_tensor_per_channel_affine", q.zero_point, dtype)
    return quantized(self._a, q, dtype, self)


def _ends(x: Any) -> tuple[float, float]:
    if not x._a.size:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0: an empty tensor"
            " has no range to choose a scale by"
        )
    return float(x._a.min()), float(x._a.max())


@face("_choose_qparams_per_tensor", method=False)
def _choose_qparams_per_tensor(self: Any, reduce_range: bool = False) -> tuple[float, int]:
    """The scale and zero point by which quint8 codes (7 bits of them with `reduce_range`) reach
    from the smallest to the largest element."""
    return choose(*_ends(self), 0, 127 if reduce_range else 255)


@face("quantize_per_tensor_dynamic", method=False)
def quantize_per_tensor_dynamic(self: Any, dtype: Any, reduce_range: bool) -> Any:
    """Quantize with a scale and zero point chosen by the tensor's own range; torch.float16 gives a
    half tensor."""
    if dtype is dt.float16:
        return aten.to(self, dt.float16)
    if dtype not in (dt.qint8, dt.quint8):
        raise RuntimeError(
            f"dtype {dtype.scalar_name} not supported: quantize_per_tensor_dynamic() takes"
            " torch.quint8, torch.qint8 or torch.float16"
        )
    _need_float(self, "Quantize only works on Float Tensor")
    low, high = RANGES[dtype]
    if reduce_range:
        low, high = low // 2, high // 2
    return _one(self, *choose(*_ends(self), low, high), dtype)


def _values(x: Any) -> Tensor:
    if isinstance(x, QuantizedTensor):
        return laid(values_of(x), x)
    return aten.to(x, dt.float32)


@face("dequantize")
def dequantize(self: Any) -> Any:
    """The float32 values; a list of tensors gives a tuple."""
    if isinstance(self, (list, tuple)):
        if not self:
            raise NotImplementedError("dequantize(): expected a non-empty list of Tensors")
        return tuple(_values(x) for x in self)
    return _values(self)


# ---- from codes, or empty -----------------------------------------------------------------------


@face("_make_per_tensor_quantized_tensor", method=False)
def _make_per_tensor_quantized_tensor(self: Any, scale: float, zero_point: int) -> Any:
    """The quantized tensor with these codes (copied)."""
    return around(laid(self._a.copy(), self), affine(float(scale), int(zero_point)))


@face("_make_per_channel_quantized_tensor", method=False)
def _make_per_channel_quantized_tensor(self: Any, scale: Any, zero_point: Any, axis: int) -> Any:
    """The quantized tensor with these codes (copied), a scale for each channel."""
    q = _per_channel(scale, zero_point, axis, self._a.shape, False)
    return around(laid(self._a.copy(), self), q)


_CODES = {dt.qint8: dt.int8, dt.quint8: dt.uint8, dt.qint32: dt.int32}


def blank(size: Any, dtype: Any, q: Quantizer, memory_format: Any, place: Any = None) -> Any:
    """Uninitialised codes."""
    if dtype not in _CODES:
        raise RuntimeError(
            f"Creation of quantized tensor requires quantized dtype like torch.quint8, not {dtype}"
        )
    if place is not None and device(place) is not cpu:
        raise NotImplementedError(f"quantized tensors are there for the CPU only, not for {place}")
    shape = tuple(int(n) for n in size)
    strides = format_strides(shape, memory_format)
    if strides is None:
        return around(wrap(np.empty(shape, dt.CODES[dtype])), q)
    return around(aten.empty_strided(shape, strides, dtype=_CODES[dtype]), q)


@face("_empty_affine_quantized", method=False)
def _empty_affine_quantized(
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    requires_grad: bool = False,
    scale: float = 1.0,
    zero_point: int = 0,
    memory_format: Any = contiguous_format,
) -> Any:
    """An uninitialised tensor, quantized per tensor."""
    return blank(size, dtype, affine(float(scale), int(zero_point)), memory_format, device)


@face("_empty_per_channel_affine_quantized", method=False)
def _empty_per_channel_affine_quantized(
    size: Any,
    *,
    scales: Any,
    zero_points: Any,
    axis: int,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    requires_grad: bool = False,
    memory_format: Any = contiguous_format,
) -> Any:
    """An uninitialised tensor, quantized per channel."""
    q = _per_channel(scales, zero_points, axis, tuple(size), False)
    return blank(size, dtype, q, memory_format, device)


@face("empty_quantized", method=False)
def empty_quantized(
    size: Any,
    qtensor: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Any:
    """An uninitialised tensor, quantized as `qtensor` is."""
    need_quantized(qtensor, "aten::empty_quantized")
    q = qtensor._a.quantizer
    return blank(size, dtype or qtensor._k.dtype, q, memory_format, device)
