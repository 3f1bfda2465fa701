"""Logistic-normal: a normal vector on the simplex.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#logisticnormal
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.distributions import constraints
from torchlab.distributions.normal import Normal
from torchlab.distributions.transformed_distribution import TransformedDistribution
from torchlab.distributions.transforms import (
    StickBreakingTransform,
)

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """A vector of independent normal variables, taken to the simplex by stick breaking."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Any

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> Tensor:
        """The means of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal variables."""
        return self.base_dist.base_dist.scale
