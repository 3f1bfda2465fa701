"""Convolution layers. Source: https://docs.pytorch.org/docs/2.13/nn.html#convolution-layers"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.nn import functional as F
from torchlab.nn import init
from torchlab.nn._sizes import each_of
from torchlab.nn.linear import reset_bias
from torchlab.nn.module import Module
from torchlab.nn.parameter import Parameter

_MODES = ("zeros", "reflect", "replicate", "circular")


class _Conv(Module):
    """What convolutions of any number of dimensions share. Weight: (out, in / groups, *kernel)."""

    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
        "out_channels", "kernel_size",
    ]  # fmt: skip
    dimensions = 0
    transposed = False
    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._setup(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def _setup(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any,
        dtype: Any,
    ) -> None:  # fmt: skip
        n = self.dimensions
        kernel_size, stride, dilation, output_padding = (
            each_of(x, n) for x in (kernel_size, stride, dilation, output_padding)
        )
        if not isinstance(padding, str):
            padding = each_of(padding, n)
        _check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = type(self).transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _border(padding, kernel_size, dilation)
        self.weight = Parameter(aten.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(aten.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw the initial values again: uniform in ±1/√fan_in."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        reset_bias(self.weight, self.bias)

    def _bordered(self, input: Any) -> tuple[Any, Any]:
        """The input with its border, where that is not zeros, and the padding that is left to
        do."""
        if self.padding_mode == "zeros":
            return input, self.padding
        wide = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return wide, (0,) * self.dimensions

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        ]
        n = self.dimensions
        for name, default in (
            ("padding", (0,) * n),
            ("dilation", (1,) * n),
            ("output_padding", (0,) * n),
            ("groups", 1),
        ):
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check(
    in_channels: int, out_channels: int, stride: Any, padding: Any, groups: int, padding_mode: str
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups:
            raise ValueError(f"{name} must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}"
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _MODES:
        raise ValueError(
            f"padding_mode must be one of {_MODES}, but got padding_mode='{padding_mode}'"
        )


def _border(padding: Any, kernel_size: Any, dilation: Any) -> list[int]:
    """What `F.pad` takes: (before, after) of each dimension, the last dimension first."""
    border: list[int] = []
    for i in reversed(range(len(kernel_size))):
        if padding == "same":
            total = dilation[i] * (kernel_size[i] - 1)
            border += [total // 2, total - total // 2]
        else:
            border += [0, 0] if padding == "valid" else [padding[i], padding[i]]
    return border


class Conv1d(_Conv):
    """Cross-correlation over (N, C, L) or (C, L)."""

    dimensions = 1

    def forward(self, input: Any) -> Any:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        """With another weight, as layers that change theirs in each call use it."""
        x, padding = self._bordered(input)
        return F.conv1d(x, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """Cross-correlation over (N, C, H, W) or (C, H, W)."""

    dimensions = 2

    def forward(self, input: Any) -> Any:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        """With another weight, as layers that change theirs in each call use it."""
        x, padding = self._bordered(input)
        return F.conv2d(x, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(_Conv):
    """Cross-correlation over (N, C, D, H, W) or (C, D, H, W)."""

    dimensions = 3

    def forward(self, input: Any) -> Any:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        """With another weight, as layers that change theirs in each call use it."""
        x, padding = self._bordered(input)
        return F.conv3d(x, weight, bias, self.stride, padding, self.dilation, self.groups)


__all__ = ["Conv1d", "Conv2d", "Conv3d"]
