"""RetinaNet (arXiv:1708.02002): a loss that heeds what is hard, for every anchor of a pyramid.

Source: https://docs.pytorch.org/vision/0.28/models/retinanet.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import int64
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import handle_legacy_interface
from torchlab.vision.models._weights import coco, loaded, with_backbone
from torchlab.vision.models.detection._utils import BoxCoder, Matcher, _box_loss, overwrite_eps
from torchlab.vision.models.detection.anchor_utils import AnchorGenerator
from torchlab.vision.models.detection.backbone_utils import (
    _resnet_fpn_extractor,
    _validate_trainable_layers,
)
from torchlab.vision.models.detection.one_stage import (
    PyramidDetector,
    check_pyramid,
    flattened,
)
from torchlab.vision.models.detection.transform import GeneralizedRCNNTransform
from torchlab.vision.models.resnet import ResNet50_Weights, resnet50
from torchlab.vision.ops import boxes as box_ops
from torchlab.vision.ops.feature_pyramid_network import LastLevelP6P7
from torchlab.vision.ops.losses import sigmoid_focal_loss
from torchlab.vision.ops.misc import Conv2dNormActivation, FrozenBatchNorm2d

Norm = Callable[..., nn.Module]
Target = dict[str, Tensor]
SIZES = (32, 64, 128, 256, 512)


def _sum(x: list[Tensor]) -> Tensor:
    total = x[0]
    for part in x[1:]:
        total = total + part
    return total


def _default_anchorgen() -> AnchorGenerator:
    sizes = tuple((s, int(s * 2 ** (1.0 / 3)), int(s * 2 ** (2.0 / 3))) for s in SIZES)
    return AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * len(sizes))


def small_weights(module: nn.Module) -> None:
    """Every convolution small at random, its bias zero."""
    for m in module.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.normal_(m.weight, std=0.01)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0)


def _convolutions(channels: int, norm_layer: Norm | None) -> nn.Sequential:
    layers = (Conv2dNormActivation(channels, channels, norm_layer=norm_layer) for _ in range(4))
    return nn.Sequential(*layers)


class _Head(nn.Module):
    """What loads the names of before version 2, when the convolutions were bare."""

    _version = 2

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        if (local_metadata.get("version") or 0) < 2:
            for i in range(4):
                for part in ("weight", "bias"):
                    old = f"{prefix}conv.{2 * i}.{part}"
                    if old in state_dict:
                        state_dict[f"{prefix}conv.{i}.0.{part}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class RetinaNetHead(nn.Module):
    """Maps (N, in_channels, H, W) → {"cls_logits": (N, anchors, num_classes), "bbox_regression":
    (N, anchors, 4)}."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, norm_layer: Norm | None = None
    ) -> None:
        super().__init__()
        self.classification_head = RetinaNetClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer=norm_layer
        )
        self.regression_head = RetinaNetRegressionHead(
            in_channels, num_anchors, norm_layer=norm_layer
        )

    def compute_loss(
        self, targets: list[Target], head_outputs: dict[str, Tensor], anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:  # fmt: skip
        """The mean over images of both losses, each over the number of matched anchors."""
        return {
            "classification": self.classification_head.compute_loss(
                targets, head_outputs, matched_idxs
            ),
            "bbox_regression": self.regression_head.compute_loss(
                targets, head_outputs, anchors, matched_idxs
            ),
        }

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        return {
            "cls_logits": self.classification_head(x),
            "bbox_regression": self.regression_head(x),
        }


class RetinaNetClassificationHead(_Head):
    """Maps → logits. At first every class has the probability `prior_probability`."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int,
        prior_probability: float = 0.01, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.conv = _convolutions(in_channels, norm_layer)
        small_weights(self.conv)
        self.cls_logits = nn.Conv2d(
            in_channels, num_anchors * num_classes, kernel_size=3, stride=1, padding=1
        )
        nn.init.normal_(self.cls_logits.weight, std=0.01)
        odds = (1 - prior_probability) / prior_probability
        nn.init.constant_(self.cls_logits.bias, -math.log(odds))
        self.num_classes = num_classes
        self.num_anchors = num_anchors
        self.BETWEEN_THRESHOLDS = Matcher.BETWEEN_THRESHOLDS

    def compute_loss(
        self, targets: list[Target], head_outputs: dict[str, Tensor], matched_idxs: list[Tensor]
    ) -> Tensor:
        """The focal loss of all anchors but those that match neither well nor badly."""
        losses = []
        facts = zip(targets, head_outputs["cls_logits"], matched_idxs, strict=True)
        for target, logits, at in facts:
            matched = at >= 0
            truth = aten.zeros_like(logits)
            truth[matched, target["labels"][at[matched]]] = 1.0
            counted = at != self.BETWEEN_THRESHOLDS
            loss = sigmoid_focal_loss(logits[counted], truth[counted], reduction="sum")
            losses.append(loss / aten.clamp(matched.sum(), min=1))
        return _sum(losses) / len(targets)

    def forward(self, x: list[Tensor]) -> Tensor:
        made = [flattened(self.cls_logits(self.conv(m)), self.num_classes) for m in x]
        return aten.cat(made, 1)


class RetinaNetRegressionHead(_Head):
    """Maps → the codes of boxes."""

    def __init__(self, in_channels: int, num_anchors: int, norm_layer: Norm | None = None) -> None:
        super().__init__()
        self.conv = _convolutions(in_channels, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=3, stride=1, padding=1)
        nn.init.normal_(self.bbox_reg.weight, std=0.01)
        nn.init.zeros_(self.bbox_reg.bias)
        small_weights(self.conv)
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self._loss_type = "l1"

    def compute_loss(
        self, targets: list[Target], head_outputs: dict[str, Tensor], anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> Tensor:  # fmt: skip
        """The distance of the matched anchors' boxes from the true ones."""
        losses = []
        facts = zip(targets, head_outputs["bbox_regression"], anchors, matched_idxs, strict=True)
        for target, codes, own, at in facts:
            matched = aten.where(at >= 0)[0]
            loss = _box_loss(
                self._loss_type, self.box_coder, own[matched], target["boxes"][at[matched]],
                codes[matched],
            )  # fmt: skip
            losses.append(loss / max(1, matched.numel()))
        return _sum(losses) / max(1, len(targets))

    def forward(self, x: list[Tensor]) -> Tensor:
        return aten.cat([flattened(self.bbox_reg(self.conv(m)), 4) for m in x], 1)


class RetinaNet(PyramidDetector):
    """The parts built for a `backbone` that has `out_channels`, each of them replaceable.

    `num_classes` counts the background. ValueError or TypeError for parts that do not fit.
    """

    def __init__(
        self, backbone: Any, num_classes: int, min_size: Any = 800, max_size: int = 1333,
        image_mean: list[float] | None = None, image_std: list[float] | None = None,
        anchor_generator: Any = None, head: nn.Module | None = None, proposal_matcher: Any = None,
        score_thresh: float = 0.05, nms_thresh: float = 0.5, detections_per_img: int = 300,
        fg_iou_thresh: float = 0.5, bg_iou_thresh: float = 0.4, topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        check_pyramid(backbone, anchor_generator, " instead of")
        self.backbone = backbone
        self.anchor_generator = anchor_generator or _default_anchorgen()
        if head is None:
            each = self.anchor_generator.num_anchors_per_location()[0]
            head = RetinaNetHead(backbone.out_channels, each, num_classes)
        self.head = head
        self.proposal_matcher = proposal_matcher or Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True
        )
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self.transform = GeneralizedRCNNTransform(
            min_size, max_size, image_mean or [0.485, 0.456, 0.406],
            image_std or [0.229, 0.224, 0.225], **kwargs,
        )  # fmt: skip
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.topk_candidates = topk_candidates

    def compute_loss(
        self, targets: list[Target], head_outputs: dict[str, Tensor], anchors: list[Tensor]
    ) -> dict[str, Tensor]:
        """The losses of anchors matched with the true boxes."""
        matched = []
        for own, target in zip(anchors, targets, strict=True):
            if target["boxes"].numel() == 0:
                none = aten.full((own.shape[0],), -1, dtype=int64, device=own.device)
                matched.append(none)
            else:
                overlap = box_ops.box_iou(target["boxes"], own)
                matched.append(self.proposal_matcher(overlap))
        return self.head.compute_loss(targets, head_outputs, anchors, matched)

    def _scores(self, outputs: dict[str, list[Tensor]], i: int) -> list[Tensor]:
        return [aten.sigmoid(level[i]) for level in outputs["cls_logits"]]

    def _boxes(self, codes: Tensor, anchors: Tensor) -> Tensor:
        return self.box_coder.decode_single(codes, anchors)

    def _losses(
        self, targets: list[Target], outputs: Any, anchors: list[Tensor], maps: list[Tensor]
    ) -> dict[str, Tensor]:
        return self.compute_loss(targets, outputs, anchors)


class RetinaNet_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = coco(
        "retinanet_resnet50_fpn_coco-eeacb38b", {"box_map": 36.4}, 34014999, 151.54, 130.267,
        "#retinanet",
    )  # fmt: skip
    DEFAULT = COCO_V1


class RetinaNet_ResNet50_FPN_V2_Weights(WeightsEnum):
    COCO_V1 = coco(
        "retinanet_resnet50_fpn_v2_coco-5905b1c5", {"box_map": 41.5}, 38198935, 152.238, 146.037,
        "pull/5756",
    )  # fmt: skip
    DEFAULT = COCO_V1


def resnet50_pyramid(
    trained: bool, below: Any, progress: bool, trainable: int | None, width: int = 256,
    frozen: bool = True,
) -> Any:  # fmt: skip
    """The last three stages of ResNet-50 with a pyramid and two levels more: from its own last
    level, 256 wide, or the backbone's, 2048. If anything of it was `trained` its first layers are
    frozen, and with `frozen` its normalization."""
    layers = _validate_trainable_layers(trained, trainable, 5, 3)
    norm = FrozenBatchNorm2d if trained and frozen else nn.BatchNorm2d
    body = resnet50(weights=below, progress=progress, norm_layer=norm)
    last = LastLevelP6P7(width, 256)
    return _resnet_fpn_extractor(body, layers, returned_layers=[2, 3, 4], extra_blocks=last)


@register_model()
@handle_legacy_interface(
    weights=("pretrained", RetinaNet_ResNet50_FPN_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", ResNet50_Weights.IMAGENET1K_V1),
)
def retinanet_resnet50_fpn(
    *, weights: RetinaNet_ResNet50_FPN_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> RetinaNet:  # fmt: skip
    """RetinaNet on a pyramid of ResNet-50; 91 classes unless `num_classes` says."""
    chosen, below, classes = with_backbone(
        RetinaNet_ResNet50_FPN_Weights, weights, ResNet50_Weights, weights_backbone, num_classes
    )
    trained = chosen is not None or below is not None
    backbone = resnet50_pyramid(trained, below, progress, trainable_backbone_layers)
    model = loaded(RetinaNet(backbone, classes, **kwargs), chosen, progress)
    if chosen is not None:
        overwrite_eps(model, 0.0)
    return model


@register_model()
@handle_legacy_interface(
    weights=("pretrained", RetinaNet_ResNet50_FPN_V2_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", ResNet50_Weights.IMAGENET1K_V1),
)
def retinanet_resnet50_fpn_v2(
    *, weights: RetinaNet_ResNet50_FPN_V2_Weights | None = None, progress: bool = True,
    num_classes: int | None = None, weights_backbone: ResNet50_Weights | None = None,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> RetinaNet:  # fmt: skip
    """RetinaNet on a pyramid of ResNet-50, normalized by groups and with a loss of the boxes'
    overlap."""
    chosen, below, classes = with_backbone(
        RetinaNet_ResNet50_FPN_V2_Weights, weights, ResNet50_Weights, weights_backbone, num_classes
    )
    trained = chosen is not None or below is not None
    backbone = resnet50_pyramid(trained, below, progress, trainable_backbone_layers, 2048, False)
    anchors = _default_anchorgen()
    head = RetinaNetHead(
        backbone.out_channels, anchors.num_anchors_per_location()[0], classes,
        norm_layer=partial(nn.GroupNorm, 32),
    )  # fmt: skip
    head.regression_head._loss_type = "giou"
    model = RetinaNet(backbone, classes, anchor_generator=anchors, head=head, **kwargs)
    return loaded(model, chosen, progress)


__all__ = [
    "RetinaNet", "RetinaNet_ResNet50_FPN_V2_Weights", "RetinaNet_ResNet50_FPN_Weights",
    "retinanet_resnet50_fpn", "retinanet_resnet50_fpn_v2",
]  # fmt: skip
