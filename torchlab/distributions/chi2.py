"""Chi-squared: the sum of `df` squared standard normal variables.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#chi2
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.distributions import constraints
from torchlab.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Gamma(df / 2, 1 / 2)."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2
