"""Smooth activations, and softmax over channels.

Source: https://docs.pytorch.org/docs/2.13/nn.html#non-linear-activations-weighted-sum-nonlinearity
"""

from __future__ import annotations

from typing import Any

from torchlab.nn import functional as F
from torchlab.nn.activation import _AlongDim, _InPlace
from torchlab.nn.module import Module


class CELU(_InPlace):
    """max(0, x) + min(0, alpha·(exp(x / alpha) - 1)). Source: https://arxiv.org/abs/1704.07483"""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class SELU(_InPlace):
    """ELU scaled so that activations keep mean 0 and variance 1.

    Source: https://arxiv.org/abs/1706.02515
    """

    __constants__ = ["inplace"]

    def forward(self, input: Any) -> Any:
        return F.selu(input, self.inplace)


class Mish(_InPlace):
    """x·tanh(log(1 + exp(x))). Source: https://arxiv.org/abs/1908.08681"""

    __constants__ = ["inplace"]

    def forward(self, input: Any) -> Any:
        return F.mish(input, self.inplace)


class GLU(Module):
    """a·σ(b), where a and b are the halves of the input along `dim`.

    Source: https://arxiv.org/abs/1612.08083
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSigmoid(Module):
    """log σ(x), computed without overflow."""

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta·x)) / beta; x itself where beta·x is above `threshold`."""

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class Softmin(_AlongDim):
    """softmax(-x) along `dim`."""

    __constants__ = ["dim"]

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels at each place of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Any) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead; give it "
                "(N, C, H, W) or (C, H, W)"
            )
        return F.softmax(input, -3, _stacklevel=5)


__all__ = [
    "CELU", "GLU", "LogSigmoid", "Mish", "SELU", "Softmax2d", "Softmin", "Softplus", "Softsign",
    "Tanhshrink",
]  # fmt: skip
