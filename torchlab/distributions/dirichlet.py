"""Dirichlet: a point of the simplex.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#dirichlet
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.autograd.function import Function
from torchlab.distributions import constraints
from torchlab.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient of the reparameterised draw x: M. Jankowiak, F. Obermeyer, arXiv:1806.01851."""
    total = concentration.sum(-1, True).expand_as(concentration)
    grad = aten._dirichlet_grad(x, concentration, total)
    return grad * (grad_output - (x * grad_output).sum(-1, True))


class _Dirichlet(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = aten._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


class Dirichlet(ExponentialFamily):
    """Density prod x_i ** (concentration_i - 1), normalised, on the simplex.

    On the CPU the draws are PyTorch's for the same seed.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        batch, event = concentration.shape[:-1], concentration.shape[-1:]
        super().__init__(Size(batch), Size(event), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Dirichlet, _instance, batch_shape, concentration=1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return _Dirichlet.apply(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return aten.xlogy(a - 1.0, value).sum(-1) + aten.lgamma(a.sum(-1)) - aten.lgamma(a).sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """Where all concentrations are below one every corner is a maximum: the first is given."""
        a = (self.concentration - 1).clamp(min=0.0)
        mode = a / a.sum(-1, True)
        flat = (self.concentration < 1).all(dim=-1)
        corner = aten.zeros_like(mode)
        corner[..., 0] = 1
        return aten.where(flat.unsqueeze(-1), corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.size(-1)
        total = a.sum(-1)
        return (
            aten.lgamma(a).sum(-1)
            - aten.lgamma(total)
            - (k - total) * aten.digamma(total)
            - ((a - 1.0) * aten.digamma(a)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - aten.lgamma(x.sum(-1))
