"""Quantized tensors: integer codes and what they stand for.

    value = (code - zero_point) · scale          code = clamp(round(value / scale) + zero_point)

Rounding is half to even; both are computed in float32, whatever precision the scale is kept in.
Scale and zero point are two numbers (per tensor) or one pair for each index of a dim, `axis` (per
channel). The codes are an ordinary strided tensor of int8, uint8 or int32: views of a quantized
tensor are views of its codes.

Source: https://docs.pytorch.org/docs/2.13/quantization-support.html
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import formats
from torchlab._core import layout as shapes
from torchlab._core.device import cpu
from torchlab._core.dispatch import exotic
from torchlab._core.dispatch.compute import wrap
from torchlab._core.kind import exotic_kind
from torchlab._core.ops._making import format_strides
from torchlab._core.tensor import Tensor, strides_of

KEY = "QuantizedCPU"
_new = object.__new__


class qscheme(formats._Named):
    """How a tensor is quantized: `torch.per_tensor_affine` and its kin."""

    __slots__ = ()


PER_TENSOR, PER_CHANNEL, PER_TENSOR_SYMMETRIC, PER_CHANNEL_SYMMETRIC, FLOAT_QPARAMS = (
    formats.define(qscheme, name)
    for name in (
        "per_tensor_affine",
        "per_channel_affine",
        "per_tensor_symmetric",
        "per_channel_symmetric",
        "per_channel_affine_float_qparams",
    )
)


class Quantizer:
    """Scheme, scale, zero point, axis (None per tensor). Per tensor two Python numbers; per channel
    two arrays, float64 and int64, or both float32 for FLOAT_QPARAMS."""

    __slots__ = ("scheme", "scale", "zero_point", "axis")

    def __init__(self, scheme: Any, scale: Any, zero_point: Any, axis: int | None = None) -> None:
        self.scheme, self.scale, self.zero_point, self.axis = scheme, scale, zero_point, axis

    @property
    def per_tensor(self) -> bool:
        return self.axis is None

    def same(self, other: Quantizer) -> bool:
        """Whether equal codes mean equal values."""
        return (
            self.scheme is other.scheme
            and self.axis == other.axis
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )

    def part(self, index: Any) -> Quantizer:
        """Of some channels; of one channel, a quantizer per tensor."""
        scale, zero = self.scale[index], self.zero_point[index]
        if np.ndim(scale) and scale.size != 1:
            return Quantizer(self.scheme, scale, zero, self.axis)
        cast = float if self.scheme is FLOAT_QPARAMS else int
        return affine(float(np.ravel(scale)[0]), cast(np.ravel(zero)[0]))

    def moved(self, axis: int) -> Quantizer:
        """The same for another place of the channels' dim."""
        return Quantizer(self.scheme, self.scale, self.zero_point, axis)

    def spread(self, dims: tuple[int, ...]) -> tuple[Any, Any]:
        """(float32 scales, zero points) that broadcast against the codes."""
        axis, ndim = self.axis, len(dims)
        assert axis is not None
        if not 0 <= axis < ndim:
            raise RuntimeError(
                "Channel axis out of range in per channel affine dequantization. Got:"
                f"{axis} Expected: [0, {ndim})"
            )
        if dims[axis] != self.scale.size:
            raise RuntimeError(
                f"length of scales must equal to channel, expected {dims[axis]} got,"
                f" {self.scale.size}: dim {axis} of shape {list(dims)} has the channels"
            )
        shape = [1] * ndim
        shape[axis] = -1
        return self.scale.astype(np.float32).reshape(shape), self.zero_point.reshape(shape)


def affine(scale: float, zero_point: int) -> Quantizer:
    """One scale and one zero point for all elements."""
    return Quantizer(PER_TENSOR, scale, zero_point)


class Codes:
    """Stands where other tensors have their array: the codes' tensor and the quantizer."""

    __slots__ = ("codes", "quantizer")

    def __init__(self, codes: Tensor, quantizer: Quantizer) -> None:
        self.codes, self.quantizer = codes, quantizer

    shape = property(lambda self: self.codes._a.shape)
    ndim = property(lambda self: self.codes._a.ndim)
    size = property(lambda self: self.codes._a.size)
    strides = property(lambda self: self.codes._a.strides)
    dtype = property(lambda self: self.codes._a.dtype)
    itemsize = property(lambda self: self.codes._a.dtype.itemsize)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._refuse(name)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"there is no such operator for quantized tensors ({dtype_of(self.codes)}, shape"
            f" {list(self.shape)}); use dequantize() first"
        )

    __array__ = __array_ufunc__ = _refuse

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        if func is np.copyto:
            raise RuntimeError(
                "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use"
                " dequantize to get a float Tensor from a quantized Tensor"
            )
        self._refuse()


