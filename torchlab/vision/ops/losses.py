"""Losses of detection.

Sources: arXiv:1708.02002 (focal loss), arXiv:1902.09630 and arXiv:1911.08287 (boxes);
https://docs.pytorch.org/vision/0.28/ops.html#losses
"""

from __future__ import annotations

import math

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean() if loss.numel() > 0 else 0.0 * loss.sum()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(
        f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: 'none',"
        " 'mean', 'sum'"
    )


def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Tensor:
    """Binary cross-entropy of logits, less for what is right already: -α(1-p)^γ log p.

    `alpha` weighs the positive class; negative: nobody is weighed. ValueError for alpha above 1.
    """
    if alpha > 1:
        raise ValueError(f"Invalid alpha value: {alpha}. alpha must be in the range [0,1] or -1.")
    p = aten.sigmoid(inputs)
    entropy = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    right = p * targets + (1 - p) * (1 - targets)
    loss = entropy * aten.pow(1 - right, gamma)
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return _reduced(loss, reduction)


def _pairs(a: Tensor, b: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """IoU of box i with box i, union, and the sides of the hull."""
    low, high = aten.maximum(a[..., :2], b[..., :2]), aten.minimum(a[..., 2:], b[..., 2:])
    side = high - low
    common = aten.where((side > 0).all(-1), side[..., 0] * side[..., 1], 0.0)
    area = [(x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1]) for x in (a, b)]
    union = area[0] + area[1] - common
    hull = aten.maximum(a[..., 2:], b[..., 2:]) - aten.minimum(a[..., :2], b[..., :2])
    return common / (union + eps), union, hull[..., 0], hull[..., 1]


def _floats(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    def wide(x: Tensor) -> Tensor:
        return x if x.is_floating_point() and x.itemsize >= 4 else x.float()

    return wide(a), wide(b)


def generalized_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Tensor:
    """1 - generalized IoU of boxes1[i] and boxes2[i]: (…, 4) → (…)."""
    iou, union, w, h = _pairs(*_floats(boxes1, boxes2), eps)
    hull = w * h
    return _reduced(1 - (iou - (hull - union) / (hull + eps)), reduction)


def _diou(a: Tensor, b: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    iou, _, w, h = _pairs(a, b, eps)
    apart = (a[..., :2] + a[..., 2:] - b[..., :2] - b[..., 2:]) / 2
    return 1 - iou + (apart**2).sum(-1) / (w**2 + h**2 + eps), iou


def distance_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Tensor:
    """1 - distance IoU of boxes1[i] and boxes2[i]."""
    return _reduced(_diou(*_floats(boxes1, boxes2), eps)[0], reduction)


def complete_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Tensor:
    """1 - complete IoU of boxes1[i] and boxes2[i]; the weight of the ratios gets no gradient."""
    a, b = _floats(boxes1, boxes2)
    loss, iou = _diou(a, b, eps)
    ratio = [aten.atan((x[..., 2] - x[..., 0]) / (x[..., 3] - x[..., 1])) for x in (b, a)]
    v = (4 / math.pi**2) * aten.pow(ratio[0] - ratio[1], 2)
    alpha = (v / (1 - iou + v + eps)).detach()
    return _reduced(loss + alpha * v, reduction)


__all__ = [
    "complete_box_iou_loss", "distance_box_iou_loss", "generalized_box_iou_loss",
    "sigmoid_focal_loss",
]  # fmt: skip
