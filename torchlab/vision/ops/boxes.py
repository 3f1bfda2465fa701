"""Boxes: (N, 4) tensors of corners (x1, y1, x2, y2) unless another format is named.

Source: https://docs.pytorch.org/vision/0.28/ops.html#box-operators
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.ops import turned_boxes

_FORMATS = ("xyxy", "xywh", "cxcywh")


def _wide(t: Tensor) -> Tensor:
    """In a type whose products do not overflow."""
    if t.is_floating_point():
        return t if t.itemsize >= 4 else t.float()
    return t.int() if t.itemsize < 4 else t


def _host(t: Tensor) -> Any:
    return t.detach().cpu().numpy()


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices of the boxes (N, 4) that stay, by falling score (N): each that overlaps a better
    one by more than `iou_threshold` goes. int64.

    RuntimeError for other shapes.
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise RuntimeError(f"nms: boxes should be a (N, 4) tensor, got {list(boxes.shape)}")
    if scores.ndim != 1 or scores.shape[0] != boxes.shape[0]:
        raise RuntimeError(
            f"nms: boxes and scores should have same number of elements in dimension 0, got"
            f" {boxes.shape[0]} and {list(scores.shape)}"
        )
    x1, y1, x2, y2 = (_host(boxes)[:, i] for i in range(4))
    areas = (x2 - x1) * (y2 - y1)
    order = np.argsort(-_host(scores), kind="stable")
    kept = []
    while order.size:
        i, rest = order[0], order[1:]
        kept.append(i)
        w = np.maximum(np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest]), 0)
        h = np.maximum(np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest]), 0)
        common = w * h
        with np.errstate(divide="ignore", invalid="ignore"):
            overlap = common / (areas[i] + areas[rest] - common)
        order = rest[~(overlap > iou_threshold)]
    return aten.from_numpy(np.asarray(kept, np.int64)).to(boxes.device)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """`nms` within each category: `idxs` (N) says which a box is of."""
    if boxes.numel() == 0:
        return aten.empty((0,), dtype=idxs.dtype, device=boxes.device).long()
    kept = aten.zeros_like(scores, dtype=(scores > 0).dtype)
    for category in aten.unique(idxs):
        (at,) = aten.where(idxs == category)
        kept[at[nms(boxes[at], scores[at], iou_threshold)]] = True
    (at,) = aten.where(kept)
    return at[aten.sort(scores[at], descending=True)[1]]


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """The indices of the boxes with both sides of at least `min_size`."""
    w: Any = boxes[:, 2] - boxes[:, 0]
    h: Any = boxes[:, 3] - boxes[:, 1]
    return aten.where((w >= min_size) & (h >= min_size))[0]


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Boxes (…, 4) cut to an image of `size` (height, width)."""
    h, w = size
    x = aten.clamp(boxes[..., 0::2], min=0, max=w)
    y = aten.clamp(boxes[..., 1::2], min=0, max=h)
    return aten.reshape(aten.stack((x, y), dim=boxes.ndim), boxes.shape)


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Boxes (…, K) in another format: "xyxy", "xywh" (corner, size), "cxcywh" (centre, size) with
    4 numbers; turned by r degrees counter-clockwise "xywhr", "cxcywhr" with 5, "xyxyxyxy" with 8.

    Turned boxes of whole numbers are rounded. ValueError for another format; NotImplementedError
    between upright and turned boxes.
    """
    both = f"given in_fmt {in_fmt} and out_fmt {out_fmt}"
    known = (*_FORMATS, *turned_boxes.FORMATS)
    if in_fmt not in known or out_fmt not in known:
        raise ValueError(f"Unsupported Bounding Box Conversions for {both}")
    if in_fmt == out_fmt:
        return aten.clone(boxes)
    if (in_fmt in _FORMATS) != (out_fmt in _FORMATS):
        raise NotImplementedError(f"Unsupported Bounding Box Conversions for {both}")
    if in_fmt not in _FORMATS:
        kind, whole = boxes.dtype, not boxes.is_floating_point()
        for step in turned_boxes.STEPS[in_fmt, out_fmt]:
            boxes = aten.round(step(boxes)).to(kind) if whole else step(boxes)
        return boxes
    a, b, c, d = aten.unbind(boxes, -1)
    if in_fmt == "xywh":
        a, b, c, d = a, b, a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        c, d = c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return aten.stack((a, b, c, d), dim=-1)


def box_area(boxes: Tensor, fmt: str = "xyxy") -> Tensor:
    """The areas (…) of boxes (…, 4)."""
    if fmt not in _FORMATS:
        raise ValueError(f"Unsupported box format: {fmt}; use one of {_FORMATS}")
    boxes = _wide(boxes)
    if fmt == "xyxy":
        return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return boxes[..., 2] * boxes[..., 3]


def _overlap(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The areas of intersection and union of all pairs."""
    area_a, area_b = box_area(a), box_area(b)
    low = aten.maximum(aten.unsqueeze(a[..., :2], -2), aten.unsqueeze(b[..., :2], -3))
    high = aten.minimum(aten.unsqueeze(a[..., 2:], -2), aten.unsqueeze(b[..., 2:], -3))
    size = aten.clamp(_wide(high - low), min=0)
    common = size[..., 0] * size[..., 1]
    return common, aten.unsqueeze(area_a, -1) + aten.unsqueeze(area_b, -2) - common


