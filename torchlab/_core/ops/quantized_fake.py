"""Fake quantization: round to the values that codes can stand for, and stay a float tensor.

The gradient is the straight-through estimate: 1 where the code is in range, 0 where it was cut off.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.fake_quantize_per_tensor_affine.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout as shapes
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._quantized import choose
from torchlab._core.tensor import Tensor

_ARGUMENTS = "(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max"


def _spread(xp: Any, x: Any, ndim: int, axis: int) -> Any:
    if axis < 0:
        return x.reshape(())
    return x.reshape([-1 if i == axis else 1 for i in range(ndim)])


def _codes(xp: Any, a: Any, scale: Any, zero: Any, axis: int) -> Any:
    """(unbounded codes, scales, zero points) in float32."""
    s = _spread(xp, scale.astype(np.float32), a.ndim, axis)
    z = _spread(xp, zero.astype(np.float32), a.ndim, axis)
    inverse = np.float32(1) / s
    if zero.dtype.kind == "f":
        wide = np.float64 if a.dtype == np.float64 else np.float32
        t = a.astype(wide) * inverse.astype(wide) + z.astype(wide)
        return xp.rint(t), s.astype(np.float64), z.astype(np.float64)
    t = xp.rint(a.astype(np.float32) * inverse) + z
    if axis >= 0 and a.dtype == np.float64:
        return t.astype(np.float64), s.astype(np.float64), z.astype(np.float64)
    return t, s, z


def _meta(a: Any, *_: Any, **__: Any) -> Any:
    strides = [x // a.itemsize for x in a.strides]
    return MetaArray(a.shape, a.dtype, shapes.empty_like_strides(a.shape, strides))


def _mask_meta(a: Any, *_: Any, **__: Any) -> Any:
    m = _meta(a)
    return MetaArray(m.shape, np.dtype(bool), [x // m.itemsize for x in m.strides])


def _fake(xp: Any, a: Any, scale: Any, zero: Any, axis: int, low: int, high: int) -> Any:
    t, s, z = _codes(xp, a, scale, zero, axis)
    t = xp.fmin(xp.fmax(t, np.float32(low)), np.float32(high))
    return ((t - z) * s).astype(a.dtype)


@op(
    f"_fake_quantize_mask{_ARGUMENTS}) -> Tensor",
    public=False,
    half=False,
    meta=_mask_meta,
)
def _fake_quantize_mask(
    xp: Any, a: Any, scale: Any, zero: Any, axis: int, low: int, high: int
) -> Any:
    """Where the code is in range."""
    t, _, _ = _codes(xp, a, scale, zero, axis)
    return (t >= low) & (t <= high)


def _declare(name: str, grad_name: str, autocast: str | None = None) -> Any:
    mask = "_fake_quantize_mask(self, scale, zero_point, axis, quant_min, quant_max)"
    return op(
        f"{name}{_ARGUMENTS}) -> Tensor",
        public=False,
        half=False,
        autocast=autocast,
        vjp={"self": f"g * {mask}"},
        grad_name=grad_name,
        meta=_meta,
    )(_fake)


_per_tensor = _declare(
    "_fake_quantize_per_tensor",
    "FakeQuantizePerTensorAffineCachemaskBackward0",
    autocast="float32:cpu",
)
_per_tensor_qparams = _declare(
    "_fake_quantize_per_tensor_qparams",
    "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0",
)
_per_channel = _declare(
    "_fake_quantize_per_channel", "FakeQuantizePerChannelAffineCachemaskBackward0"
)


def _check_float(x: Any) -> None:
    if not x._k.dtype.is_floating_point:
        raise NotImplementedError(
            f"fake_quantize: not implemented for '{x._k.dtype.scalar_name}'; give a float tensor"
        )


def _check_range(low: int, high: int) -> None:
    if low > high:
        raise RuntimeError(
            f"`quant_min` should be less than or equal to `quant_max`, but they are {low} and"
            f" {high}."
        )


@face("fake_quantize_per_tensor_affine", method=False)
def fake_quantize_per_tensor_affine(
    self: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Any:
    """Round to the multiples of `scale` whose codes lie in quant_min … quant_max; scale and zero
    point are two numbers or two tensors of one element. Same shape and type."""
    pair = isinstance(scale, Tensor), isinstance(zero_point, Tensor)
    plain = isinstance(scale, (int, float)) and isinstance(zero_point, int)
    if not isinstance(self, Tensor) or not (all(pair) or plain):
        raise TypeError(
            "fake_quantize_per_tensor_affine() received an invalid combination of arguments - got"
            f" ({type(self).__name__}, {type(scale).__name__}, {type(zero_point).__name__}, …);"
            " scale and zero_point are a float and an int, or two tensors"
        )
    _check_range(quant_min, quant_max)
    if all(pair):
        _check_float(self)
        for x in (scale, zero_point):
            if x._a.size != 1:
                raise RuntimeError(
                    f"a Tensor with {x._a.size} elements cannot be converted to Scalar"
                )
        return _per_tensor_qparams.call(self, scale, zero_point, -1, quant_min, quant_max)
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError(
            f"`zero_point` must be between `quant_min` and `quant_max`, but {zero_point} is not in"
            f" {quant_min} … {quant_max}."
        )
    _check_float(self)
    s, z = (wrap(np.array(v, t)) for v, t in ((scale, np.float64), (zero_point, np.int64)))
    if self._k.device.type != "cpu":
        s, z = aten.to(s, self._k.device), aten.to(z, self._k.device)
    return _per_tensor.call(self, s, z, -1, quant_min, quant_max)


@face("fake_quantize_per_channel_affine", method=False)
def fake_quantize_per_channel_affine(
    self: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> Any:
    """The same with a scale and a zero point for each index of dim `axis`. Zero points are int32,
    or floats, which are added before rounding."""
    if scale._k.dtype not in (dt.float32, dt.bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scale._k.dtype.scalar_name}")
    if zero_point._k.dtype not in (dt.int32, dt.float32, dt.float16):
        raise RuntimeError(
            f"Zero-point must be Int32, Float or Half, found {zero_point._k.dtype.scalar_name}"
        )
    if scale._a.ndim != 1 or zero_point._a.ndim != 1:
        raise RuntimeError(
            f"scale and zero_point need to be 1-D tensors, not {scale._a.ndim}-D and"
            f" {zero_point._a.ndim}-D"
        )
    if scale._a.size != zero_point._a.size:
        raise RuntimeError(
            "scale and zero-point need to have the same dimensions, not"
            f" {scale._a.size} and {zero_point._a.size}"
        )
    d = shapes.wrap_dim(axis, self._a.ndim, "fake_quantize_per_channel_affine")
    if scale._a.size != self._a.shape[d]:
        raise RuntimeError(
            "dimensions of scale and zero-point are not consistent with input tensor: they have"
            f" {scale._a.size} elements, dim {d} of {list(self._a.shape)} has {self._a.shape[d]}"
        )
    _check_range(quant_min, quant_max)
    if zero_point._k.dtype is dt.int32 and self._k.device.type != "meta" and zero_point._a.size:
        ends = int(zero_point._a.min()), int(zero_point._a.max())
        if ends[0] < quant_min or ends[1] > quant_max:
            raise RuntimeError(
                f"`zero_point` must be between `quant_min` and `quant_max`, but reaches from"
                f" {ends[0]} to {ends[1]}, beyond {quant_min} … {quant_max}."
            )
    _check_float(self)
    return _per_channel.call(self, scale, zero_point, d, quant_min, quant_max)


def _observe(x: Any, running_min: Any, running_max: Any, constant: float, axis: Any) -> None:
    """Move the running ends toward those of x; the first time (infinite ends) take them over."""
    others = None if axis is None else tuple(i for i in range(x._a.ndim) if i != axis)
    for running, found in (
        (running_min, x._a.min(axis=others)),
        (running_max, x._a.max(axis=others)),
    ):
        new = np.asarray(found, np.float32).reshape(-1)
        old = running._a.reshape(-1) if running._a.size == new.size else np.full_like(new, np.inf)
        moved = np.where(np.isinf(old), new, old + np.float32(constant) * (new - old))
        if running._a.size != new.size:
            running.resize_(new.shape)
        running.copy_(wrap(moved.astype(np.float32).reshape(running._a.shape)))


def _qparams(low: float, high: float, codes: tuple[int, int], symmetric: bool) -> Any:
    """Scale and zero point; `symmetric`: zero is the middle code, if there are values on both sides
    of it."""
    if not symmetric or not low < 0 < high:
        return choose(low, high, *codes)
    half = (codes[1] - codes[0]) // 2
    unit = max(-low / (half + 1), high / half)
    scale, _ = choose(-unit * (half + 1), unit * half, *codes)
    return scale, int(np.rint(sum(codes) / 2))


@face("fused_moving_avg_obs_fake_quant", method=False)
def fused_moving_avg_obs_fake_quant(
    self: Any,
    observer_on: Any,
    fake_quant_on: Any,
    running_min: Any,
    running_max: Any,
    scale: Any,
    zero_point: Any,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Any:
    """A moving-average observer and the fake quantization by what it has seen, in one call:
    updates running_min, running_max, scale and zero_point in place (per row: one for each index of
    `ch_axis`)."""
    axis = ch_axis if per_row_fake_quant else None
    if observer_on._a.reshape(-1)[0]:
        if not self._a.size:
            raise RuntimeError("fused_moving_avg_obs_fake_quant(): an empty tensor has no range")
        _observe(self, running_min, running_max, averaging_const, axis)
        ends = zip(running_min._a.ravel().tolist(), running_max._a.ravel().tolist(), strict=True)
        codes = (quant_min, quant_max)
        found = [_qparams(a, b, codes, symmetric_quant) for a, b in ends]
        for target, values in ((scale, [s for s, _ in found]), (zero_point, [z for _, z in found])):
            if target._a.size != len(values):
                target.resize_((len(values),))
            target.copy_(wrap(np.array(values, target._k.np).reshape(target._a.shape)))
    if not fake_quant_on._a.reshape(-1)[0]:
        return aten.alias(self)
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine.body(
            self, scale, zero_point, ch_axis, quant_min, quant_max
        )
    return _per_tensor_qparams.call(self, scale, zero_point, -1, quant_min, quant_max)
