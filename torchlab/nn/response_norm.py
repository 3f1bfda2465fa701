"""Normalization over neighbouring channels.

Source: https://docs.pytorch.org/docs/2.13/nn.html#normalization-layers
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.nn import functional as F
from torchlab.nn.module import Module


class LocalResponseNorm(Module):
    """x / (k + alpha · mean of x² over `size` neighbouring channels) ^ beta; x: (N, C, *)."""

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Any) -> Any:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """LocalResponseNorm of (N, C, H, W), as Torch7 summed it.

    The window is symmetric: an even size covers as many channels as size - 1, and still divides by
    size. And the first channel, once it has left the window, still counts.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Any) -> Any:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        side = (self.size - 1) // 2
        n, channels, height, width = input.shape
        squares = input * input
        planes = aten.reshape(squares, (n, 1, channels, height * width))
        wide = aten.constant_pad_nd(planes, (0, 0, side, side), 0.0)
        means = aten.avg_pool2d(wide, (2 * side + 1, 1), 1)
        sums = aten.reshape(means * (2 * side + 1), input.shape)
        first, rest = sums[:, : side + 1], sums[:, side + 1 :]
        sums = aten.cat([first, rest + squares[:, :1]], 1)
        return input / aten.pow(sums * (self.alpha / self.size) + self.k, self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


__all__ = ["CrossMapLRN2d", "LocalResponseNorm"]
