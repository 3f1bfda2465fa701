"""The second stage: what is in each proposed region, its box, its mask and its keypoints
(arXiv:1504.08083, arXiv:1703.06870).

Source: https://docs.pytorch.org/vision/0.28/models/faster_rcnn.html
"""

from __future__ import annotations

from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import float16, float32, float64, int64
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models.detection._utils import (
    BalancedPositiveNegativeSampler,
    BoxCoder,
    Matcher,
)
from torchlab.vision.models.detection.keypoints import (
    heatmaps_to_keypoints,
    keypointrcnn_inference,
    keypointrcnn_loss,
    keypoints_to_heatmap,
)
from torchlab.vision.models.detection.masks import (
    maskrcnn_inference,
    maskrcnn_loss,
    paste_masks_in_image,
    project_masks_on_boxes,
)
from torchlab.vision.ops import boxes as box_ops

Target = dict[str, Tensor]


def fastrcnn_loss(
    class_logits: Tensor, box_regression: Tensor, labels: list[Tensor],
    regression_targets: list[Tensor],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Cross-entropy of the classes, and the smooth distance of the codes of what is no
    background, in the columns of the true class."""
    known = aten.cat(labels, 0)
    pos = aten.where(known > 0)[0]
    codes = aten.reshape(box_regression, (known.shape[0], box_regression.shape[-1] // 4, 4))
    boxes = F.smooth_l1_loss(
        codes[pos, known[pos]], aten.cat(regression_targets, 0)[pos], beta=1 / 9, reduction="sum"
    )
    return F.cross_entropy(class_logits, known), boxes / known.numel()


class RoIHeads(nn.Module):
    """Detections of each image from maps and proposals, or in training the losses.

    A detection has a score above `score_thresh` and overlaps no better one of its class by more
    than `nms_thresh`; at most `detections_per_img`. With `mask_roi_pool`, `mask_head` and
    `mask_predictor` each has a mask too; so with keypoints.
    """

    def __init__(
        self, box_roi_pool: nn.Module, box_head: nn.Module, box_predictor: nn.Module,
        fg_iou_thresh: float, bg_iou_thresh: float, batch_size_per_image: int,
        positive_fraction: float, bbox_reg_weights: tuple[float, float, float, float] | None,
        score_thresh: float, nms_thresh: float, detections_per_img: int,
        mask_roi_pool: nn.Module | None = None, mask_head: nn.Module | None = None,
        mask_predictor: nn.Module | None = None, keypoint_roi_pool: nn.Module | None = None,
        keypoint_head: nn.Module | None = None, keypoint_predictor: nn.Module | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.box_similarity = box_ops.box_iou
        self.proposal_matcher = Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=False
        )
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(
            batch_size_per_image, positive_fraction
        )
        self.box_coder = BoxCoder(bbox_reg_weights or (10.0, 10.0, 5.0, 5.0))
        self.box_roi_pool = box_roi_pool
        self.box_head = box_head
        self.box_predictor = box_predictor
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.mask_roi_pool = mask_roi_pool
        self.mask_head = mask_head
        self.mask_predictor = mask_predictor
        self.keypoint_roi_pool = keypoint_roi_pool
        self.keypoint_head = keypoint_head
        self.keypoint_predictor = keypoint_predictor

    def has_mask(self) -> bool:
        """Whether all parts for masks are there."""
        return None not in (self.mask_roi_pool, self.mask_head, self.mask_predictor)

    def has_keypoint(self) -> bool:
        """Whether all parts for keypoints are there."""
        return None not in (self.keypoint_roi_pool, self.keypoint_head, self.keypoint_predictor)

    def assign_targets_to_proposals(
        self, proposals: list[Tensor], gt_boxes: list[Tensor], gt_labels: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Of each image, the number of each proposal's true box, and its class (0 nothing)."""
        matched, labels = [], []
        for own, truth, known in zip(proposals, gt_boxes, gt_labels, strict=True):
            if truth.numel() == 0:
                at = aten.zeros((own.shape[0],), dtype=int64, device=own.device)
                matched.append(at)
                labels.append(aten.zeros_like(at))
                continue
            at = self.proposal_matcher(self.box_similarity(truth, own))
            number = aten.clamp(at, min=0)
            label = aten.where(at == Matcher.BELOW_LOW_THRESHOLD, 0, known[number].to(int64))
            labels.append(aten.where(at == Matcher.BETWEEN_THRESHOLDS, -1, label))
            matched.append(number)
        return matched, labels

    def subsample(self, labels: list[Tensor]) -> list[Tensor]:
        """The numbers of the proposals drawn from each image."""
        positive, negative = self.fg_bg_sampler(labels)
        return [aten.where(p + n > 0)[0] for p, n in zip(positive, negative, strict=True)]

    def add_gt_proposals(self, proposals: list[Tensor], gt_boxes: list[Tensor]) -> list[Tensor]:
        """The true boxes as further proposals: something right to learn from at the start."""
        return [aten.cat((p, t)) for p, t in zip(proposals, gt_boxes, strict=True)]

    def check_targets(self, targets: list[Target] | None) -> list[Target]:
        """The targets. ValueError where they lack what the heads learn from."""
        if targets is None:
            raise ValueError("targets should not be None")
        needed = (
            ["boxes", "labels"] + ["masks"] * self.has_mask() + ["keypoints"] * self.has_keypoint()
        )
        for key in needed:
            if not all(key in t for t in targets):
                raise ValueError(f"Every element of targets should have a {key} key")
        return targets

    def select_training_samples(
        self, proposals: list[Tensor], targets: list[Target] | None
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
        """Drawn proposals of each image, their true boxes' numbers, classes and codes."""
        targets = self.check_targets(targets)
        dtype, device = proposals[0].dtype, proposals[0].device
        gt_boxes = [t["boxes"].to(dtype) for t in targets]
        proposals = self.add_gt_proposals(proposals, gt_boxes)
        matched, labels = self.assign_targets_to_proposals(
            proposals, gt_boxes, [t["labels"] for t in targets]
        )
        truth = []
        for i, at in enumerate(self.subsample(labels)):
            proposals[i], labels[i], matched[i] = proposals[i][at], labels[i][at], matched[i][at]
            known = gt_boxes[i]
            if known.numel() == 0:
                known = aten.zeros((1, 4), dtype=dtype, device=device)
            truth.append(known[matched[i]])
        return proposals, matched, labels, self.box_coder.encode(truth, proposals)

    def postprocess_detections(
        self, class_logits: Tensor, box_regression: Tensor, proposals: list[Tensor],
        image_shapes: list[tuple[int, int]],
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:  # fmt: skip
        """Boxes, scores and labels of each image's detections, by falling score."""
        counts = [p.shape[0] for p in proposals]
        classes = class_logits.shape[-1]
        decoded = aten.split(self.box_coder.decode(box_regression, proposals), counts, 0)
        chances = aten.split(F.softmax(class_logits, -1), counts, 0)
        found: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        for every, scores, size in zip(decoded, chances, image_shapes, strict=True):
            every = box_ops.clip_boxes_to_image(every, size)
            labels = aten.expand(aten.arange(classes, device=scores.device), scores.shape)
            # column 0 is the background
            boxes = aten.reshape(every[:, 1:], (-1, 4))
            score, label = aten.flatten(scores[:, 1:]), aten.flatten(labels[:, 1:])
            keep = aten.where(score > self.score_thresh)[0]
            boxes, score, label = boxes[keep], score[keep], label[keep]
            keep = box_ops.remove_small_boxes(boxes, min_size=1e-2)
            boxes, score, label = boxes[keep], score[keep], label[keep]
            keep = box_ops.batched_nms(boxes, score, label, self.nms_thresh)
            keep = keep[: self.detections_per_img]
            for out, values in zip(found, (boxes, score, label), strict=True):
                out.append(values[keep])
        return found

    def _check_types(self, targets: list[Target]) -> None:
        for t in targets:
            if t["boxes"].dtype not in (float16, float32, float64):
                raise TypeError(f"target boxes must of float type, instead got {t['boxes'].dtype}")
            if t["labels"].dtype != int64:
                raise TypeError(
                    f"target labels must of int64 type, instead got {t['labels'].dtype}"
                )
            if self.has_keypoint() and t["keypoints"].dtype != float32:
                raise TypeError(
                    f"target keypoints must of float type, instead got {t['keypoints'].dtype}"
                )

    def _masks(
        self, features: dict[str, Tensor], boxes: list[Tensor], shapes: list[tuple[int, int]]
    ) -> Tensor:
        pool: Any = self.mask_roi_pool
        head: Any = self.mask_head
        predictor: Any = self.mask_predictor
        return predictor(head(pool(features, boxes, shapes)))

    def _heatmaps(
        self, features: dict[str, Tensor], boxes: list[Tensor], shapes: list[tuple[int, int]]
    ) -> Tensor:
        pool: Any = self.keypoint_roi_pool
        head: Any = self.keypoint_head
        predictor: Any = self.keypoint_predictor
        return predictor(head(pool(features, boxes, shapes)))

    def forward(
        self, features: dict[str, Tensor], proposals: list[Tensor],
        image_shapes: list[tuple[int, int]], targets: list[Target] | None = None,
    ) -> tuple[list[Target], dict[str, Tensor]]:  # fmt: skip
        matched: list[Tensor] = []
        labels: list[Tensor] = []
        codes: list[Tensor] = []
        if targets is not None:
            self._check_types(targets)
        if self.training:
            samples = self.select_training_samples(proposals, targets)
            proposals, matched, labels, codes = samples
        pooled = self.box_head(self.box_roi_pool(features, proposals, image_shapes))
        logits, regression = self.box_predictor(pooled)
        if self.training:
            cls_loss, box_loss = fastrcnn_loss(logits, regression, labels, codes)
            losses = {"loss_classifier": cls_loss, "loss_box_reg": box_loss}
            if self.has_mask():
                losses["loss_mask"] = self._mask_loss(
                    features, proposals, image_shapes, targets or [], matched, labels
                )
            if self.has_keypoint():
                losses["loss_keypoint"] = self._keypoint_loss(
                    features, proposals, image_shapes, targets or [], matched, labels
                )
            return [], losses
        found = self.postprocess_detections(logits, regression, proposals, image_shapes)
        result = [
            {"boxes": b, "labels": known, "scores": s} for b, s, known in zip(*found, strict=True)
        ]
        if self.has_mask():
            boxes, kinds = [r["boxes"] for r in result], [r["labels"] for r in result]
            probs = maskrcnn_inference(self._masks(features, boxes, image_shapes), kinds)
            for r, masks in zip(result, probs, strict=True):
                r["masks"] = masks
        if self.has_keypoint():
            boxes = [r["boxes"] for r in result]
            heat = self._heatmaps(features, boxes, image_shapes)
            for r, points, scores in zip(result, *keypointrcnn_inference(heat, boxes), strict=True):
                r["keypoints"] = points
                r["keypoints_scores"] = scores
        return result, {}

    def _positive(
        self, proposals: list[Tensor], matched: list[Tensor], labels: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Of each image, the proposals that hold something, and their true boxes' numbers."""
        at = [aten.where(known > 0)[0] for known in labels]
        boxes = [p[i] for p, i in zip(proposals, at, strict=True)]
        return boxes, [m[i] for m, i in zip(matched, at, strict=True)]

    def _mask_loss(
        self, features: dict[str, Tensor], proposals: list[Tensor],
        image_shapes: list[tuple[int, int]], targets: list[Target], matched: list[Tensor],
        labels: list[Tensor],
    ) -> Tensor:  # fmt: skip
        boxes, numbers = self._positive(proposals, matched, labels)
        logits = self._masks(features, boxes, image_shapes)
        masks, kinds = [t["masks"] for t in targets], [t["labels"] for t in targets]
        return maskrcnn_loss(logits, boxes, masks, kinds, numbers)

    def _keypoint_loss(
        self, features: dict[str, Tensor], proposals: list[Tensor],
        image_shapes: list[tuple[int, int]], targets: list[Target], matched: list[Tensor],
        labels: list[Tensor],
    ) -> Tensor:  # fmt: skip
        boxes, numbers = self._positive(proposals, matched, labels)
        heat = self._heatmaps(features, boxes, image_shapes)
        return keypointrcnn_loss(heat, boxes, [t["keypoints"] for t in targets], numbers)


__all__ = [
    "RoIHeads", "fastrcnn_loss", "heatmaps_to_keypoints", "keypointrcnn_inference",
    "keypointrcnn_loss", "keypoints_to_heatmap", "maskrcnn_inference", "maskrcnn_loss",
    "paste_masks_in_image", "project_masks_on_boxes",
]  # fmt: skip
