"""Half-normal: the absolute value of a normal variable.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#halfnormal
"""

from __future__ import annotations

import math

from torchlab._core.tensor import Tensor
from torchlab.distributions._half import Half
from torchlab.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|X| of X ~ Normal(0, scale)."""

    _whole = Normal
    base_dist: Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
