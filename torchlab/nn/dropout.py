"""Dropout. Source: https://docs.pytorch.org/docs/2.13/nn.html#dropout-layers"""

from __future__ import annotations

from typing import Any

from torchlab.nn import functional as F
from torchlab.nn.module import Module


class _Dropout(Module):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training: zeroes each element with probability p and divides the rest by 1 - p."""

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """In training: zeroes whole channels of (N, C, L) or (C, L) with probability p."""

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """In training: zeroes whole channels of (N, C, H, W) with probability p."""

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """In training: zeroes whole channels of (N, C, D, H, W) or (C, D, H, W) with probability p."""

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance of SELU networks.

    Source: https://arxiv.org/abs/1706.02515
    """

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """Alpha dropout of whole channels (the second dimension)."""

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training)


__all__ = [
    "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
]  # fmt: skip
