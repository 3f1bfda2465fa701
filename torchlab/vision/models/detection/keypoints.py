"""Keypoints of persons: from images into heat maps of boxes and back (arXiv:1703.06870).

Source: https://docs.pytorch.org/vision/0.28/models/keypoint_rcnn.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import float32
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F


def keypoints_to_heatmap(
    keypoints: Tensor, rois: Tensor, heatmap_size: int
) -> tuple[Tensor, Tensor]:
    """Keypoints (N, K, 3) of (x, y, visible) in boxes (N, 4) → the number of the pixel of a map of
    heatmap_size² over the box, and 1 where it is seen and within, else both 0: int64 (N, K)."""
    at, inside = [], []
    for d in (0, 1):
        low, high = aten.unsqueeze(rois[:, d], 1), aten.unsqueeze(rois[:, d + 2], 1)
        place = keypoints[..., d]
        pixel = aten.floor((place - low) * (heatmap_size / (high - low))).long()
        pixel = aten.where(place == high, heatmap_size - 1, pixel)  # on the far side: the last
        inside.append((pixel >= 0) & (pixel < heatmap_size))
        at.append(pixel)
    valid: Any = (inside[0] & inside[1] & (keypoints[..., 2] > 0)).long()
    return (at[1] * heatmap_size + at[0]) * valid, valid


def heatmaps_to_keypoints(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    """Heat maps (N, K, M, M) over boxes (N, 4) → where each is highest, (N, K, 3) of (x, y, 1),
    and how high, (N, K)."""
    n, k = maps.shape[:2]
    sizes = aten.clamp(rois[:, 2:] - rois[:, :2], min=1)
    places = aten.zeros((n, 3, k), dtype=float32, device=maps.device)
    scores = aten.zeros((n, k), dtype=float32, device=maps.device)
    for i in range(n):
        w, h = (int(s) for s in aten.ceil(sizes[i]).tolist())
        wide = F.interpolate(
            aten.unsqueeze(maps[i], 1), size=(h, w), mode="bicubic", align_corners=False
        )[:, 0]
        best = aten.argmax(aten.reshape(wide, (k, -1)), 1)
        x, y = best % w, aten.div(best, w, rounding_mode="floor")
        # the middle of the pixel, in a box whose sides are no whole numbers
        places[i, 0] = (x.float() + 0.5) * (sizes[i, 0] / w) + rois[i, 0]
        places[i, 1] = (y.float() + 0.5) * (sizes[i, 1] / h) + rois[i, 1]
        places[i, 2] = 1
        scores[i] = wide[aten.arange(k, device=maps.device), y, x]
    return aten.permute(places, (0, 2, 1)), scores


def keypointrcnn_loss(
    keypoint_logits: Tensor, proposals: list[Tensor], gt_keypoints: list[Tensor],
    keypoint_matched_idxs: list[Tensor],
) -> Tensor:  # fmt: skip
    """Cross-entropy of the pixel of each keypoint that is seen within its proposal.

    ValueError if the heat maps are not square.
    """
    n, k, h, w = keypoint_logits.shape
    if h != w:
        raise ValueError(
            "keypoint_logits height and width (last two elements of shape) should be equal."
            f" Instead got H = {h} and W = {w}"
        )
    targets, seen = [], []
    for boxes, points, at in zip(proposals, gt_keypoints, keypoint_matched_idxs, strict=True):
        pixels, valid = keypoints_to_heatmap(points[at], boxes, h)
        targets.append(aten.flatten(pixels))
        seen.append(aten.flatten(valid))
    target, counted = aten.cat(targets, 0), aten.where(aten.cat(seen, 0))[0]
    if target.numel() == 0 or counted.numel() == 0:
        return keypoint_logits.sum() * 0
    logits = aten.reshape(keypoint_logits, (n * k, h * w))
    return F.cross_entropy(logits[counted], target[counted])


def keypointrcnn_inference(x: Tensor, boxes: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Heat maps of all images' boxes → of each image keypoints (n, K, 3) and scores (n, K)."""
    parts = aten.split(x, [b.shape[0] for b in boxes], 0)
    made = [heatmaps_to_keypoints(m, b) for m, b in zip(parts, boxes, strict=True)]
    return [places for places, _ in made], [scores for _, scores in made]


__all__ = [
    "heatmaps_to_keypoints", "keypointrcnn_inference", "keypointrcnn_loss", "keypoints_to_heatmap",
]  # fmt: skip
