"""FCOS (arXiv:1904.01355): no boxes of several shapes; every pixel says how far it is to the sides.

Source: https://docs.pytorch.org/vision/0.28/models/fcos.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import float32, int64
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import handle_legacy_interface
from torchlab.vision.models._weights import coco, loaded, with_backbone
from torchlab.vision.models.detection._utils import BoxLinearCoder
from torchlab.vision.models.detection.anchor_utils import AnchorGenerator
from torchlab.vision.models.detection.one_stage import (
    PyramidDetector,
    check_pyramid,
    flattened,
)
from torchlab.vision.models.detection.retinanet import resnet50_pyramid, small_weights
from torchlab.vision.models.detection.transform import GeneralizedRCNNTransform
from torchlab.vision.models.resnet import ResNet50_Weights
from torchlab.vision.ops.losses import generalized_box_iou_loss, sigmoid_focal_loss

Norm = Callable[..., nn.Module]
Target = dict[str, Tensor]


class FCOSHead(nn.Module):
    """Maps (N, in_channels, H, W) → {"cls_logits": (N, anchors, num_classes), "bbox_regression":
    (N, anchors, 4), "bbox_ctrness": (N, anchors, 1)}."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int | None = 4
    ) -> None:
        super().__init__()
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        n = 4 if num_convs is None else num_convs
        self.classification_head = FCOSClassificationHead(in_channels, num_anchors, num_classes, n)
        self.regression_head = FCOSRegressionHead(in_channels, num_anchors, n)

    def compute_loss(
        self, targets: list[Target], head_outputs: dict[str, Tensor], anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:  # fmt: skip
        """Three losses, each over the number of matched anchors of all images."""
        logits = head_outputs["cls_logits"]
        codes, centred = head_outputs["bbox_regression"], head_outputs["bbox_ctrness"]
        kinds, boxes = [], []
        for target, at in zip(targets, matched_idxs, strict=True):
            if target["labels"].shape[0] == 0:
                kind = aten.zeros_like(at, dtype=target["labels"].dtype)
                box = aten.zeros((at.shape[0], 4), dtype=target["boxes"].dtype, device=at.device)
            else:
                number = aten.clamp(at, min=0)
                kind, box = target["labels"][number], target["boxes"][number]
            kinds.append(aten.where(at < 0, -1, kind))
            boxes.append(box)
        truth, known = aten.stack(boxes), aten.stack(kinds)
        every = aten.stack(anchors)
        matched = known >= 0
        n = max(1, int(matched.sum().item()))
        right = aten.zeros_like(logits)
        right[matched, known[matched]] = 1.0
        decoded = self.box_coder.decode(codes, every)
        away = self.box_coder.encode(every, truth)
        x, y = away[..., 0::2], away[..., 1::2]
        share = aten.amin(x, -1) / aten.amax(x, -1) * (aten.amin(y, -1) / aten.amax(y, -1))
        middle = aten.sqrt(share)  # 1 in the middle of a box, 0 at its sides
        losses = {
            "classification": sigmoid_focal_loss(logits, right, reduction="sum"),
            "bbox_regression": generalized_box_iou_loss(
                decoded[matched], truth[matched], reduction="sum"
            ),
            "bbox_ctrness": F.binary_cross_entropy_with_logits(
                aten.squeeze(centred, 2)[matched], middle[matched], reduction="sum"
            ),
        }
        return {name: loss / n for name, loss in losses.items()}

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        logits = self.classification_head(x)
        codes, centred = self.regression_head(x)
        return {"cls_logits": logits, "bbox_regression": codes, "bbox_ctrness": centred}


def _convolutions(channels: int, n: int, norm_layer: Norm | None) -> nn.Sequential:
    norm = partial(nn.GroupNorm, 32) if norm_layer is None else norm_layer
    layers: list[nn.Module] = []
    for _ in range(n):
        layers.append(nn.Conv2d(channels, channels, kernel_size=3, stride=1, padding=1))
        layers += [norm(channels), nn.ReLU()]
    return nn.Sequential(*layers)


class FCOSClassificationHead(nn.Module):
    """Maps → logits. At first every class has the probability `prior_probability`."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int = 4,
        prior_probability: float = 0.01, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_classes = num_classes
        self.num_anchors = num_anchors
        self.conv = _convolutions(in_channels, num_convs, norm_layer)
        small_weights(self.conv)
        self.cls_logits = nn.Conv2d(
            in_channels, num_anchors * num_classes, kernel_size=3, stride=1, padding=1
        )
        nn.init.normal_(self.cls_logits.weight, std=0.01)
        odds = (1 - prior_probability) / prior_probability
        nn.init.constant_(self.cls_logits.bias, -math.log(odds))

    def forward(self, x: list[Tensor]) -> Tensor:
        made = [flattened(self.cls_logits(self.conv(m)), self.num_classes) for m in x]
        return aten.cat(made, 1)


class FCOSRegressionHead(nn.Module):
    """Maps → distances to the sides, not negative, and logits of being in the middle."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_convs: int = 4,
        norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.conv = _convolutions(in_channels, num_convs, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=3, stride=1, padding=1)
        self.bbox_ctrness = nn.Conv2d(in_channels, num_anchors, kernel_size=3, stride=1, padding=1)
        small_weights(self.bbox_reg)
        small_weights(self.bbox_ctrness)
        small_weights(self.conv)

    def forward(self, x: list[Tensor]) -> tuple[Tensor, Tensor]:
        codes, centred = [], []
        for m in x:
            seen = self.conv(m)
            codes.append(flattened(F.relu(self.bbox_reg(seen)), 4))
            centred.append(flattened(self.bbox_ctrness(seen), 1))
        return aten.cat(codes, 1), aten.cat(centred, 1)


class FCOS(PyramidDetector):
    """The parts built for a `backbone` that has `out_channels`, each of them replaceable.

    `num_classes` counts the background. A pixel learns a box if it lies within it, nearer to its
    middle than `center_sampling_radius` strides, on the map for the box's size. ValueError or
    TypeError for parts that do not fit.
    """

    def __init__(
        self, backbone: Any, num_classes: int, min_size: Any = 800, max_size: int = 1333,
        image_mean: list[float] | None = None, image_std: list[float] | None = None,
        anchor_generator: Any = None, head: nn.Module | None = None,
        center_sampling_radius: float = 1.5, score_thresh: float = 0.2, nms_thresh: float = 0.6,
        detections_per_img: int = 100, topk_candidates: int = 1000, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        check_pyramid(backbone, anchor_generator, ", instead  got")
        self.backbone = backbone
        if anchor_generator is None:
            # an anchor stands for a pixel: as large as the stride of its map
            sizes = ((8,), (16,), (32,), (64,), (128,))
            anchor_generator = AnchorGenerator(sizes, ((1.0,),) * len(sizes))
        self.anchor_generator = anchor_generator
        each = anchor_generator.num_anchors_per_location()[0]
        if each != 1:
            raise ValueError(
                f"anchor_generator.num_anchors_per_location()[0] should be 1 instead of {each}"
            )
        self.head = head or FCOSHead(backbone.out_channels, each, num_classes)
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        self.transform = GeneralizedRCNNTransform(
            min_size, max_size, image_mean or [0.485, 0.456, 0.406],
            image_std or [0.229, 0.224, 0.225], **kwargs,
        )  # fmt: skip
        self.center_sampling_radius = center_sampling_radius
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.topk_candidates = topk_candidates

    def _matched(self, anchors: Tensor, truth: Tensor, counts: list[int]) -> Tensor:
        """The number of the true box that each anchor learns, -1 for none: int64 (anchors,)."""
        if truth.numel() == 0:
            return aten.full((anchors.shape[0],), -1, dtype=int64, device=anchors.device)
        middle = (anchors[:, :2] + anchors[:, 2:]) / 2
        side = anchors[:, 2] - anchors[:, 0]
        aim = (truth[:, :2] + truth[:, 2:]) / 2
        apart = aten.amax(aten.abs(aten.unsqueeze(middle, 1) - aten.unsqueeze(aim, 0)), 2)
        near: Any = apart < self.center_sampling_radius * aten.unsqueeze(side, 1)
        at = aten.unsqueeze(middle, 1)
        away = aten.cat([at - truth[:, :2], truth[:, 2:] - at], 2)
        # each map is for boxes of some sizes: 4 to 8 times its stride, the ends without bound
        low, high = side * 4, side * 8
        low[: counts[0]] = 0
        high[-counts[-1] :] = math.inf
        far = aten.amax(away, 2)
        fits = (far > aten.unsqueeze(low, 1)) & (far < aten.unsqueeze(high, 1))
        good = near & (aten.amin(away, 2) > 0) & fits
        area = (truth[:, 2] - truth[:, 0]) * (truth[:, 3] - truth[:, 1])
        quality = good.to(float32) * (1e8 - aten.unsqueeze(area, 0))  # the smallest of several
        best, number = quality.max(1)
        return aten.where(best < 1e-5, -1, number)

    def compute_loss(
        self, targets: list[Target], head_outputs: dict[str, Tensor], anchors: list[Tensor],
        num_anchors_per_level: list[int],
    ) -> dict[str, Tensor]:  # fmt: skip
        """The losses of pixels matched with the true boxes."""
        matched = [
            self._matched(own, target["boxes"], num_anchors_per_level)
            for own, target in zip(anchors, targets, strict=True)
        ]
        return self.head.compute_loss(targets, head_outputs, anchors, matched)

    def _scores(self, outputs: dict[str, list[Tensor]], i: int) -> list[Tensor]:
        pairs = zip(outputs["cls_logits"], outputs["bbox_ctrness"], strict=True)
        return [aten.sqrt(aten.sigmoid(c[i]) * aten.sigmoid(m[i])) for c, m in pairs]

    def _boxes(self, codes: Tensor, anchors: Tensor) -> Tensor:
        return self.box_coder.decode(codes, anchors)

    def _losses(
        self, targets: list[Target], outputs: Any, anchors: list[Tensor], maps: list[Tensor]
    ) -> dict[str, Tensor]:
        counts = [m.shape[2] * m.shape[3] for m in maps]
        return self.compute_loss(targets, outputs, anchors, counts)


class FCOS_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = coco(
        "fcos_resnet50_fpn_coco-99b0c9b7", {"box_map": 39.2}, 32269600, 128.207, 123.608,
        "#fcos-resnet-50-fpn",
    )  # fmt: skip
    DEFAULT = COCO_V1


@register_model()
@handle_legacy_interface(
    weights=("pretrained", FCOS_ResNet50_FPN_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", ResNet50_Weights.IMAGENET1K_V1),
)
def fcos_resnet50_fpn(
    *, weights: FCOS_ResNet50_FPN_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> FCOS:  # fmt: skip
    """FCOS on a pyramid of ResNet-50; 91 classes unless `num_classes` says."""
    chosen, below, classes = with_backbone(
        FCOS_ResNet50_FPN_Weights, weights, ResNet50_Weights, weights_backbone, num_classes
    )
    trained = chosen is not None or below is not None
    backbone = resnet50_pyramid(trained, below, progress, trainable_backbone_layers)
    return loaded(FCOS(backbone, classes, **kwargs), chosen, progress)


__all__ = ["FCOS", "FCOS_ResNet50_FPN_Weights", "fcos_resnet50_fpn"]
