"""Categorical: one of K categories.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#categorical
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.distributions import constraints
from torchlab.distributions._parameters import CategoricalParameter
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import NO_SHAPE, finfo

__all__ = ["Categorical"]


class Categorical(CategoricalParameter, Distribution):
    """One of the integers 0 … K - 1, with the weights along the last dimension of `probs`, or
    unnormalised log probabilities `logits`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        self._num_events = self._param.size(-1)
        super().__init__(Size(self._param.shape[:-1]), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(Categorical, _instance, batch_shape, probs=1, logits=1)
        new._param = new.__dict__["probs" if "probs" in new.__dict__ else "logits"]
        new._num_events = self._num_events
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return aten.full(
            self._extended_shape(), float("nan"), dtype=self.probs.dtype, device=self.probs.device
        )

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = aten.multinomial(rows, sample_shape.numel(), True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        shape = aten.broadcast_shapes(value.shape, (*self.logits.shape[:-1], 1))
        log_pmf = self.logits.expand((*shape[:-1], self.logits.shape[-1]))
        return log_pmf.gather(-1, value.expand(shape)).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = aten.clamp(self.logits, min=-finfo(self.logits.dtype).max)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = aten.arange(self._num_events, device=self._param.device)
        values = values.view((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
