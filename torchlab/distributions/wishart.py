"""Wishart: random positive definite matrices.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#wishart
"""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.distributions import constraints
from torchlab.distributions._gaussian import half_log_det, precision_to_scale_tril
from torchlab.distributions.chi2 import Chi2
from torchlab.distributions.exp_family import ExponentialFamily
from torchlab.distributions.utils import (
    NO_SHAPE,
    finfo,
    lazy_property,
)

__all__ = ["Wishart"]


_log_2 = math.log(2)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of log Γ_p."""
    steps = aten.arange(p, dtype=x.dtype, device=x.device)
    return aten.digamma(x.unsqueeze(-1) - (steps / 2).expand((*x.shape, -1))).sum(-1)


def _clamp_above_eps(x: Tensor) -> Tensor:
    # Positive inputs are meant: 0 would become -inf or NaN.
    return x.clamp(min=finfo(x.dtype).eps)


class Wishart(ExponentialFamily):
    """Density det(X) ** ((df - p - 1) / 2) * exp(-trace(V⁻¹ X) / 2), normalised, over p × p
    matrices X; V is given as `covariance_matrix`, `precision_matrix` or `scale_tril`.

    Source: S. Sawyer, "Wishart distributions and inverse-Wishart sampling", 2007 (Bartlett's
    decomposition); T. Anderson, "An introduction to multivariate statistical analysis", 3rd ed.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> Any:  # type: ignore[override]
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        found = [(name, matrix) for name, matrix in given.items() if matrix is not None]
        if len(found) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        name, matrix = found[0]
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        degrees: Any = (
            aten.tensor(df, dtype=matrix.dtype, device=matrix.device)
            if isinstance(df, Number)
            else df
        )
        batch = Size(aten.broadcast_shapes(degrees.shape, tuple(matrix.shape)[:-2]))
        event = Size(matrix.shape[-2:])
        if degrees.le(event[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}."
            )
        self.df = degrees.expand(batch)
        self.__dict__[name] = matrix.expand((*batch, -1, -1))
        if self.df.lt(event[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch, event, validate_args=validate_args)
        self._batch_dims = [-(x + 1) for x in range(len(self._batch_shape))]
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = aten.linalg_cholesky(covariance_matrix)
        else:
            assert precision_matrix is not None
            self._unbroadcasted_scale_tril = precision_to_scale_tril(precision_matrix)
        self._dist_chi2 = self._chi2()

    def _chi2(self) -> Chi2:
        """The squared diagonal of Bartlett's factor: df, df - 1, …, df - p + 1 degrees."""
        p = self._event_shape[-1]
        steps = aten.arange(p, dtype=self.df.dtype, device=self.df.device)
        return Chi2(df=self.df.unsqueeze(-1) - steps.expand((*self._batch_shape, -1)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(
            Wishart,
            _instance,
            batch_shape,
            "df",
            covariance_matrix=2,
            scale_tril=2,
            precision_matrix=2,
        )
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(
            (*batch_shape, *self._event_shape)
        )
        new._batch_dims = [-(x + 1) for x in range(len(new._batch_shape))]
        new._dist_chi2 = new._chi2()
        return new

    def _full(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of V."""
        return self._full(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """V."""
        lower = self._unbroadcasted_scale_tril
        return self._full(lower @ lower.transpose(-2, -1))

    @lazy_property
    def precision_matrix(self) -> Any:
        """V⁻¹."""
        return self._full(aten.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.df.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, float("nan"))
        return factor.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view((*self._batch_shape, 1, 1)) * (v.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        p = self._event_shape[-1]
        noise = _clamp_above_eps(self._dist_chi2.rsample(sample_shape).sqrt()).diag_embed()
        below = aten.tril_indices(p, p, offset=-1)
        normal = aten.randn(
            (*sample_shape, *self._batch_shape, p * (p - 1) // 2),
            dtype=noise.dtype,
            device=noise.device,
        )
        noise[..., below[0], below[1]] = normal
        chol = self._unbroadcasted_scale_tril @ noise
        return chol @ chol.transpose(-2, -1)

    def rsample(self, sample_shape: Any = NO_SHAPE, max_try_correction: Any = None) -> Tensor:
        """Draws by Bartlett's decomposition. Sets of matrices (a batch) of which one is singular
        are drawn again, up to `max_try_correction` times (3, or 10 without a batch)."""
        if max_try_correction is None:
            max_try_correction = 3 if self._batch_dims else 10
        sample_shape = Size(sample_shape)
        # PyTorch replaces a first set of valid draws: so do we, to have its numbers for a seed.
        self._bartlett_sampling(sample_shape)
        flat = self._bartlett_sampling(Size((sample_shape.numel(),)))
        for _ in range(max_try_correction - 1):
            singular = self._singular(flat)
            if not singular.any():
                break
            warnings.warn("Singular sample detected.", stacklevel=2)
            again = self._bartlett_sampling(Size((int(singular.sum()),)))
            flat = flat.index_put((singular,), again)
        return flat.reshape(self._extended_shape(sample_shape))

    def _singular(self, sample: Tensor) -> Tensor:
        """Which sets of (n, *batch, p, p) have a matrix without a Cholesky factor."""
        bad = aten.linalg_cholesky_ex(sample.detach()).info.ne(0)
        return bad.reshape((sample.shape[0], -1)).any(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        lower = self._unbroadcasted_scale_tril
        trace = aten.cholesky_solve(value, lower).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -nu * (p * _log_2 / 2 + half_log_det(lower))
            - aten.mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * aten.linalg_slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * _log_2 / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + aten.mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        nu, p = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - p - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        p = self._event_shape[-1]
        log_det = aten.linalg_slogdet(-2 * x).logabsdet
        return (y + (p + 1) / 2) * (-log_det + _log_2 * p) + aten.mvlgamma(y + (p + 1) / 2, p)
