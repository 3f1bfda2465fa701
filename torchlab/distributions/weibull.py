"""Weibull: life times.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#weibull
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.distributions import constraints
from torchlab.distributions.exponential import Exponential
from torchlab.distributions.transformed_distribution import TransformedDistribution
from torchlab.distributions.transforms import (
    AffineTransform,
    PowerTransform,
)
from torchlab.distributions.utils import (
    broadcast_all,
    euler_constant,
)

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """cdf(x) = 1 - exp(-(x / scale) ** concentration) on x > 0."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(aten.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        base = self.base_dist.expand(batch_shape)
        transforms = [
            PowerTransform(exponent=new.concentration_reciprocal),
            AffineTransform(loc=0, scale=new.scale),
        ]
        TransformedDistribution.__init__(new, base, transforms, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Tensor:
        return self.scale * aten.exp(aten.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        base = (self.concentration - 1) / self.concentration
        return self.scale * base ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        first = aten.exp(2 * aten.lgamma(1 + self.concentration_reciprocal))
        second = aten.exp(aten.lgamma(1 + 2 * self.concentration_reciprocal))
        return self.scale.pow(2) * (second - first)

    def entropy(self) -> Tensor:
        return (
            euler_constant * (1 - self.concentration_reciprocal)
            + aten.log(self.scale * self.concentration_reciprocal)
            + 1
        )
