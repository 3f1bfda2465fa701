"""Multivariate normal, from a covariance, a precision or a Cholesky factor.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#multivariatenormal
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.distributions import constraints
from torchlab.distributions._gaussian import (
    batch_mahalanobis,
    batch_mv,
    half_log_det,
    precision_to_scale_tril,
)
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import (
    NO_SHAPE,
    _standard_normal,
    lazy_property,
)

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """Normal vectors with mean `loc` (*, n) and one of `covariance_matrix`, `precision_matrix` and
    `scale_tril` (*, n, n); the last one is the cheapest, the others are factored."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            "covariance_matrix": covariance_matrix,
            "scale_tril": scale_tril,
            "precision_matrix": precision_matrix,
        }
        found = [(name, matrix) for name, matrix in given.items() if matrix is not None]
        if len(found) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        name, matrix = found[0]
        if matrix.dim() < 2:
            told = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{told} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = aten.broadcast_shapes(tuple(matrix.shape)[:-2], tuple(loc.shape)[:-1])
        self.__dict__[name] = matrix.expand((*batch, -1, -1))
        self.loc = loc.expand((*batch, -1))
        super().__init__(Size(batch), Size(self.loc.shape[-1:]), validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = aten.linalg_cholesky(covariance_matrix)
        else:
            assert precision_matrix is not None
            self._unbroadcasted_scale_tril = precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(
            MultivariateNormal,
            _instance,
            batch_shape,
            loc=1,
            covariance_matrix=2,
            scale_tril=2,
            precision_matrix=2,
        )
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def _full(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        return self._full(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        lower = self._unbroadcasted_scale_tril
        return self._full(aten.matmul(lower, lower.mT))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return self._full(aten.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        diagonal = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return diagonal.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        lower = self._unbroadcasted_scale_tril
        distance = batch_mahalanobis(lower, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - half_log_det(lower)

    def entropy(self) -> Tensor:
        log_det = half_log_det(self._unbroadcasted_scale_tril)
        h = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det
        return h if len(self._batch_shape) == 0 else h.expand(self._batch_shape)
