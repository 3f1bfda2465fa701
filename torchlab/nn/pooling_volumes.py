"""Pooling over volumes, adaptive maxima, power averages.

Source: https://docs.pytorch.org/docs/2.13/nn.html#pooling-layers
"""

from __future__ import annotations

from typing import Any

from torchlab.nn import functional as F
from torchlab.nn.module import Module
from torchlab.nn.pooling import _Adaptive, _MaxPool


class MaxPool3d(_MaxPool):
    """The largest element of each window of (N, C, D, H, W)."""

    def forward(self, input: Any) -> Any:
        return F.max_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class AvgPool3d(Module):
    """The mean of each window of (N, C, D, H, W)."""

    __constants__ = [
        "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override",
    ]  # fmt: skip

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool3d(_Adaptive):
    """Means over windows chosen so that (N, C, D, H, W) becomes (N, C, *output_size); None keeps a
    size."""

    __constants__ = ["output_size"]

    def forward(self, input: Any) -> Any:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPool(_Adaptive):
    """return_indices: also where in its plane each maximum lies."""

    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima over windows chosen so that (N, C, L) becomes (N, C, output_size)."""

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima over windows chosen so that (N, C, H, W) becomes (N, C, *output_size); None keeps a
    size."""

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima over windows chosen so that (N, C, D, H, W) becomes (N, C, *output_size); None keeps a
    size."""

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _LPPool(Module):
    """(Σ xᵖ)^(1/p) over each window, p the norm_type: 1 is the sum, ∞ the maximum."""

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The p-norm of each window of (N, C, L)."""

    def forward(self, input: Any) -> Any:
        return F.lp_pool1d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool2d(_LPPool):
    """The p-norm of each window of (N, C, H, W)."""

    def forward(self, input: Any) -> Any:
        return F.lp_pool2d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool3d(_LPPool):
    """The p-norm of each window of (N, C, D, H, W)."""

    def forward(self, input: Any) -> Any:
        return F.lp_pool3d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


__all__ = [
    "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool3d",
]  # fmt: skip
