"""Kumaraswamy: like beta, with a closed cdf.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#kumaraswamy
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.distributions import constraints
from torchlab.distributions.transformed_distribution import TransformedDistribution
from torchlab.distributions.transforms import (
    AffineTransform,
    PowerTransform,
)
from torchlab.distributions.uniform import Uniform
from torchlab.distributions.utils import (
    broadcast_all,
    euler_constant,
)

__all__ = ["Kumaraswamy"]


def _moments(a: Any, b: Any, n: int) -> Tensor:
    """E[X ** n] = b · B(1 + n / a, b)."""
    arg1 = 1 + n / a
    log_value = aten.lgamma(arg1) + aten.lgamma(b) - aten.lgamma(arg1 + b)
    return b * aten.exp(log_value)


class Kumaraswamy(TransformedDistribution):
    """cdf(x) = 1 - (1 - x ** concentration1) ** concentration0 on [0, 1]."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            aten.full_like(self.concentration0, 0),
            aten.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        return _moments(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return log_mode.exp().masked_fill((b < 1) | (a < 1), float("nan"))

    @property
    def variance(self) -> Tensor:
        second = _moments(self.concentration1, self.concentration0, 2)
        return second - aten.pow(self.mean, 2)

    def entropy(self) -> Tensor:
        t1 = 1 - self.concentration1.reciprocal()
        t0 = 1 - self.concentration0.reciprocal()
        harmonic = aten.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * harmonic - aten.log(self.concentration1) - aten.log(self.concentration0)
