"""Continuous Bernoulli: a likelihood for values in [0, 1].

Source: https://docs.pytorch.org/docs/2.13/distributions.html#continuousbernoulli
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.distributions import constraints
from torchlab.distributions._parameters import BinaryParameter, exactly_one
from torchlab.distributions.exp_family import ExponentialFamily
from torchlab.distributions.utils import (
    NO_SHAPE,
    broadcast_all,
    clamp_probs,
    cross_entropy_with_logits,
    lazy_property,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameter, ExponentialFamily):
    """Density p ** x * (1 - p) ** (1 - x), normalised, on [0, 1].

    Between `lims` (around 0.5, where the closed forms are 0 / 0) Taylor series are used.
    Source: G. Loaiza-Ganem, J. Cunningham, arXiv:1907.06845.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        exactly_one(probs, logits)
        batch_shape = self._take(probs, logits)
        if probs is not None:
            if (
                validate_args is not None
                and not self.arg_constraints["probs"].check(self._param).all()
            ):
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self._param)
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(ContinuousBernoulli, _instance, batch_shape, "probs", "logits")
        new._lims = self._lims
        new._keep_param()
        return new

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Any:
        # Inside the region a harmless value: no NaN, in the gradient either.
        return aten.where(
            self._outside_unstable_region(),
            self.probs,
            self._lims[0] * aten.ones_like(self.probs),
        )

    def _cont_bern_log_norm(self) -> Tensor:
        """log of the normalising constant 2 artanh(1 - 2p) / (1 - 2p)."""
        p = self._cut_probs()
        below = aten.where(p <= 0.5, p, aten.zeros_like(p))
        above = aten.where(p >= 0.5, p, aten.ones_like(p))
        log_norm = aten.log(aten.abs(aten.log1p(-p) - aten.log(p))) - aten.where(
            p <= 0.5, aten.log1p(-2.0 * below), aten.log(2.0 * above - 1.0)
        )
        x = (self.probs - 0.5) ** 2
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return aten.where(self._outside_unstable_region(), log_norm, taylor)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        mean = p / (2.0 * p - 1.0) + 1.0 / (aten.log1p(-p) - aten.log(p))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x
        return aten.where(self._outside_unstable_region(), mean, taylor)

    @property
    def stddev(self) -> Tensor:
        return aten.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        variance = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2
        variance = variance + 1.0 / (aten.log1p(-p) - aten.log(p)) ** 2
        x = (self.probs - 0.5) ** 2
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return aten.where(self._outside_unstable_region(), variance, taylor)

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds."""
        p = clamp_probs(self.probs)
        return aten.log(p) - aten.log1p(-p)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities, kept off 0 and 1."""
        return clamp_probs(aten.sigmoid(self.logits))

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            return self.icdf(self._uniform(sample_shape))

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        return self.icdf(self._uniform(sample_shape))

    def _uniform(self, sample_shape: Any) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return aten.rand(shape, dtype=self.probs.dtype, device=self.probs.device)

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -cross_entropy_with_logits(logits, value) + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        cdfs = (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = aten.where(self._outside_unstable_region(), cdfs, value)
        inside = aten.where(value <= 0.0, aten.zeros_like(value), inside)
        return aten.where(value >= 1.0, aten.ones_like(value), inside)

    def icdf(self, value: Any) -> Tensor:
        p = self._cut_probs()
        found = aten.log1p(-p + value * (2.0 * p - 1.0)) - aten.log1p(-p)
        found = found / (aten.log(p) - aten.log1p(-p))
        return aten.where(self._outside_unstable_region(), found, value)

    def entropy(self) -> Tensor:
        log_p0, log_p1 = aten.log1p(-self.probs), aten.log(self.probs)
        return self.mean * (log_p0 - log_p1) - self._cont_bern_log_norm() - log_p0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Tensor:  # type: ignore[override]
        """log((exp(x) - 1) / x)."""
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = aten.where(outside, x, (self._lims[0] - 0.5) * aten.ones_like(x))
        log_norm = aten.log(aten.abs(aten.expm1(cut))) - aten.log(aten.abs(cut))
        taylor = 0.5 * x + aten.pow(x, 2) / 24.0 - aten.pow(x, 4) / 2880.0
        return aten.where(outside, log_norm, taylor)