class QuantizedTensor(exotic.Exotic):
    """The class; its methods come from the files `quantized_*`."""

    __slots__ = ()
    backend = KEY

    @classmethod
    def fallback(cls, op: Any, args: Any) -> Any:
        """Raise, for an operator that has no entry. RuntimeError where floats or numbers take
        part."""
        cls._unpaired(op, args)
        return super().fallback(op, args)

    @classmethod
    def fallback_into(cls, op: Any, operands: Any, values: Any, out: Any) -> Any:
        """The same in place."""
        cls._unpaired(op, operands)
        return super().fallback_into(op, operands, values, out)

    @classmethod
    def _unpaired(cls, op: Any, operands: Any) -> None:
        if op.family != "binary":
            return
        for x in operands[:2]:
            if not isinstance(x, QuantizedTensor):
                kind = x._k.dtype if isinstance(x, Tensor) else type(x).__name__
                raise RuntimeError(
                    f"{op.name}: promotion of quantized tensors is not there: a quantized tensor"
                    f" and {kind}; use dequantize(), or torch.ops.quantized"
                )

    def write_out(self, out: Any, name: str) -> Any:
        if out._k is not self._k:
            raise RuntimeError(
                f"{name}: expected out of dtype {self._k.dtype}, but got {out._k.dtype}"
            )
        out._a = Codes(out._a.codes.resize_(self._a.shape), self._a.quantizer)
        out._a.codes.copy_(self._a.codes)
        return out


BY_CODES: dict[Any, Any] = {dt.int8: dt.qint8, dt.uint8: dt.quint8, dt.int32: dt.qint32}
RANGES: dict[Any, tuple[int, int]] = {
    dt.qint8: (-128, 127),
    dt.quint8: (0, 255),
    dt.qint32: (-(2**31), 2**31 - 1),
}


def dtype_of(codes: Tensor) -> Any:
    """The type of quantized tensors with such codes."""
    return BY_CODES.get(codes._k.dtype)


def around(codes: Tensor, quantizer: Quantizer) -> Any:
    """The quantized tensor of these codes."""
    d = dtype_of(codes)
    if d is None:
        raise RuntimeError(
            "Creation of quantized tensor requires quantized dtype like torch.quint8: codes are"
            f" int8, uint8 or int32, not {codes._k.dtype}"
        )
    r = _new(QuantizedTensor)
    r._a, r._k = Codes(codes, quantizer), exotic_kind(d)
    r._e = r._s = r._v = r._g = None
    return r


def check_type(d: Any) -> None:
    if d not in RANGES:
        name = d.scalar_name if isinstance(d, dt.dtype) else d
        raise RuntimeError(
            f"ScalarType {name} is not supported in new_qtensor; it takes torch.qint8, torch.quint8"
            " or torch.qint32"
        )


def need_per_tensor(x: Any, name: str) -> Quantizer:
    """x's quantizer; RuntimeError unless it is one for all elements."""
    q = x._a.quantizer
    if not q.per_tensor:
        raise RuntimeError(
            f"{name}: Expected a tensor quantized per tensor, but got qscheme {q.scheme}"
        )
    return q


def need_quantized(x: Any, name: str) -> Any:
    """x; NotImplementedError unless it is quantized."""
    if not isinstance(x, QuantizedTensor):
        key = getattr(x, "backend", None) or x._k.device.type.upper()
        raise NotImplementedError(
            f"Could not run '{name}' with arguments from the '{key}' backend: it is there for"
            " quantized tensors; make one with quantize_per_tensor()"
        )
    return x


# ---- arithmetic ---------------------------------------------------------------------------------


