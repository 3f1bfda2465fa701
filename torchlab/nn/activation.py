"""Activations: each module is its function with the arguments kept.

Source: https://docs.pytorch.org/docs/2.13/nn.html#non-linear-activations-weighted-sum-nonlinearity
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.nn import functional as F
from torchlab.nn.module import Module


class _InPlace(Module):
    """An activation that may write into its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(x, 0)."""

    def forward(self, input: Any) -> Any:
        return F.relu(input, self.inplace)


class SiLU(_InPlace):
    """x·σ(x)."""

    def forward(self, input: Any) -> Any:
        return F.silu(input, self.inplace)


class GELU(Module):
    """x·Φ(x), Φ the normal distribution function; approximate="tanh" takes the tanh formula."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input: Any) -> Any:
        return aten.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Any) -> Any:
        return aten.sigmoid(input)


class LeakyReLU(_InPlace):
    """x where it is positive, else negative_slope·x."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(_InPlace):
    """x where it is positive, else alpha·(exp(x) - 1)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / Σ exp(x) along `dim`."""

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """log(softmax(x)) along `dim`, computed without overflow."""

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim)


__all__ = ["ELU", "GELU", "LeakyReLU", "LogSoftmax", "ReLU", "SiLU", "Sigmoid", "Softmax", "Tanh"]
