"""Negative binomial: successes before the `total_count`-th failure.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#negativebinomial
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.distributions import constraints
from torchlab.distributions._parameters import BinaryParameter, exactly_one
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.gamma import Gamma
from torchlab.distributions.utils import (
    NO_SHAPE,
    broadcast_all,
    lazy_property,
)

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameter, Distribution):
    """The number of successes (of probability `probs`) before `total_count` failures.

    On the CPU the draws are PyTorch's for the same seed.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        exactly_one(probs, logits)
        name, given = ("probs", probs) if probs is not None else ("logits", logits)
        self.total_count, self._param = broadcast_all(total_count, given)
        self.total_count = self.total_count.type_as(self._param)
        self.__dict__[name] = self._param
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(
            NegativeBinomial, _instance, batch_shape, "total_count", "probs", "logits"
        )
        new._keep_param()
        return new

    @property
    def mean(self) -> Tensor:
        return self.total_count * aten.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / aten.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        # The mixing distribution of the Poisson rate; a count of 0 is checked nowhere.
        return Gamma(
            concentration=self.total_count, rate=aten.exp(-self.logits), validate_args=False
        )

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            return aten.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        unnormalised = n * aten.log_sigmoid(-logits) + value * aten.log_sigmoid(logits)
        coefficient = aten.lgamma(1.0 + value) + aten.lgamma(n) - aten.lgamma(n + value)
        # No failures wanted: the count is 0 for sure.
        coefficient = coefficient.masked_fill(n + value == 0.0, 0.0)
        return unnormalised - coefficient
