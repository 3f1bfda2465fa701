"""Cauchy (Lorentz): the ratio of two normal variables.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#cauchy
"""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.distributions import constraints
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import (
    NO_SHAPE,
    broadcast_all,
)

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Cauchy with median `loc` and half width at half maximum `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        numbers = isinstance(loc, Number) and isinstance(scale, Number)
        super().__init__(Size() if numbers else self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Cauchy, _instance, batch_shape, "loc", "scale")

    @property
    def mean(self) -> Tensor:
        return aten.full_like(self.loc.expand(self._extended_shape()), float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return aten.full_like(self.loc.expand(self._extended_shape()), math.inf)

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = aten.new_empty(self.loc, shape).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return aten.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return aten.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
