"""Mixtures whose components are of one family.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#mixturesamefamily
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.distributions import constraints
from torchlab.distributions.categorical import Categorical
from torchlab.distributions.constraints import MixtureSameFamilyConstraint
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import NO_SHAPE

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A categorical choice among the last batch dimension of `component_distribution`."""

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions."
                "Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of torch.distributions."
                "Distribution"
            )
        mixture_batch = mixture_distribution.batch_shape
        component_batch = Size(component_distribution.batch_shape[:-1])
        for a, b in zip(reversed(mixture_batch), reversed(component_batch), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible with "
                    f"`component_distribution.batch_shape`({component_batch})"
                )
        wanted = mixture_distribution.logits.shape[-1]
        has = component_distribution.batch_shape[-1]
        if wanted is not None and has is not None and wanted != has:
            raise ValueError(
                f"`mixture_distribution component` ({wanted}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({has})"
            )
        self._num_component = wanted
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(component_batch, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        component = self._component_distribution.expand(Size((*batch_shape, self._num_component)))
        parts = {
            "_component_distribution": component,
            "_mixture_distribution": self._mixture_distribution.expand(Size(batch_shape)),
            "_num_component": self._num_component,
            "_event_ndims": len(component.event_shape),
        }
        return self._expanded(MixtureSameFamily, _instance, batch_shape, _parts=parts)

    @constraints.dependent_property
    def support(self) -> Any:  # type: ignore[override]
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The choice of the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    @property
    def mean(self) -> Tensor:
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return aten.sum(probs * self.component_distribution.mean, -1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # Var(Y) = E[Var(Y | X)] + Var(E[Y | X])
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        dim = -1 - self._event_ndims
        inside = aten.sum(probs * self.component_distribution.variance, dim)
        deviation = self.component_distribution.mean - self._pad(self.mean)
        return inside + aten.sum(probs * deviation.pow(2.0), dim)

    def cdf(self, x: Tensor) -> Tensor:  # type: ignore[override]
        cdf_x = self.component_distribution.cdf(self._pad(x))
        return aten.sum(cdf_x * self.mixture_distribution.probs, -1)

    def log_prob(self, x: Tensor) -> Tensor:  # type: ignore[override]
        if self._validate_args:
            self._validate_sample(x)
        log_prob_x = self.component_distribution.log_prob(self._pad(x))
        log_mix = aten.log_softmax(self.mixture_distribution.logits, -1)
        return aten.logsumexp(log_prob_x + log_mix, -1)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            ones = (1,) * self._event_ndims
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            chosen = chosen.reshape((*chosen.shape, 1, *ones))
            repeat = (*(1,) * (len(sample_shape) + len(self._batch_shape)), 1, *self._event_shape)
            chosen = chosen.repeat(repeat)
            return aten.gather(drawn, dim, chosen).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        missing = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        shape = tuple(x.shape)
        return x.reshape((*shape[:-1], *(1,) * missing, *shape[-1:], *(1,) * self._event_ndims))

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
