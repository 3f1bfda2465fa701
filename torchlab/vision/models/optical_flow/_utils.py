"""Grids of pixels: sampled, counted, refined.

Source: https://docs.pytorch.org/vision/0.28/models/raft.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import float32
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F


def grid_sample(
    img: Tensor, absolute_grid: Tensor, mode: str = "bilinear", align_corners: bool | None = None
) -> Tensor:
    """What lies in `img` (N, C, H, W) at pixels (N, H', W', 2) of (x, y): (N, C, H', W')."""
    h, w = img.shape[-2:]
    x, y = absolute_grid[..., :1], absolute_grid[..., 1:]
    x = 2 * x / (w - 1) - 1
    if h > 1:  # one row alone is at 0 already: its pixels have no height to divide by
        y = 2 * y / (h - 1) - 1
    grid = aten.cat([x, y], -1)
    return F.grid_sample(img, grid, mode=mode, align_corners=align_corners)


def make_coords_grid(batch_size: int, h: int, w: int, device: Any = "cpu") -> Tensor:
    """Each pixel's (x, y): (batch_size, 2, h, w), float32."""
    rows, columns = (aten.arange(n, device=device).to(float32) for n in (h, w))
    y, x = aten.meshgrid([rows, columns], indexing="ij")
    return aten.unsqueeze(aten.stack([x, y], 0), 0).repeat(batch_size, 1, 1, 1)


def upsample_flow(flow: Tensor, up_mask: Tensor | None = None, factor: int = 8) -> Tensor:
    """A flow (N, C, H, W) `factor` times as large, and longer: bilinear, or by `up_mask`
    (N, 9 · factor², H, W), which weighs each pixel's neighbours for each of its parts."""
    n, c, h, w = flow.shape
    if up_mask is None:
        size = (h * factor, w * factor)
        return factor * F.interpolate(flow, size=size, mode="bilinear", align_corners=True)
    weights = aten.reshape(up_mask, (n, 1, 9, factor, factor, h, w))
    weights = F.softmax(weights, dim=2)
    near = aten.reshape(F.unfold(factor * flow, kernel_size=3, padding=1), (n, c, 9, 1, 1, h, w))
    fine = aten.permute(aten.sum(weights * near, 2), (0, 1, 4, 2, 5, 3))
    return aten.reshape(fine, (n, c, h * factor, w * factor))


__all__: list[str] = []
