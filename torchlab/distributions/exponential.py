"""Exponential: waiting times.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#exponential
"""

from __future__ import annotations

from numbers import Number
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.distributions import constraints
from torchlab.distributions.exp_family import ExponentialFamily
from torchlab.distributions.utils import (
    NO_SHAPE,
    broadcast_all,
)

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Density rate * exp(-rate * x) on x >= 0."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return aten.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        shape = Size() if isinstance(rate, Number) else self.rate.size()
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Exponential, _instance, batch_shape, "rate")

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return aten.new_empty(self.rate, shape).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - aten.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -aten.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - aten.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -aten.log(-x)
