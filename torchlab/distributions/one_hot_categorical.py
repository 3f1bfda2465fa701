"""One-hot categorical: a categorical draw as a vector.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#onehotcategorical
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.distributions import constraints
from torchlab.distributions.categorical import Categorical
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import NO_SHAPE

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """One-hot vectors (*, K) with the weights `probs`, or unnormalised log probabilities
    `logits`, (*, K)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        batch = self._categorical.batch_shape
        event = Size(self._categorical.param_shape[-1:])
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        parts = {"_categorical": self._categorical.expand(batch_shape)}
        return self._expanded(OneHotCategorical, _instance, batch_shape, _parts=parts)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """Probabilities that sum to one."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Normalised log probabilities."""
        return self._categorical.logits

    @property
    def mean(self) -> Tensor:
        return self._categorical.probs

    @property
    def mode(self) -> Tensor:
        probs = self._categorical.probs
        return self._one_hot(probs.argmax(dim=-1)).to(probs.dtype)

    @property
    def variance(self) -> Tensor:
        probs = self._categorical.probs
        return probs * (1 - probs)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    def _one_hot(self, index: Tensor) -> Tensor:
        return aten.one_hot(index, self._categorical._num_events)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        probs = self._categorical.probs
        return self._one_hot(self._categorical.sample(Size(sample_shape))).to(probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = aten.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n, *(1,) * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors through which gradients reach `probs` as if they were the draw.

    Source: Y. Bengio, N. Léonard, A. Courville, arXiv:1308.3432.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        samples = self.sample(sample_shape)
        probs = self._categorical.probs
        return samples + (probs - probs.detach())
