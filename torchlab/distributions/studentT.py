"""Student's t: a normal variable of uncertain scale.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#studentt
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.distributions import constraints
from torchlab.distributions.chi2 import Chi2
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import (
    NO_SHAPE,
    _standard_normal,
    broadcast_all,
)

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t with `df` degrees of freedom, shifted by `loc` and scaled by `scale`."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinite for df in (1, 2], undefined up to 1."""
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        variance = aten.where(self.df > 2, finite, math.inf)
        return variance.masked_fill(self.df <= 1, float("nan"))

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        parts = {"_chi2": self._chi2.expand(batch_shape)}
        return self._expanded(StudentT, _instance, batch_shape, "df", "loc", "scale", _parts=parts)

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * aten.rsqrt(z / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        log_norm = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + aten.lgamma(0.5 * self.df)
            - aten.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * aten.log1p(y**2.0 / self.df) - log_norm

    def entropy(self) -> Tensor:
        log_beta = aten.lgamma(0.5 * self.df) + math.lgamma(0.5) - aten.lgamma(0.5 * (self.df + 1))
        difference = aten.digamma(0.5 * (self.df + 1)) - aten.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * difference + 0.5 * self.df.log() + log_beta
