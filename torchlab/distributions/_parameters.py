"""Distributions that are given by probabilities or by log odds.

Each keeps the one that was given; the other is computed when first asked for.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.distributions.utils import (
    broadcast_all,
    lazy_property,
    log_of_logits,
    logits_to_probs,
    probs_to_logits,
)


def exactly_one(probs: Any, logits: Any) -> None:
    """Raise ValueError unless one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ProbsOrLogits:
    """What both kinds share: `_param` is the parameter that was given."""

    _param: Tensor

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return aten.new_empty(self._param, *args, **kwargs)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()


class BinaryParameter(ProbsOrLogits):
    """Probabilities of a success, or their log odds."""

    def _take(self, probs: Any, logits: Any) -> Size:
        """Keep what is given; returns the batch shape."""
        exactly_one(probs, logits)
        given = probs if probs is not None else logits
        (self._param,) = broadcast_all(given)
        self.__dict__["probs" if probs is not None else "logits"] = self._param
        return Size() if isinstance(given, Number) else self._param.size()

    def _keep_param(self) -> None:
        self._param = self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)


class CategoricalParameter(ProbsOrLogits):
    """Weights of categories along the last dimension, or their logarithms; both normalised."""

    def _take(self, probs: Tensor | None, logits: Tensor | None) -> None:
        exactly_one(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            assert logits is not None
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = log_of_logits(logits)
        self._param = self.probs if probs is not None else self.logits

    @lazy_property
    def logits(self) -> Any:
        """Normalised log probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities that sum to one."""
        return logits_to_probs(self.logits)
