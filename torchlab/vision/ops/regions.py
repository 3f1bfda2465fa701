"""Regions of feature maps: pooled (arXiv:1504.08083), aligned (arXiv:1703.06870), and by position
(arXiv:1605.06409).

Everything is indexing and sums over operators, so gradients follow.

Source: https://docs.pytorch.org/vision/0.28/ops.html#region-of-interest
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab import fx, nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor


def _pair(x: Any) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else (int(x[0]), int(x[1]))


def _rois(boxes: Any) -> Tensor:
    """(K, 5) with the number of the image first, from that or from a list of (L, 4) an image."""
    if isinstance(boxes, (list, tuple)):
        for b in boxes:
            if b.ndim != 2 or b.shape[1] != 4:
                raise ValueError(
                    "The shape of the tensor in the boxes list is not correct as List[Tensor[L,"
                    f" 4]]: {list(b.shape)}"
                )
        parts = [aten.cat([aten.full_like(b[:, :1], i), b], 1) for i, b in enumerate(boxes)]
        return aten.cat(parts, 0)
    if not isinstance(boxes, Tensor):
        raise TypeError("boxes is expected to be a Tensor[L, 5] or a List[Tensor[K, 4]]")
    if boxes.ndim != 2 or boxes.shape[1] != 5:
        raise ValueError("The boxes tensor shape is not correct as Tensor[K, 5]")
    return boxes


def _samples(
    low: Tensor, size: Tensor, bins: int, ratio: int, limit: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Along one axis, of every region, bin and sample: the two pixels it lies between, the weight
    of the upper one, and whether it lies in the map. Each (K, bins, samples)."""
    where = aten.reshape(aten.arange(bins, dtype=low.dtype, device=low.device), (1, -1, 1))
    steps = aten.reshape(aten.arange(ratio, dtype=low.dtype, device=low.device), (1, 1, -1))
    low, size = aten.reshape(low, (-1, 1, 1)), aten.reshape(size, (-1, 1, 1))
    at = low + where * (size / bins) + (steps + 0.5) * (size / bins / ratio)
    inside = (at >= -1.0) & (at <= limit)
    at = aten.clamp(at, min=0)
    below = aten.clamp(aten.floor(at), max=limit - 1)
    weight = aten.where(below >= limit - 1, aten.zeros_like(at), at - below)
    above = aten.clamp(below + 1, max=limit - 1)
    return below.long(), above.long(), weight, inside


def _aligned(
    input: Tensor, rois: Tensor, scale: float, size: tuple[int, int], ratio: int, aligned: bool
) -> Tensor:
    """Means of bilinear samples, (K, C, height, width), for regions with one number of samples."""
    offset = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = (rois[:, i] * scale - offset for i in range(1, 5))
    w, h = x2 - x1, y2 - y1
    if not aligned:
        w, h = aten.clamp(w, min=1.0), aten.clamp(h, min=1.0)
    rows = ratio if ratio > 0 else max(1, math.ceil(float(h[0]) / size[0]))
    columns = ratio if ratio > 0 else max(1, math.ceil(float(w[0]) / size[1]))
    yl, yh, wy, iny = _samples(y1, h, size[0], rows, input.shape[2])
    xl, xh, wx, inx = _samples(x1, w, size[1], columns, input.shape[3])
    image = aten.reshape(rois[:, 0].long(), (-1, 1, 1, 1, 1))

    def spread(t: Tensor, rowwise: bool) -> Tensor:  # to (K, bins, samples, bins, samples)
        return t[:, :, :, None, None] if rowwise else t[:, None, None, :, :]

    channels_last = aten.permute(input, (0, 2, 3, 1))
    total = None
    for y, p in ((yl, 1 - wy), (yh, wy)):
        for x, q in ((xl, 1 - wx), (xh, wx)):
            values = channels_last[image, spread(y, True), spread(x, False)]
            weight = spread(p * iny, True) * spread(q * inx, False)
            part = values * weight[..., None]
            total = part if total is None else total + part
    mean = aten.mean(total, (2, 4))  # type: ignore[arg-type]
    return aten.permute(mean, (0, 3, 1, 2))


fx.wrap("roi_align")


def roi_align(
    input: Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0,
    sampling_ratio: int = -1, aligned: bool = False,
) -> Tensor:  # fmt: skip
    """Each region of (N, C, H, W) sampled bilinearly in a grid: (K, C, height, width).

    boxes: (K, 5) with the image's number first, or a list of (L, 4) for each image, in coordinates
    that `spatial_scale` maps to the input's. `sampling_ratio` samples a bin and axis; -1: as many
    as pixels. `aligned` shifts by half a pixel.
    """
    rois, size = _rois(boxes), _pair(output_size)
    k = rois.shape[0]
    if k == 0:
        return aten.zeros((0, input.shape[1], *size), dtype=input.dtype, device=input.device)
    if sampling_ratio > 0:
        return _aligned(input, rois, spatial_scale, size, sampling_ratio, aligned)
    one = [_aligned(input, rois[i : i + 1], spatial_scale, size, -1, aligned) for i in range(k)]
    return aten.cat(one, 0)


def _bins(low: float, length: float, n: int, limit: int) -> list[tuple[int, int]]:
    step = length / n
    return [
        (
            min(max(math.floor(i * step) + int(low), 0), limit),
            min(max(math.ceil((i + 1) * step) + int(low), 0), limit),
        )
        for i in range(n)
    ]


fx.wrap("roi_pool")


def roi_pool(input: Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0) -> Tensor:
    """The maximum of each cell of each region, rounded to pixels: (K, C, height, width)."""
    rois, (h, w) = _rois(boxes), _pair(output_size)
    made = []
    for r in rois.detach().cpu().numpy():
        x1, y1, x2, y2 = (
            int(math.floor(float(np.float32(v) * spatial_scale) + 0.5)) for v in r[1:]
        )
        image = input[int(r[0])]
        wide, high = max(x2 - x1 + 1, 1), max(y2 - y1 + 1, 1)
        rows = []
        for a, b in _bins(y1, high, h, input.shape[2]):
            cells = []
            for c, d in _bins(x1, wide, w, input.shape[3]):
                if b > a and d > c:
                    cells.append(aten.amax(aten.flatten(image[:, a:b, c:d], 1), 1))
                else:
                    cells.append(aten.zeros(input.shape[1], dtype=input.dtype))
            rows.append(aten.stack(cells, 1))
        made.append(aten.stack(rows, 1))
    if not made:
        return aten.zeros((0, input.shape[1], h, w), dtype=input.dtype, device=input.device)
    return aten.stack(made)


class RoIAlign(nn.Module):
    """`roi_align` as a module."""

    def __init__(
        self, output_size: Any, spatial_scale: float, sampling_ratio: int, aligned: bool = False
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio
        self.aligned = aligned

    def forward(self, input: Tensor, rois: Any) -> Tensor:
        return roi_align(
            input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(output_size={self.output_size},"
            f" spatial_scale={self.spatial_scale}, sampling_ratio={self.sampling_ratio},"
            f" aligned={self.aligned})"
        )


class RoIPool(nn.Module):
    """`roi_pool` as a module."""

    def __init__(self, output_size: Any, spatial_scale: float) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale

    def forward(self, input: Tensor, rois: Any) -> Tensor:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(output_size={self.output_size},"
            f" spatial_scale={self.spatial_scale})"
        )


__all__ = ["RoIAlign", "RoIPool", "roi_align", "roi_pool"]
