"""DropBlock: contiguous squares of feature maps dropped at random (arXiv:1810.12890).

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.ops.drop_block2d.html
"""

from __future__ import annotations

from torchlab import fx, nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F


def _drop(
    input: Tensor, p: float, block: int, inplace: bool, eps: float, training: bool, dims: int
) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}.")
    if input.ndim != dims + 2:
        raise ValueError(f"input should be {dims + 2} dimensional. Got {input.ndim} dimensions.")
    if not training or p == 0.0:
        return input
    sizes = tuple(input.shape[2:])
    block = min(block, *sizes)
    if block % 2 == 0:
        raise ValueError(
            f"block size should be odd. Got {block} which is even. Maps of {list(sizes)} need an"
            " odd block_size that they can hold"
        )
    # `gamma` middles make as many dropped pixels as p of all would be
    area, places = 1, 1
    for n in sizes:
        area, places = area * n, places * (n - block + 1)
    gamma = (p * area) / ((block**dims) * places)
    shape = (*input.shape[:2], *(n - block + 1 for n in sizes))
    middles = aten.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(gamma)
    middles = F.pad(middles, [block // 2] * (2 * dims), value=0)
    pool = F.max_pool2d if dims == 2 else F.max_pool3d
    kept = 1 - pool(middles, kernel_size=block, stride=1, padding=block // 2)
    scale = kept.numel() / (eps + kept.sum())
    if inplace:
        return input.mul_(kept).mul_(scale)
    return input * kept * scale


fx.wrap("drop_block2d")


def drop_block2d(
    input: Tensor, p: float, block_size: int, inplace: bool = False, eps: float = 1e-06,
    training: bool = True,
) -> Tensor:  # fmt: skip
    """(N, C, H, W) with squares of `block_size` zero, a pixel with probability `p`, and the rest
    scaled so that the sum of the factors stays.

    ValueError for a probability outside [0, 1], another number of dimensions, an even block.
    """
    return _drop(input, p, block_size, inplace, eps, training, 2)


fx.wrap("drop_block3d")


def drop_block3d(
    input: Tensor, p: float, block_size: int, inplace: bool = False, eps: float = 1e-06,
    training: bool = True,
) -> Tensor:  # fmt: skip
    """`drop_block2d` for (N, C, D, H, W): cubes."""
    return _drop(input, p, block_size, inplace, eps, training, 3)


class DropBlock2d(nn.Module):
    """`drop_block2d` as a module."""

    _dims = 2

    def __init__(
        self, p: float, block_size: int, inplace: bool = False, eps: float = 1e-06
    ) -> None:
        super().__init__()
        self.p = p
        self.block_size = block_size
        self.inplace = inplace
        self.eps = eps

    def forward(self, input: Tensor) -> Tensor:
        return _drop(
            input, self.p, self.block_size, self.inplace, self.eps, self.training, self._dims
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p={self.p}, block_size={self.block_size},"
            f" inplace={self.inplace})"
        )


class DropBlock3d(DropBlock2d):
    """`drop_block3d` as a module."""

    _dims = 3


__all__ = ["DropBlock2d", "DropBlock3d", "drop_block2d", "drop_block3d"]