def _clipped(t: Any, low: float, high: float, to: Any) -> Any:
    """Saturated. NaN becomes the largest 8-bit code and the smallest 32-bit one, as the conversion
    instructions of CPUs give it."""
    if to.itemsize == 4:
        wide = t.astype(np.float64)
        return np.fmin(np.fmax(wide, low), high).astype(np.int64).astype(to)
    return np.fmax(np.fmin(t, np.float32(high)), np.float32(low)).astype(to)


def codes_of(values: Any, q: Quantizer, d: Any) -> Any:
    """Codes (an array) of float32 values. The zero point is added before rounding to the integer;
    for 8 bits product and sum are rounded to float32 once (fused), else one after the other."""
    low, high = RANGES[d]
    one = np.float32(1)
    if q.per_tensor:
        inverse = one / np.float32(q.scale)
        if d is dt.qint32:
            t = values * inverse + np.float32(q.zero_point)
        else:
            t = (values * np.float64(inverse) + q.zero_point).astype(np.float32)
        return _clipped(np.rint(t), low, high, dt.CODES[d])
    scale, zero = q.spread(values.shape)
    t = np.rint(values * (one / scale) + zero.astype(np.float32))
    return _clipped(t, low, high, dt.CODES[d])


def values_of(x: Any) -> Any:
    """The float32 values (an array) that a quantized tensor stands for."""
    a, q = x._a.codes._a, x._a.quantizer
    if q.per_tensor:
        zero = np.float32(q.zero_point) if type(q.zero_point) is float else np.int32(q.zero_point)
        whole = a.astype(np.float32 if type(q.zero_point) is float else np.int32)
        return (whole - zero).astype(np.float32) * np.float32(q.scale)
    scale, zero = q.spread(a.shape)
    if q.scheme is FLOAT_QPARAMS:
        return (a.astype(np.float32) - zero) * scale
    whole = (a.astype(np.int32) - zero.astype(np.int32)).astype(np.float32)
    return (whole * q.scale.reshape(scale.shape)).astype(np.float32)


def laid(r: Any, t: Any) -> Tensor:
    """A tensor of the array r: channels last if t is, else row-major."""
    name = shapes.suggest_memory_format(tuple(t._a.shape), strides_of(t))
    if name == "contiguous" or r.ndim != t._a.ndim:
        return wrap(np.ascontiguousarray(r).reshape(r.shape))
    return in_format(r, getattr(formats, name))


def in_format(r: Any, memory_format: Any) -> Tensor:
    """A tensor of the array r in a memory format."""
    strides = format_strides(r.shape, memory_format)
    if strides is None:
        return wrap(np.ascontiguousarray(r).reshape(r.shape))
    order = sorted(range(r.ndim), key=lambda i: -strides[i])
    back = sorted(range(r.ndim), key=order.__getitem__)
    return wrap(np.ascontiguousarray(r.transpose(order)).transpose(back))


def quantized(values: Any, q: Quantizer, d: Any, like: Any = None) -> Any:
    """The quantized tensor of float32 values, laid out as `like`."""
    codes = codes_of(values, q, d)
    made = wrap(np.ascontiguousarray(codes).reshape(codes.shape)) if like is None else None
    return around(made if made is not None else laid(codes, like), q)


def requantized(x: Any, values: Any, q: Quantizer | None = None) -> Any:
    """x's type and format, other values, and its own quantizer unless one is given."""
    return quantized(np.asarray(values, np.float32), q or x._a.quantizer, x._k.dtype, x)


def choose(low: float, high: float, code_low: int, code_high: int) -> tuple[float, int]:
    """The scale and zero point with which codes code_low … code_high reach from `low` to `high`
    and zero has a code of its own."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (code_high - code_low)
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = 0.1
    least = float(np.float32(6.1e-5))
    if scale < least:
        first = scale
        scale = least
        if low == 0:
            high = least * (code_high - code_low)
        elif high == 0:
            low = -least * (code_high - code_low)
        else:
            low, high = low * (least / first), high * (least / first)
    from_low, from_high = code_low - low / scale, code_high - high / scale
    error_low = abs(code_low) + abs(low / scale)
    error_high = abs(code_high) + abs(high / scale)
    zero = from_low if error_low < error_high else from_high
    return scale, int(np.rint(min(max(zero, code_low), code_high)))


def check_host(x: Tensor, what: str) -> None:
    if x._k.device is not cpu:
        raise NotImplementedError(
            f"{what}: quantized tensors are there for the CPU only, not for {x._k.device}"
        )
