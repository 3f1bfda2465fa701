"""The region proposal network: where in the image something might be (arXiv:1506.01497).

Source: https://docs.pytorch.org/vision/0.28/models/faster_rcnn.html
"""

from __future__ import annotations

from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import float32, int64
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models.detection._utils import (
    BalancedPositiveNegativeSampler,
    BoxCoder,
    Matcher,
)
from torchlab.vision.models.detection.image_list import ImageList
from torchlab.vision.ops import boxes as box_ops
from torchlab.vision.ops.misc import Conv2dNormActivation


class RPNHead(nn.Module):
    """Of each map (N, C, H, W), logits (N, A, H, W) of "something" and codes (N, 4A, H, W)."""

    _version = 2

    def __init__(self, in_channels: int, num_anchors: int, conv_depth: int = 1) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            *(
                Conv2dNormActivation(in_channels, in_channels, kernel_size=3, norm_layer=None)
                for _ in range(conv_depth)
            )
        )
        self.cls_logits = nn.Conv2d(in_channels, num_anchors, kernel_size=1, stride=1)
        self.bbox_pred = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=1, stride=1)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.normal_(m.weight, std=0.01)
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        # before version 2 there was one bare convolution
        if (local_metadata.get("version") or 0) < 2:
            for part in ("weight", "bias"):
                if f"{prefix}conv.{part}" in state_dict:
                    state_dict[f"{prefix}conv.0.0.{part}"] = state_dict.pop(f"{prefix}conv.{part}")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def forward(self, x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        logits, codes = [], []
        for feature in x:
            t = self.conv(feature)
            logits.append(self.cls_logits(t))
            codes.append(self.bbox_pred(t))
        return logits, codes


def permute_and_flatten(layer: Tensor, N: int, A: int, C: int, H: int, W: int) -> Tensor:
    """(N, A · C, H, W) → (N, H · W · A, C), the order of the anchors."""
    split = aten.reshape(layer, (N, A, C, H, W))
    return aten.reshape(aten.permute(split, (0, 3, 4, 1, 2)), (N, -1, C))


def concat_box_prediction_layers(
    box_cls: list[Tensor], box_regression: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Logits and codes of all maps in the order of the anchors: (N · anchors, C), (…, 4)."""
    logits, codes = [], []
    for cls, code in zip(box_cls, box_regression, strict=True):
        n, _, h, w = cls.shape
        a = code.shape[1] // 4
        logits.append(permute_and_flatten(cls, n, a, cls.shape[1] // a, h, w))
        codes.append(permute_and_flatten(code, n, a, 4, h, w))
    all_logits = aten.flatten(aten.cat(logits, 1), 0, -2)
    return all_logits, aten.reshape(aten.cat(codes, 1), (-1, 4))


class RegionProposalNetwork(nn.Module):
    """Proposals (P, 4) of each image, and in training the losses of objectness and of boxes.

    The best `pre_nms_top_n` anchors of each map, decoded and cut to the image, less those that
    overlap a better one by more than `nms_thresh`; of these the best `post_nms_top_n` (both
    {"training": …, "testing": …}).
    """

    def __init__(
        self, anchor_generator: nn.Module, head: nn.Module, fg_iou_thresh: float,
        bg_iou_thresh: float, batch_size_per_image: int, positive_fraction: float,
        pre_nms_top_n: dict[str, int], post_nms_top_n: dict[str, int], nms_thresh: float,
        score_thresh: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.anchor_generator = anchor_generator
        self.head = head
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self.box_similarity = box_ops.box_iou
        self.proposal_matcher = Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True
        )
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(
            batch_size_per_image, positive_fraction
        )
        self._pre_nms_top_n = pre_nms_top_n
        self._post_nms_top_n = post_nms_top_n
        self.nms_thresh = nms_thresh
        self.score_thresh = score_thresh
        self.min_size = 1e-3

    def pre_nms_top_n(self) -> int:
        """How many anchors of each map are looked at."""
        return self._pre_nms_top_n["training" if self.training else "testing"]

    def post_nms_top_n(self) -> int:
        """How many proposals of each image stay."""
        return self._post_nms_top_n["training" if self.training else "testing"]

    def assign_targets_to_anchors(
        self, anchors: list[Tensor], targets: list[dict[str, Tensor]]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Of each image, labels (1 something, 0 nothing, -1 neither) and true boxes of anchors."""
        labels, matched = [], []
        for own, target in zip(anchors, targets, strict=True):
            truth = target["boxes"]
            if truth.numel() == 0:
                matched.append(aten.zeros_like(own))
                labels.append(aten.zeros((own.shape[0],), dtype=float32, device=own.device))
                continue
            at = self.proposal_matcher(self.box_similarity(truth, own))
            matched.append(truth[aten.clamp(at, min=0)])
            label = (at >= 0).to(float32)
            labels.append(aten.where(at == Matcher.BETWEEN_THRESHOLDS, -1.0, label))
        return labels, matched

    def filter_proposals(
        self, proposals: Tensor, objectness: Tensor, image_shapes: list[tuple[int, int]],
        num_anchors_per_level: list[int],
    ) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
        """Of all boxes (N, anchors, 4), those that stay of each image, and their scores."""
        n, device = proposals.shape[0], proposals.device
        scores = aten.reshape(objectness.detach(), (n, -1))
        chosen, levels, start = [], [], 0
        for level, part in enumerate(aten.split(scores, num_anchors_per_level, 1)):
            k = min(self.pre_nms_top_n(), part.shape[1])
            chosen.append(aten.topk(part, k, dim=1)[1] + start)
            levels.append(aten.full((k,), level, dtype=int64, device=device))
            start += part.shape[1]
        at, level_of = aten.cat(chosen, 1), aten.cat(levels)
        kept_boxes, kept_scores = [], []
        for i, size in enumerate(image_shapes):
            boxes = box_ops.clip_boxes_to_image(proposals[i, at[i]], size)
            score, level = aten.sigmoid(scores[i, at[i]]), level_of
            keep = box_ops.remove_small_boxes(boxes, self.min_size)
            boxes, score, level = boxes[keep], score[keep], level[keep]
            keep = aten.where(score >= self.score_thresh)[0]
            boxes, score, level = boxes[keep], score[keep], level[keep]
            keep = box_ops.batched_nms(boxes, score, level, self.nms_thresh)
            keep = keep[: self.post_nms_top_n()]
            kept_boxes.append(boxes[keep])
            kept_scores.append(score[keep])
        return kept_boxes, kept_scores

    def compute_loss(
        self, objectness: Tensor, pred_bbox_deltas: Tensor, labels: list[Tensor],
        regression_targets: list[Tensor],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Cross-entropy of drawn anchors, and the smooth distance of the codes of true ones."""
        positive, negative = self.fg_bg_sampler(labels)
        pos = aten.where(aten.cat(positive, 0))[0]
        drawn = aten.cat([pos, aten.where(aten.cat(negative, 0))[0]], 0)
        logits = aten.flatten(objectness)
        boxes = F.smooth_l1_loss(
            pred_bbox_deltas[pos], aten.cat(regression_targets, 0)[pos], beta=1 / 9,
            reduction="sum",
        ) / drawn.numel()  # fmt: skip
        truth = aten.cat(labels, 0)
        return F.binary_cross_entropy_with_logits(logits[drawn], truth[drawn]), boxes

    def forward(
        self, images: ImageList, features: dict[str, Tensor],
        targets: list[dict[str, Tensor]] | None = None,
    ) -> tuple[list[Tensor], dict[str, Tensor]]:  # fmt: skip
        maps = list(features.values())
        logits, codes = self.head(maps)
        anchors = self.anchor_generator(images, maps)
        per_level = [o.shape[1] * o.shape[2] * o.shape[3] for o in logits]
        objectness, deltas = concat_box_prediction_layers(logits, codes)
        # proposals are inputs of the second stage, not a path for its gradients
        proposals = self.box_coder.decode(deltas.detach(), anchors)
        proposals = aten.reshape(proposals, (len(anchors), -1, 4))
        boxes, _ = self.filter_proposals(proposals, objectness, images.image_sizes, per_level)
        if not self.training:
            return boxes, {}
        if targets is None:
            raise ValueError("targets should not be None")
        labels, matched = self.assign_targets_to_anchors(anchors, targets)
        codes_true = self.box_coder.encode(matched, anchors)
        loss, box_loss = self.compute_loss(objectness, deltas, labels, codes_true)
        return boxes, {"loss_objectness": loss, "loss_rpn_box_reg": box_loss}


__all__ = [
    "RPNHead", "RegionProposalNetwork", "concat_box_prediction_layers", "permute_and_flatten",
]  # fmt: skip
