"""Anchors: boxes of several sizes and shapes around every pixel of every map (arXiv:1506.01497).

Source: https://docs.pytorch.org/vision/0.28/models.html#object-detection
"""

from __future__ import annotations

import math
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import float32
from torchlab._core.tensor import Tensor
from torchlab.vision.models.detection.image_list import ImageList


class AnchorGenerator(nn.Module):
    """The anchors of each image, (A, 4), map after map, pixel after pixel.

    sizes: for each map, the sides; aspect_ratios: for each map, heights over widths. Both once for
    all maps if they are not nested: one size a map, all ratios in every map.
    """

    def __init__(
        self, sizes: Any = ((128, 256, 512),), aspect_ratios: Any = ((0.5, 1.0, 2.0),)
    ) -> None:
        super().__init__()
        if not isinstance(sizes[0], (list, tuple)):
            sizes = tuple((s,) for s in sizes)
        if not isinstance(aspect_ratios[0], (list, tuple)):
            aspect_ratios = (aspect_ratios,) * len(sizes)
        self.sizes = sizes
        self.aspect_ratios = aspect_ratios
        self.cell_anchors: list[Tensor] = [
            self.generate_anchors(s, a) for s, a in zip(sizes, aspect_ratios, strict=False)
        ]

    def generate_anchors(
        self, scales: Any, aspect_ratios: Any, dtype: Any = float32, device: Any = "cpu"
    ) -> Tensor:
        """Anchors around the origin, in whole pixels: (ratios · scales, 4)."""
        side = aten.tensor(scales, dtype=dtype, device=device)
        tall = aten.sqrt(aten.tensor(aspect_ratios, dtype=dtype, device=device))
        h = aten.flatten(aten.unsqueeze(tall, 1) * side)
        w = aten.flatten(aten.unsqueeze(1 / tall, 1) * side)
        return aten.round(aten.stack([-w, -h, w, h], 1) / 2)

    def set_cell_anchors(self, dtype: Any, device: Any) -> None:
        """Bring the anchors around the origin to the type and device of the maps."""
        self.cell_anchors = [c.to(dtype=dtype, device=device) for c in self.cell_anchors]

    def num_anchors_per_location(self) -> list[int]:
        """How many anchors a pixel of each map has."""
        return [len(s) * len(a) for s, a in zip(self.sizes, self.aspect_ratios, strict=True)]

    def grid_anchors(self, grid_sizes: Any, strides: Any) -> list[Tensor]:
        """For each map, the anchors around all its pixels, `strides` apart in the image.

        AssertionError if the maps are not as many as the sizes.
        """
        cells = self.cell_anchors
        if not len(grid_sizes) == len(strides) == len(cells):
            raise AssertionError(
                f"Anchors should be Tuple[Tuple[int]] because each feature map could potentially"
                f" have different sizes and aspect ratios: got {len(grid_sizes)} maps and anchors"
                f" for {len(cells)}. Give sizes and aspect_ratios one entry a map."
            )
        made = []
        for (h, w), (down, right), cell in zip(grid_sizes, strides, cells, strict=True):
            y = aten.arange(h, dtype=cell.dtype, device=cell.device) * down
            x = aten.arange(w, dtype=cell.dtype, device=cell.device) * right
            y, x = (aten.flatten(t) for t in aten.meshgrid([y, x], indexing="ij"))
            moved = aten.unsqueeze(aten.stack([x, y, x, y], 1), 1) + aten.unsqueeze(cell, 0)
            made.append(aten.reshape(moved, (-1, 4)))
        return made

    def forward(self, image_list: ImageList, feature_maps: list[Tensor]) -> list[Tensor]:
        grids = [tuple(m.shape[-2:]) for m in feature_maps]
        h, w = image_list.tensors.shape[-2:]
        self.set_cell_anchors(feature_maps[0].dtype, feature_maps[0].device)
        anchors = self.grid_anchors(grids, [(h // g[0], w // g[1]) for g in grids])
        return [aten.cat(anchors) for _ in image_list.image_sizes]


class DefaultBoxGenerator(nn.Module):
    """SSD's anchors of each image, (A, 4), map after map, pixel after pixel (arXiv:1512.02325).

    aspect_ratios: for each map, the ratios beside 1; each also upside down.
    scales: the sides as shares of the image, one more than the maps; without, from `min_ratio` to
    `max_ratio` in even steps.
    steps: for each map, the pixels of the image to one of its own; without, by the maps' sizes.
    clip: whether no side is longer than the image's. ValueError for other than one step a map.
    """

    def __init__(
        self, aspect_ratios: list[list[int]], min_ratio: float = 0.15, max_ratio: float = 0.9,
        scales: list[float] | None = None, steps: list[int] | None = None, clip: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if steps is not None and len(aspect_ratios) != len(steps):
            raise ValueError("aspect_ratios and steps should have the same length")
        self.aspect_ratios = aspect_ratios
        self.steps = steps
        self.clip = clip
        n = len(aspect_ratios)
        if scales is None and n > 1:
            spread = max_ratio - min_ratio
            scales = [min_ratio + spread * k / (n - 1.0) for k in range(n)] + [1.0]
        self.scales = [min_ratio, max_ratio] if scales is None else scales
        self._wh_pairs = self._generate_wh_pairs(n)

    def _generate_wh_pairs(
        self, num_outputs: int, dtype: Any = float32, device: Any = "cpu"
    ) -> list[Tensor]:
        """Of each map, the widths and heights of a pixel's anchors, in the image's sides."""
        made = []
        for k in range(num_outputs):
            side, middle = self.scales[k], math.sqrt(self.scales[k] * self.scales[k + 1])
            pairs = [[side, side], [middle, middle]]
            for ratio in self.aspect_ratios[k]:
                w, h = side * math.sqrt(ratio), side / math.sqrt(ratio)
                pairs += [[w, h], [h, w]]
            made.append(aten.tensor(pairs, dtype=dtype, device=device))
        return made

    def num_anchors_per_location(self) -> list[int]:
        """How many anchors a pixel of each map has."""
        return [2 + 2 * len(ratios) for ratios in self.aspect_ratios]

    def _grid_default_boxes(self, grid_sizes: Any, image_size: Any, dtype: Any = float32) -> Tensor:
        """Centres and sizes (A, 4) in the image's sides."""
        made = []
        for k, (h, w) in enumerate(grid_sizes):
            down, right = h, w
            if self.steps is not None:
                down, right = (image_size[d] / self.steps[k] for d in (0, 1))
            y = ((aten.arange(h) + 0.5) / down).to(dtype)
            x = ((aten.arange(w) + 0.5) / right).to(dtype)
            y, x = (aten.reshape(t, (-1, 1)) for t in aten.meshgrid([y, x], indexing="ij"))
            pairs = self._wh_pairs[k]
            pairs = aten.clamp(pairs, min=0, max=1) if self.clip else pairs
            n = pairs.shape[0]
            centres = aten.reshape(aten.cat([x, y] * n, 1), (-1, 2))
            made.append(aten.cat([centres, pairs.repeat(h * w, 1)], 1))
        return aten.cat(made, 0)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(aspect_ratios={self.aspect_ratios}, clip={self.clip},"
            f" scales={self.scales}, steps={self.steps})"
        )

    def forward(self, image_list: ImageList, feature_maps: list[Tensor]) -> list[Tensor]:
        h, w = image_list.tensors.shape[-2:]
        first = feature_maps[0]
        grids = [tuple(m.shape[-2:]) for m in feature_maps]
        boxes = self._grid_default_boxes(grids, (h, w), first.dtype).to(first.device)
        size = aten.tensor([w, h], device=first.device)
        middle, half = boxes[:, :2], 0.5 * boxes[:, 2:]
        corners = aten.cat([(middle - half) * size, (middle + half) * size], -1)
        return [corners for _ in image_list.image_sizes]


__all__ = ["AnchorGenerator", "DefaultBoxGenerator"]
