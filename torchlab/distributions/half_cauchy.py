"""Half-Cauchy: the absolute value of a Cauchy variable.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#halfcauchy
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.distributions._half import Half
from torchlab.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|X| of X ~ Cauchy(0, scale)."""

    _whole = Cauchy
    base_dist: Cauchy

    @property
    def mean(self) -> Tensor:
        shape = self._extended_shape()
        return aten.full(shape, math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def _log_density(self, value: Any) -> Tensor:  # of numbers, too, where nothing is validated
        scale = self.base_dist.scale
        return super()._log_density(aten.as_tensor(value, dtype=scale.dtype, device=scale.device))
