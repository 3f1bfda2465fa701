"""Von Mises: a normal variable on the circle.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#vonmises
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.distributions import constraints
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import (
    NO_SHAPE,
    broadcast_all,
    lazy_property,
)

__all__ = ["VonMises"]


def _log_bessel_i(x: Tensor, order: int) -> Tensor:
    """log of the modified Bessel function I of order 0 or 1."""
    scaled = aten.i0e(x) if order == 0 else aten.i1e(x)
    return scaled.log() + x


def _rejection_sample(loc: Tensor, concentration: Tensor, proposal_r: Any, x: Any) -> Any:
    done = aten.zeros(tuple(x.shape), dtype=dt.bool_, device=loc.device)
    while not done.all():
        u = aten.rand((3, *x.shape), dtype=loc.dtype, device=loc.device)
        u1, u2, u3 = u.unbind()
        z = aten.cos(math.pi * u1)
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
        if accept.any():
            x = aten.where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    """Angles in [-π, π) with density exp(concentration * cos(x - loc)), normalised.

    Sampling (in float64) follows D. Best, N. Fisher, "Efficient simulation of the von Mises
    distribution", 1979; on the CPU the draws are PyTorch's for the same seed.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(
        self, loc: Tensor, concentration: Tensor, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.concentration * aten.cos(value - self.loc)
        return log_prob - math.log(2 * math.pi) - _log_bessel_i(self.concentration, 0)

    @lazy_property
    def _loc(self) -> Any:
        return self.loc.to(dt.float64)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(dt.float64)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        proposal = (1 + rho**2) / (2 * rho)
        # Second order Taylor expansion around 0, for small kappa.
        return aten.where(kappa < 1e-5, 1 / kappa + kappa, proposal)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            x = aten.empty(shape, dtype=dt.float64, device=self.loc.device)
            drawn = _rejection_sample(self._loc, self._concentration, self._proposal_r, x)
            return drawn.to(self.loc.dtype)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        if _instance is not None:
            return self._expanded(VonMises, _instance, batch_shape, "loc", "concentration")
        validate_args = self.__dict__.get("_validate_args")
        loc = self.loc.expand(batch_shape)
        concentration = self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]
        """The circular variance, 1 - I1(concentration) / I0(concentration)."""
        ratio = _log_bessel_i(self.concentration, 1) - _log_bessel_i(self.concentration, 0)
        return 1 - ratio.exp()
