"""Pooling over volumes, adaptive maxima, power averages.

Source: https://docs.pytorch.org/docs/2.13/nn.html#pooling-layers
"""

from __future__ import annotations

from typing import Any

from torchlab.nn.pooling import _Adaptive, _AdaptiveAvgPool, _AvgPoolDivided, _MaxPool, _Pool


class MaxPool3d(_MaxPool):
    """The largest element of each window of (N, C, D, H, W)."""

    _function = "max_pool3d"


class AvgPool3d(_AvgPoolDivided):
    """The mean of each window of (N, C, D, H, W)."""

    _function = "avg_pool3d"


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means over windows chosen so that (N, C, D, H, W) becomes (N, C, *output_size); None keeps a
    size."""

    _function = "adaptive_avg_pool3d"


class _AdaptiveMaxPool(_Adaptive):
    """return_indices: also where in its plane each maximum lies."""

    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        return self._pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima over windows chosen so that (N, C, L) becomes (N, C, output_size)."""

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima over windows chosen so that (N, C, H, W) becomes (N, C, *output_size); None keeps a
    size."""

    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima over windows chosen so that (N, C, D, H, W) becomes (N, C, *output_size); None keeps a
    size."""

    _function = "adaptive_max_pool3d"


class _LPPool(_Pool):
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

    def forward(self, input: Any) -> Any:
        return self._pool(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The p-norm of each window of (N, C, L)."""

    _function = "lp_pool1d"


class LPPool2d(_LPPool):
    """The p-norm of each window of (N, C, H, W)."""

    _function = "lp_pool2d"


class LPPool3d(_LPPool):
    """The p-norm of each window of (N, C, D, H, W)."""

    _function = "lp_pool3d"


__all__ = [
    "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool3d",
]  # fmt: skip
