"""Exponential families: entropy and divergence from the log normaliser alone.

Source: F. Nielsen, R. Nock, "Entropies and cross-entropies of exponential families", 2010;
https://docs.pytorch.org/docs/2.13/distributions.html#exponentialfamily
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.autograd.api import grad
from torchlab.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """p(x; θ) = exp(<t(x), θ> - F(θ) + k(x)), with natural parameters θ, sufficient statistic t,
    log normaliser F and carrier measure k."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """The natural parameters."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        """The log normaliser at these natural parameters."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        """The expected carrier measure."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The Bregman divergence of the log normaliser: its gradient is E[t(x)]."""
        result: Any = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for p, g in zip(params, gradients, strict=True):
            result = result - (p * g).reshape((*self._batch_shape, -1)).sum(-1)
        return result
