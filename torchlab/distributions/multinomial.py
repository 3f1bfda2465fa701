"""Multinomial: counts of `total_count` categorical draws.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#multinomial
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.distributions import constraints
from torchlab.distributions.binomial import Binomial
from torchlab.distributions.categorical import Categorical
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import (
    NO_SHAPE,
    broadcast_all,
)

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """Counts (*, K) of `total_count` draws from a Categorical with `probs` or `logits` (*, K)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        batch = self._categorical.batch_shape
        event = Size(self._categorical.param_shape[-1:])
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        parts = {
            "total_count": self.total_count,
            "_categorical": self._categorical.expand(batch_shape),
            "_binomial": self._binomial.expand((*batch_shape, *self._event_shape)),
        }
        return self._expanded(Multinomial, _instance, batch_shape, _parts=parts)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        """Normalised log probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """Probabilities that sum to one."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample(Size((self.total_count, *sample_shape)))
            drawn = drawn.permute((*range(1, drawn.dim()), 0))  # the trials last
            counts = aten.new_zeros(self._categorical._param, self._extended_shape(sample_shape))
            return counts.scatter_add(-1, drawn, aten.ones_like(drawn).type_as(counts))

    def entropy(self) -> Tensor:
        n = self.total_count
        cat_entropy = self._categorical.entropy()
        first = n * cat_entropy - aten.lgamma(aten.tensor(n + 1))
        support = self._binomial.enumerate_support(expand=False)[1:]
        probs = aten.exp(self._binomial.log_prob(support))
        weights = aten.lgamma(support + 1)
        return first + (probs * weights).sum((0, -1))

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_factorial_n = aten.lgamma(value.sum(-1) + 1)
        log_factorial_xs = aten.lgamma(value + 1).sum(-1)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return log_factorial_n - log_factorial_xs + (logits * value).sum(-1)
