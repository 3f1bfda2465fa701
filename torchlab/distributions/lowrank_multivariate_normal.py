"""Multivariate normal whose covariance is low rank plus diagonal.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#lowrankmultivariatenormal
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.distributions import constraints
from torchlab.distributions._gaussian import (
    batch_mv,
    capacitance_tril,
    lowrank_logdet,
    lowrank_mahalanobis,
)
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import (
    NO_SHAPE,
    _standard_normal,
    lazy_property,
)

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Covariance W Wᵀ + D with `cov_factor` W (*, n, m) and `cov_diag` D (*, n): densities and
    determinants need factorisations of m × m only."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = Size(loc.shape[-1:])
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        batch = aten.broadcast_shapes(
            tuple(loc.shape)[:-1], tuple(cov_factor.shape)[:-2], tuple(cov_diag.shape)[:-1]
        )
        self.loc = loc.expand((*batch, *event_shape))
        self.cov_diag = cov_diag.expand((*batch, *event_shape))
        self.cov_factor = cov_factor.expand((*batch, *event_shape, cov_factor.shape[-1]))
        super().__init__(Size(batch), event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(
            LowRankMultivariateNormal, _instance, batch_shape, loc=1, cov_diag=1, cov_factor=2
        )
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        return new

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]
        diagonal = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return diagonal.expand((*self._batch_shape, *self._event_shape))

    def _full(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance: √D · chol(I + D^-½ W Wᵀ D^-½)."""
        n = self._event_shape[0]
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        k = aten.matmul(scaled, scaled.mT)
        k = k + aten.eye(n, dtype=k.dtype, device=k.device)
        return self._full(root * aten.linalg_cholesky(k))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        w = self._unbroadcasted_cov_factor
        return self._full(aten.matmul(w, w.mT) + aten.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by the Woodbury identity."""
        w, diag = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        scaled = w.mT / diag.unsqueeze(-2)
        a = aten.linalg_solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._full(aten.diag_embed(diag.reciprocal()) - aten.matmul(a.mT, a))

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        w = self._unbroadcasted_cov_factor
        eps_w = _standard_normal(
            (*shape[:-1], w.shape[-1]), dtype=self.loc.dtype, device=self.loc.device
        )
        eps_d = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + batch_mv(w, eps_w) + self._unbroadcasted_cov_diag.sqrt() * eps_d

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        w, diag = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        distance = lowrank_mahalanobis(w, diag, value - self.loc, self._capacitance_tril)
        log_det = lowrank_logdet(w, diag, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Tensor:
        w, diag = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        log_det = lowrank_logdet(w, diag, self._capacitance_tril)
        h = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return h if len(self._batch_shape) == 0 else h.expand(self._batch_shape)