def _hull(a: Tensor, b: Tensor) -> Tensor:
    """The sides (…, N, M, 2) of the smallest boxes around all pairs."""
    low = aten.minimum(aten.unsqueeze(a[..., :2], -2), aten.unsqueeze(b[..., :2], -3))
    high = aten.maximum(aten.unsqueeze(a[..., 2:], -2), aten.unsqueeze(b[..., 2:], -3))
    return aten.clamp(_wide(high - low), min=0)


def _both(a: Tensor, b: Tensor, fmt: str) -> tuple[Tensor, Tensor]:
    if fmt != "xyxy":
        return box_convert(a, fmt, "xyxy"), box_convert(b, fmt, "xyxy")
    return a, b


def box_iou(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> Tensor:
    """Intersection over union of all pairs: (N, 4), (M, 4) → (N, M)."""
    common, union = _overlap(*_both(boxes1, boxes2, fmt))
    return common / union


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """IoU less the share of the hull that neither covers (arXiv:1902.09630): (N, M)."""
    common, union = _overlap(boxes1, boxes2)
    size = _hull(boxes1, boxes2)
    hull = size[..., 0] * size[..., 1]
    return common / union - (hull - union) / hull


def _distance(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    iou = box_iou(boxes1, boxes2)
    size = _hull(boxes1, boxes2)
    diagonal = size[..., 0] ** 2 + size[..., 1] ** 2 + eps
    centre = [(b[..., :2] + b[..., 2:]) / 2 for b in (boxes1, boxes2)]
    apart = _wide(aten.unsqueeze(centre[0], -2) - aten.unsqueeze(centre[1], -3))
    return iou - (apart[..., 0] ** 2 + apart[..., 1] ** 2) / diagonal, iou


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """IoU less the squared distance of the centres over the hull's diagonal (arXiv:1911.08287)."""
    return _distance(_wide(boxes1), _wide(boxes2), eps)[0]


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """`distance_box_iou` less what the aspect ratios differ by (arXiv:1911.08287): (N, M)."""
    boxes1, boxes2 = _wide(boxes1), _wide(boxes2)
    diou, iou = _distance(boxes1, boxes2, eps)
    angles = [
        aten.atan((b[..., 2] - b[..., 0]) / (b[..., 3] - b[..., 1])) for b in (boxes1, boxes2)
    ]
    apart = aten.unsqueeze(angles[0], -1) - aten.unsqueeze(angles[1], -2)
    v = (4 / np.pi**2) * aten.pow(apart, 2)
    alpha = (v / (1 - iou + v + eps)).detach()
    return diou - alpha * v


def masks_to_boxes(masks: Tensor) -> Tensor:
    """The boxes (N, 4) around the nonzero pixels of masks (N, H, W), float32; inclusive corners."""
    boxes = aten.zeros((masks.shape[0], 4), device=masks.device)
    for i, mask in enumerate(masks):
        y, x = aten.where(mask != 0)
        if x.numel():
            ends = (aten.amin(x), aten.amin(y), aten.amax(x), aten.amax(y))
            boxes[i] = aten.stack(ends).float()
    return boxes


__all__ = [
    "batched_nms", "box_area", "box_convert", "box_iou", "clip_boxes_to_image",
    "complete_box_iou", "distance_box_iou", "generalized_box_iou", "masks_to_boxes", "nms",
    "remove_small_boxes",
]  # fmt: skip
