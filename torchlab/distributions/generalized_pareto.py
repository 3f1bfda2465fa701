"""Generalised Pareto: excesses over a high threshold.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#generalizedpareto
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
    tensor_like,
)

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Density (1 + concentration * z) ** (-1 / concentration - 1) / scale, z = (x - loc) / scale;
    the exponential distribution where concentration is 0, bounded above where it is negative."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        numbers = all(isinstance(v, Number) for v in (loc, scale, concentration))
        super().__init__(Size() if numbers else self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(
            GeneralizedPareto, _instance, batch_shape, "loc", "scale", "concentration"
        )

    def _straight(self) -> tuple[Any, Any]:
        """Where the concentration is (nearly) zero, and a concentration safe to divide by."""
        zero = aten.isclose(self.concentration, tensor_like(0.0, self.concentration))
        return zero, aten.where(zero, aten.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = aten.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(u)

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, k = self._straight()
        y = 1 / k + aten.ones_like(z)
        where_not = -y * aten.log1p(k * z)
        return -aten.log(self.scale) + aten.where(zero, -z, where_not)

    def log_survival_function(self, value: Any) -> Tensor:
        """log P(X > value)."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, k = self._straight()
        return aten.where(zero, -z, -aten.log1p(k * z) / k)

    def log_cdf(self, value: Any) -> Tensor:
        """log P(X <= value)."""
        return aten.log1p(-aten.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Tensor:
        return aten.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Tensor:
        zero, k = self._straight()
        log_u = aten.log1p(-value)
        where_not = self.loc + self.scale * aten.expm1(-k * log_u) / k
        return aten.where(zero, self.loc - self.scale * log_u, where_not)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        k = aten.where(finite, self.concentration, tensor_like(0.5, self.concentration))
        return aten.where(finite, self.loc + self.scale / (1 - k), tensor_like(math.inf, self.loc))

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        k = aten.where(finite, self.concentration, tensor_like(0.25, self.concentration))
        value = self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))
        return aten.where(finite, value, tensor_like(math.inf, self.loc))

    def entropy(self) -> Tensor:
        return (aten.log(self.scale) + self.concentration + 1).broadcast_to(self._batch_shape)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        lower = self.loc
        upper = aten.where(
            self.concentration < 0,
            lower - self.scale / self.concentration,
            tensor_like(math.inf, lower),
        )
        return constraints.interval(lower, upper)
