"""Masks of instances: from boxes into images and from images into boxes (arXiv:1703.06870).

Source: https://docs.pytorch.org/vision/0.28/models/mask_rcnn.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.ops.regions import roi_align


def maskrcnn_inference(x: Tensor, labels: list[Tensor]) -> list[Tensor]:
    """Logits (N, classes, M, M) → of each image the probabilities (n, 1, M, M) of the labels."""
    at = aten.arange(x.shape[0], device=x.device)
    chosen = aten.unsqueeze(aten.sigmoid(x)[at, aten.cat(labels)], 1)
    return list(aten.split(chosen, [t.shape[0] for t in labels], 0))


def project_masks_on_boxes(gt_masks: Tensor, boxes: Tensor, matched_idxs: Tensor, M: int) -> Tensor:
    """What of the masks (K, H, W), by number, lies in each of the boxes (N, 4): (N, M, M)."""
    rois = aten.cat([aten.unsqueeze(matched_idxs, 1).to(boxes), boxes], 1)
    return roi_align(aten.unsqueeze(gt_masks, 1).to(rois), rois, (M, M), 1.0)[:, 0]


def maskrcnn_loss(
    mask_logits: Tensor, proposals: list[Tensor], gt_masks: list[Tensor],
    gt_labels: list[Tensor], mask_matched_idxs: list[Tensor],
) -> Tensor:  # fmt: skip
    """Binary cross-entropy of each proposal's mask, in the channel of its true class."""
    side = mask_logits.shape[-1]
    labels, truth = [], []
    facts = zip(gt_masks, gt_labels, proposals, mask_matched_idxs, strict=True)
    for masks, known, boxes, at in facts:
        labels.append(known[at])
        truth.append(project_masks_on_boxes(masks, boxes, at, side))
    target = aten.cat(truth, 0)
    if target.numel() == 0:
        return mask_logits.sum() * 0
    chosen = mask_logits[aten.arange(target.shape[0], device=target.device), aten.cat(labels, 0)]
    return F.binary_cross_entropy_with_logits(chosen, target)


def _grown(boxes: Tensor, scale: float) -> Tensor:
    """Boxes larger by `scale` around their centres."""
    low, high = boxes[:, :2], boxes[:, 2:]
    middle, half = (high + low) * 0.5, (high - low) * 0.5 * scale
    return aten.cat([middle - half, middle + half], 1)


def _paste(mask: Tensor, box: list[int], h: int, w: int) -> Tensor:
    """One mask stretched over a box, in an image of (h, w) zeros."""
    x0, y0, x1, y1 = box
    size = [max(y1 - y0 + 1, 1), max(x1 - x0 + 1, 1)]
    wide = F.interpolate(mask[None, None], size=size, mode="bilinear", align_corners=False)[0, 0]
    image = aten.zeros((h, w), dtype=mask.dtype, device=mask.device)
    top, bottom, left, right = max(y0, 0), min(y1 + 1, h), max(x0, 0), min(x1 + 1, w)
    if bottom > top and right > left:
        image[top:bottom, left:right] = wide[top - y0 : bottom - y0, left - x0 : right - x0]
    return image


def paste_masks_in_image(masks: Tensor, boxes: Tensor, img_shape: Any, padding: int = 1) -> Tensor:
    """Masks (N, 1, M, M) of boxes (N, 4), each in an image of (height, width): (N, 1, H, W).

    A ring of `padding` zeros around each mask lets it fade at the box's edge.
    """
    h, w = img_shape
    n, side = masks.shape[0], masks.shape[-1]
    if n == 0:
        return aten.empty((0, 1, h, w), dtype=masks.dtype, device=masks.device)
    scale = (side + 2 * padding) / side
    padded = F.pad(masks, (padding,) * 4)
    where = _grown(boxes, scale).long().tolist()
    made = [_paste(m[0], b, h, w) for m, b in zip(padded, where, strict=True)]
    return aten.unsqueeze(aten.stack(made, 0), 1)


__all__ = [
    "maskrcnn_inference", "maskrcnn_loss", "paste_masks_in_image", "project_masks_on_boxes",
]  # fmt: skip
