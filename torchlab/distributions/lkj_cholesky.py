"""LKJ: Cholesky factors of random correlation matrices.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#lkjcholesky
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.distributions import constraints
from torchlab.distributions.beta import Beta
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.utils import (
    NO_SHAPE,
    broadcast_all,
    finfo,
)

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of `dim` × `dim` correlation matrices M with density det(M) **
    (concentration - 1).

    Source: D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on
    vines and extended onion method", 2009 (the onion, section 3.2).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self,
        dim: int,
        concentration: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # Row i + 1 has a squared length of Beta((i + 1) / 2, marginal - i / 2) off the diagonal.
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = aten.arange(
            dim - 1, dtype=self.concentration.dtype, device=self.concentration.device
        )
        offset = aten.cat([aten.new_zeros(offset, (1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        batch, event = self.concentration.size(), Size((dim, dim))
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        parts = {"dim": self.dim, "_beta": self._beta.expand(Size((*batch_shape, self.dim)))}
        return self._expanded(LKJCholesky, _instance, batch_shape, "concentration", _parts=parts)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            normal = aten.randn(shape, dtype=y.dtype, device=y.device).tril(-1)
            direction = normal / aten.linalg_norm(normal, dim=-1, keepdim=True)
            direction[..., 0, :].fill_(0.0)  # the first row is empty: 0 / 0
            w = aten.sqrt(y) * direction
            left = aten.clamp(1 - aten.sum(w**2, -1), min=finfo(w.dtype).tiny)
            return w + aten.diag_embed(left.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = aten.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalised = aten.sum(order * diagonal.log(), -1)
        # The normalising constant: page 1999, equation 16.
        free = self.dim - 1
        alpha = self.concentration + 0.5 * free
        denominator = aten.lgamma(alpha) * free
        numerator = aten.mvlgamma(alpha - 0.5, free)
        return unnormalised - (0.5 * free * math.log(math.pi) + numerator - denominator)
