"""Boxes as numbers to be learned, boxes matched with the truth, and samples of both kinds.

Sources: arXiv:1311.2524 (appendix C: the code of a box), arXiv:1506.01497 (matching, sampling);
https://docs.pytorch.org/vision/0.28/models.html#object-detection
"""

from __future__ import annotations

import math
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import uint8
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.nn import functional as F
from torchlab.vision.ops.losses import (
    complete_box_iou_loss,
    distance_box_iou_loss,
    generalized_box_iou_loss,
)
from torchlab.vision.ops.misc import FrozenBatchNorm2d


class BalancedPositiveNegativeSampler:
    """Draws anchors or proposals of each image at random: at most `positive_fraction` of
    `batch_size_per_image` with a label of 1 or more, the rest with label 0."""

    def __init__(self, batch_size_per_image: int, positive_fraction: float) -> None:
        self.batch_size_per_image = batch_size_per_image
        self.positive_fraction = positive_fraction

    def __call__(self, matched_idxs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Labels of each image → masks, uint8, of the positive and of the negative ones drawn."""
        chosen: tuple[list[Tensor], list[Tensor]] = ([], [])
        for labels in matched_idxs:
            positive, negative = aten.where(labels >= 1)[0], aten.where(labels == 0)[0]
            most = int(self.batch_size_per_image * self.positive_fraction)
            n = min(positive.numel(), most)
            rest = min(negative.numel(), self.batch_size_per_image - n)
            for of, count, out in ((positive, n, chosen[0]), (negative, rest, chosen[1])):
                order = aten.randperm(of.numel(), device=of.device)[:count]
                mask = aten.zeros_like(labels, dtype=uint8)
                mask[of[order]] = 1
                out.append(mask)
        return chosen


def _middles(boxes: Tensor) -> tuple[Any, Any, Any, Any]:
    """Widths, heights and centres of boxes (N, 4)."""
    w, h = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    return w, h, boxes[:, 0] + 0.5 * w, boxes[:, 1] + 0.5 * h


class BoxCoder:
    """Boxes as offsets from other boxes: of the centre, in sides, and of the sides, as logarithms;
    each times one of four `weights`. Decoded sides grow at most by exp(`bbox_xform_clip`)."""

    def __init__(
        self, weights: tuple[float, float, float, float],
        bbox_xform_clip: float = math.log(1000.0 / 16),
    ) -> None:  # fmt: skip
        self.weights = weights
        self.bbox_xform_clip = bbox_xform_clip

    def encode(self, reference_boxes: list[Tensor], proposals: list[Tensor]) -> list[Tensor]:
        """Of each image, the codes (N, 4) of `reference_boxes` as seen from `proposals`."""
        pairs = zip(reference_boxes, proposals, strict=True)
        return [self.encode_single(r, p) for r, p in pairs]

    def encode_single(self, reference_boxes: Tensor, proposals: Tensor) -> Tensor:
        """The codes (N, 4) of boxes (N, 4)."""
        w, h, x, y = _middles(proposals)
        rw, rh, rx, ry = _middles(reference_boxes)
        a, b, c, d = self.weights
        codes = [
            a * (rx - x) / w, b * (ry - y) / h, c * aten.log(rw / w), d * aten.log(rh / h),
        ]  # fmt: skip
        return aten.stack(codes, 1)

    def decode(self, rel_codes: Tensor, boxes: list[Tensor]) -> Tensor:
        """Codes (N, 4K) seen from the boxes of all images, N together: (N, K, 4)."""
        if not isinstance(boxes, (list, tuple)):
            raise AssertionError("This function expects boxes of type list or tuple.")
        all_boxes = aten.cat(list(boxes), 0)
        n = all_boxes.shape[0]
        codes = rel_codes if n else aten.reshape(rel_codes, (0, rel_codes.shape[-1]))
        made = self.decode_single(codes, all_boxes)
        return aten.reshape(made, (n, made.shape[1] // 4, 4))

    def decode_single(self, rel_codes: Tensor, boxes: Tensor) -> Tensor:
        """The boxes (N, 4K) of codes (N, 4K) seen from boxes (N, 4)."""
        w, h, x, y = (aten.unsqueeze(t, 1) for t in _middles(boxes.to(rel_codes.dtype)))
        a, b, c, d = self.weights
        # a wild prediction must not overflow exp
        dw = aten.clamp(rel_codes[:, 2::4] / c, max=self.bbox_xform_clip)
        dh = aten.clamp(rel_codes[:, 3::4] / d, max=self.bbox_xform_clip)
        cx, cy = rel_codes[:, 0::4] / a * w + x, rel_codes[:, 1::4] / b * h + y
        half_w, half_h = 0.5 * (aten.exp(dw) * w), 0.5 * (aten.exp(dh) * h)
        corners = [cx - half_w, cy - half_h, cx + half_w, cy + half_h]
        return aten.flatten(aten.stack(corners, 2), 1)


class BoxLinearCoder:
    """Boxes as the distances of their sides from the centres of other boxes, with
    `normalize_by_size` in the sides of these (arXiv:1904.01355). Any leading dimensions."""

    def __init__(self, normalize_by_size: bool = True) -> None:
        self.normalize_by_size = normalize_by_size

    def encode(self, reference_boxes: Tensor, proposals: Tensor) -> Tensor:
        """The codes (…, 4) of `proposals` as seen from `reference_boxes`."""
        low, high = reference_boxes[..., :2], reference_boxes[..., 2:]
        middle, size = 0.5 * (low + high), high - low
        codes = aten.cat([middle - proposals[..., :2], proposals[..., 2:] - middle], -1)
        return codes / aten.cat([size, size], -1) if self.normalize_by_size else codes

    def decode(self, rel_codes: Tensor, boxes: Tensor) -> Tensor:
        """The boxes (…, 4) of codes (…, 4) seen from boxes (…, 4)."""
        boxes = boxes.to(rel_codes.dtype)
        low, high = boxes[..., :2], boxes[..., 2:]
        middle, size = 0.5 * (low + high), high - low
        if self.normalize_by_size:
            rel_codes = rel_codes * aten.cat([size, size], -1)
        return aten.cat([middle - rel_codes[..., :2], middle + rel_codes[..., 2:]], -1)


class Matcher:
    """The number of the best true box for each prediction: BELOW_LOW_THRESHOLD where even that is
    worse than `low_threshold`, BETWEEN_THRESHOLDS where it is worse than `high_threshold`.

    `allow_low_quality_matches`: the best predictions of each true box keep their best match
    however bad. AssertionError for thresholds in the wrong order.
    """

    BELOW_LOW_THRESHOLD = -1
    BETWEEN_THRESHOLDS = -2

    def __init__(
        self, high_threshold: float, low_threshold: float, allow_low_quality_matches: bool = False
    ) -> None:
        if low_threshold > high_threshold:
            raise AssertionError("low_threshold should be <= high_threshold")
        self.high_threshold = high_threshold
        self.low_threshold = low_threshold
        self.allow_low_quality_matches = allow_low_quality_matches

    def __call__(self, match_quality_matrix: Tensor) -> Tensor:
        """Qualities (M true boxes, N predictions) → int64 (N,). ValueError if M or N is 0."""
        if match_quality_matrix.numel() == 0:
            kind = "ground-truth" if match_quality_matrix.shape[0] == 0 else "proposal"
            raise ValueError(f"No {kind} boxes available for one of the images during training")
        best, every = match_quality_matrix.max(0)
        low, high = self.low_threshold, self.high_threshold
        matches = aten.where(best < low, self.BELOW_LOW_THRESHOLD, every)
        matches = aten.where((best >= low) & (best < high), self.BETWEEN_THRESHOLDS, matches)
        if self.allow_low_quality_matches:
            self.set_low_quality_matches_(matches, every, match_quality_matrix)
        return matches

    def set_low_quality_matches_(
        self, matches: Tensor, all_matches: Tensor, match_quality_matrix: Tensor
    ) -> None:
        """Restore, in `matches`, the match of each true box's best predictions, ties included."""
        best = aten.amax(match_quality_matrix, 1, keepdim=True)
        at = aten.where((match_quality_matrix == best).any(0))[0]
        matches[at] = all_matches[at]


class SSDMatcher(Matcher):
    """A match for each prediction that overlaps a true box by at least `threshold`, and of each
    true box for the first of its best predictions however bad."""

    def __init__(self, threshold: float) -> None:
        super().__init__(threshold, threshold, allow_low_quality_matches=False)

    def __call__(self, match_quality_matrix: Tensor) -> Tensor:
        matches = super().__call__(match_quality_matrix)
        best = match_quality_matrix.max(1)[1]
        matches[best] = aten.arange(best.shape[0], device=best.device)
        return matches


def _box_loss(
    type: str, box_coder: BoxCoder, anchors_per_image: Tensor, matched_gt_boxes_per_image: Tensor,
    bbox_regression_per_image: Tensor, cnf: dict[str, float] | None = None,
) -> Tensor:  # fmt: skip
    """The sum over boxes of a distance: "l1" and "smooth_l1" (`cnf`: beta) of the codes; "giou",
    "diou" and "ciou" (`cnf`: eps) of the boxes. AssertionError for another type."""
    facts = cnf or {}
    truth, codes = matched_gt_boxes_per_image, bbox_regression_per_image
    if type in ("l1", "smooth_l1"):
        target = box_coder.encode_single(truth, anchors_per_image)
        if type == "l1":
            return F.l1_loss(codes, target, reduction="sum")
        return F.smooth_l1_loss(codes, target, reduction="sum", beta=facts.get("beta", 1.0))
    losses = {
        "giou": generalized_box_iou_loss, "diou": distance_box_iou_loss,
        "ciou": complete_box_iou_loss,
    }  # fmt: skip
    if type not in losses:
        raise AssertionError(f"Unsupported loss: {type}")
    boxes = box_coder.decode_single(codes, anchors_per_image)
    return losses[type](boxes, truth, reduction="sum", eps=facts.get("eps", 1e-7))


def retrieve_out_channels(model: nn.Module, size: tuple[int, int]) -> list[int]:
    """The channels of the maps that a backbone gives for an image of `size` (width, height)."""
    training = model.training
    model.eval()
    with no_grad():
        device = next(model.parameters()).device
        maps = model(aten.zeros((1, 3, size[1], size[0]), device=device))
    if training:
        model.train()
    return [m.shape[1] for m in ([maps] if isinstance(maps, Tensor) else maps.values())]


def overwrite_eps(model: nn.Module, eps: float) -> None:
    """Set eps of every FrozenBatchNorm2d: torchvision's COCO weights expect 0."""
    for m in model.modules():
        if isinstance(m, FrozenBatchNorm2d):
            m.eps = eps


__all__ = [
    "BalancedPositiveNegativeSampler", "BoxCoder", "BoxLinearCoder", "Matcher", "SSDMatcher",
    "overwrite_eps", "retrieve_out_channels",
]  # fmt: skip
