"""Dropout. Source: https://docs.pytorch.org/docs/2.13/nn.html#dropout-layers"""

from __future__ import annotations

from typing import Any

from torchlab.nn import functional as F
from torchlab.nn.module import Module


class Dropout(Module):
    """In training: zeroes each element with probability p and divides the rest by 1 - p."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


__all__ = ["Dropout"]
