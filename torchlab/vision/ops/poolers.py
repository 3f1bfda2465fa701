"""Regions pooled from the level of a pyramid that suits their size (arXiv:1612.03144, eq. 1).

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.ops.MultiScaleRoIAlign.html
"""

from __future__ import annotations

import math
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.ops.boxes import box_area
from torchlab.vision.ops.regions import roi_align


def _power(feature: Tensor, size: tuple[int, int]) -> float:
    """The scale of a map against an image of `size`, as the next power of two."""
    return 2.0 ** round(math.log2(feature.shape[-2] / size[0]))


class MultiScaleRoIAlign(nn.Module):
    """`roi_align` on one of several maps for each box: (K, C, height, width) for K boxes in all.

    `featmap_names`: the maps that are used, fine to coarse. A box with the side `canonical_scale`
    comes from level `canonical_level` (level k: 2^k pixels of the image a side), one of half that
    side from the level below. The scales are measured at the first call.
    """

    def __init__(
        self, featmap_names: list[str], output_size: Any, sampling_ratio: int, *,
        canonical_scale: int = 224, canonical_level: int = 4,
    ) -> None:  # fmt: skip
        super().__init__()
        if isinstance(output_size, int):
            output_size = (output_size, output_size)
        self.featmap_names = featmap_names
        self.sampling_ratio = sampling_ratio
        self.output_size = tuple(output_size)
        self.scales: list[float] | None = None
        self.canonical_scale = canonical_scale
        self.canonical_level = canonical_level

    def _levels(self, boxes: list[Tensor], scales: list[float]) -> Tensor:
        """The place in `scales` of every box's level, int64 (K,)."""
        low, high = -math.log2(scales[0]), -math.log2(scales[-1])
        side = aten.sqrt(aten.cat([box_area(b) for b in boxes]))
        # a box of exactly the canonical side must not fall a level by rounding
        level = self.canonical_level + aten.log2(side / self.canonical_scale) + 1e-6
        return aten.clamp(aten.floor(level), min=low, max=high).long() - int(low)

    def forward(
        self, x: dict[str, Tensor], boxes: list[Tensor], image_shapes: list[tuple[int, int]]
    ) -> Tensor:
        """boxes: (L, 4) an image; image_shapes: (height, width) of each before padding."""
        maps = [v for k, v in x.items() if k in self.featmap_names]
        if self.scales is None:
            if not image_shapes:
                raise ValueError("images list should not be empty")
            size = (max(s[0] for s in image_shapes), max(s[1] for s in image_shapes))
            self.scales = [_power(m, size) for m in maps]
        first, scales = maps[0], self.scales
        rois = aten.cat(
            [aten.cat([aten.full_like(b[:, :1], i), b], 1) for i, b in enumerate(boxes)], 0
        )
        facts = (self.output_size, self.sampling_ratio)
        if len(maps) == 1:
            return roi_align(first, rois, facts[0], scales[0], facts[1])
        levels = self._levels(boxes, scales)
        shape = (rois.shape[0], first.shape[1], *self.output_size)
        result = aten.zeros(shape, dtype=first.dtype, device=first.device)
        for level, (features, scale) in enumerate(zip(maps, scales, strict=True)):
            at = aten.where(levels == level)[0]
            pooled = roi_align(features, rois[at], facts[0], scale, facts[1])
            result = aten.index_put(result, (at,), pooled.to(result.dtype))
        return result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(featmap_names={self.featmap_names},"
            f" output_size={self.output_size}, sampling_ratio={self.sampling_ratio})"
        )


__all__ = ["MultiScaleRoIAlign"]
