"""Gamma: from shape (concentration) and rate.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#gamma
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
    finfo,
)

__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    return aten._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """Density x ** (concentration - 1) * exp(-rate * x), normalised, on x >= 0.

    On the CPU the draws are PyTorch's for the same seed.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        numbers = isinstance(concentration, Number) and isinstance(rate, Number)
        shape = Size() if numbers else self.concentration.size()
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Gamma, _instance, batch_shape, "concentration", "rate")

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # a draw of 0 has no density
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = aten.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            aten.xlogy(self.concentration, self.rate)
            + aten.xlogy(self.concentration - 1, value)
            - self.rate * value
            - aten.lgamma(self.concentration)
        )

    def entropy(self) -> Tensor:
        return (
            self.concentration
            - aten.log(self.rate)
            + aten.lgamma(self.concentration)
            + (1.0 - self.concentration) * aten.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return aten.lgamma(x + 1) + (x + 1) * aten.log(-y.reciprocal())

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return aten.igamma(self.concentration, self.rate * value)
