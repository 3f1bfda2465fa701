"""Stochastic depth: branches of a residual network dropped at random (arXiv:1603.09382).

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.ops.stochastic_depth.html
"""

from __future__ import annotations

from torchlab import fx, nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """`input` (N, …) with zeros in place of all of it (mode "batch") or of rows (mode "row") with
    probability `p`, and what stays divided by 1 - p.

    ValueError for a probability outside [0, 1] or another mode.
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0.0:
        return input
    shape = [1] * input.ndim
    if mode == "row":
        shape[0] = input.shape[0]
    kept = aten.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1.0 - p)
    if p < 1.0:
        kept.div_(1.0 - p)
    return input * kept


fx.wrap("stochastic_depth")


class StochasticDepth(nn.Module):
    """`stochastic_depth` as a module."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p = p
        self.mode = mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, mode={self.mode})"


__all__ = ["StochasticDepth", "stochastic_depth"]
