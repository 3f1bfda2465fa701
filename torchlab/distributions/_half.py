"""What the half distributions share: the absolute value of a variable that is symmetric about 0."""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.distributions import constraints
from torchlab.distributions.transformed_distribution import TransformedDistribution
from torchlab.distributions.transforms import AbsTransform


class Half(TransformedDistribution):
    """|X| of X ~ `_whole`(0, scale). Subclasses name that distribution and add the moments."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _whole: type[Any]

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = self._whole(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        kind = next(c for c in type(self).__mro__ if "_whole" in c.__dict__)
        return super().expand(batch_shape, self._get_checked_instance(kind, _instance))

    @property
    def scale(self) -> Tensor:
        """The scale of the distribution before its sign is dropped."""
        return self.base_dist.scale  # type: ignore[attr-defined, no-any-return]

    @property
    def mode(self) -> Tensor:
        return aten.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._log_density(value)

    def _log_density(self, value: Any) -> Tensor:
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return aten.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:  # type: ignore[override]
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


__all__ = ["Half"]
