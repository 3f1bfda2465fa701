"""`torch.ops.quantized.conv1d`, `conv2d`, `conv3d`: exact integer sums, scaled once at the end.

Source: https://docs.pytorch.org/docs/2.13/quantization-support.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import formats
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._quantized import affine, around, in_format, need_quantized
from torchlab._core.ops._quantized_library import (
    LIBRARY,
    _check_operand,
    _scaled,
    _weight_scale,
    _whole,
    library,
)


class ConvPackedParamsBase:
    """Weight, bias and geometry of a convolution."""

    __slots__ = ("weight", "_bias", "_stride", "_padding", "_dilation", "_groups", "__weakref__")

    def __init__(
        self, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> None:
        self.weight, self._bias = weight, bias
        self._stride, self._padding, self._dilation = stride, padding, dilation
        self._groups = groups

    def unpack(self) -> tuple[Any, Any]:
        """Weight and bias as they were given."""
        return self.weight, self._bias

    def stride(self) -> list[int]:
        """The step in each dim."""
        return self._stride

    def padding(self) -> list[int]:
        """The rows of zeros at each end."""
        return self._padding

    def dilation(self) -> list[int]:
        """The step between taps."""
        return self._dilation

    def groups(self) -> int:
        """In how many groups the channels are convolved."""
        return self._groups

    def __getstate__(self) -> Any:
        return (*self.unpack(), self._stride, self._padding, self._dilation, self._groups)

    def __setstate__(self, state: Any) -> None:
        ConvPackedParamsBase.__init__(self, *state)


def _declare(n: int) -> None:
    def prepack(
        weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> ConvPackedParamsBase:
        name = f"quantized::conv{n}d_prepack"
        need_quantized(weight, name)
        if weight._k.dtype is not dt.qint8:
            raise RuntimeError(f"{name}: expected scalar type QInt8 but found "
                               f"{weight._k.dtype.scalar_name}")  # fmt: skip
        if weight._a.ndim != n + 2:
            raise RuntimeError(
                f"{name}: Weights are expected to have {n + 2} dimensions, not {weight._a.ndim}"
            )
        geometry = ([int(v) for v in x] for x in (stride, padding, dilation))
        return ConvPackedParamsBase(weight, bias, *geometry, int(groups))

    def run(x: Any, packed: Any, scale: float, zero_point: int, relu: bool) -> Any:
        _check_operand(f"conv{n}d", x)
        w, b = packed.unpack()
        if x._a.ndim != n + 2:
            raise RuntimeError(
                f"quantized::conv{n}d: Expected an input of {n + 2} dimensions, got {x._a.ndim}"
            )
        q = affine(float(scale), int(zero_point))
        total = getattr(aten, f"conv{n}d")(
            wrap(_whole(x)), wrap(_whole(w)), None, packed._stride, packed._padding,
            packed._dilation, packed._groups,
        )._a.round()  # fmt: skip
        shape = (-1,) + (1,) * n
        scales = _weight_scale(x, w)
        scales = scales.reshape(shape) if scales.ndim else scales
        bias = None if b is None else b._a.reshape(shape)
        codes = _scaled(total, scales, bias, q, relu)
        memory_format = (None, None, formats.channels_last, formats.channels_last_3d)[n]
        return around(in_format(codes, memory_format), q)

    def conv(qx: Any, packed_weight: Any, output_scale: float, output_zero_point: int) -> Any:
        return run(qx, packed_weight, output_scale, output_zero_point, False)

    def conv_relu(qx: Any, packed_weight: Any, output_scale: float, output_zero_point: int) -> Any:
        return run(qx, packed_weight, output_scale, output_zero_point, True)

    def unpack(packed_weights: ConvPackedParamsBase) -> tuple[Any, Any]:
        return packed_weights.unpack()

    prepack.__doc__ = f"Keep a qint8 weight and a float bias for `conv{n}d`."
    conv.__doc__ = f"The {n}-d convolution of a quint8 input: quint8."
    conv_relu.__doc__ = f"conv{n}d, then relu."
    unpack.__doc__ = "Weight and bias as they were given."
    library(f"conv{n}d_prepack")(prepack)
    library(f"conv{n}d_unpack")(unpack)
    library(f"conv{n}d")(conv)
    library(f"conv{n}d_relu")(conv_relu)


for _n in (1, 2, 3):
    _declare(_n)

__all__ = ["LIBRARY", "ConvPackedParamsBase"]
