"""SSD (arXiv:1512.02325): boxes of several sizes from maps of several stages.

Source: https://docs.pytorch.org/vision/0.28/models/ssd.html
"""

from __future__ import annotations

import math
import warnings
from collections import OrderedDict
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import int64
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import handle_legacy_interface
from torchlab.vision.models._weights import coco, loaded, with_backbone
from torchlab.vision.models.detection._utils import BoxCoder, SSDMatcher, retrieve_out_channels
from torchlab.vision.models.detection.anchor_utils import DefaultBoxGenerator
from torchlab.vision.models.detection.backbone_utils import _validate_trainable_layers
from torchlab.vision.models.detection.image_list import ImageList
from torchlab.vision.models.detection.one_stage import OneStageDetector, flattened
from torchlab.vision.models.detection.transform import GeneralizedRCNNTransform
from torchlab.vision.models.vgg import VGG, VGG16_Weights, vgg16
from torchlab.vision.ops import boxes as box_ops

Target = dict[str, Tensor]


def _xavier_init(conv: nn.Module) -> None:
    for m in conv.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.xavier_uniform_(m.weight)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0.0)


class SSDHead(nn.Module):
    """Maps → {"bbox_regression": (N, anchors, 4), "cls_logits": (N, anchors, num_classes)}."""

    def __init__(self, in_channels: list[int], num_anchors: list[int], num_classes: int) -> None:
        super().__init__()
        self.classification_head: nn.Module = SSDClassificationHead(
            in_channels, num_anchors, num_classes
        )
        self.regression_head: nn.Module = SSDRegressionHead(in_channels, num_anchors)

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        return {
            "bbox_regression": self.regression_head(x),
            "cls_logits": self.classification_head(x),
        }


class SSDScoringHead(nn.Module):
    """One module for each map: (N, C, H, W) → (N, anchors, num_columns)."""

    def __init__(self, module_list: nn.ModuleList, num_columns: int) -> None:
        super().__init__()
        self.module_list = module_list
        self.num_columns = num_columns

    def forward(self, x: list[Tensor]) -> Tensor:
        modules = list(self.module_list)[: len(x)]
        pairs = zip(modules, x, strict=True)
        return aten.cat([flattened(module(m), self.num_columns) for module, m in pairs], 1)


def _columns(in_channels: list[int], num_anchors: list[int], columns: int) -> nn.ModuleList:
    pairs = zip(in_channels, num_anchors, strict=False)
    return nn.ModuleList(
        [nn.Conv2d(width, columns * n, kernel_size=3, padding=1) for width, n in pairs]
    )


class SSDClassificationHead(SSDScoringHead):
    """Maps → logits."""

    def __init__(self, in_channels: list[int], num_anchors: list[int], num_classes: int) -> None:
        layers = _columns(in_channels, num_anchors, num_classes)
        _xavier_init(layers)
        super().__init__(layers, num_classes)


class SSDRegressionHead(SSDScoringHead):
    """Maps → the codes of boxes."""

    def __init__(self, in_channels: list[int], num_anchors: list[int]) -> None:
        layers = _columns(in_channels, num_anchors, 4)
        _xavier_init(layers)
        super().__init__(layers, 4)


class SSD(OneStageDetector):
    """The detector for a `backbone` that gives a dict of maps; images are resized to `size`
    (width, height). `num_classes` counts the background.

    `positive_fraction`: the share of anchors with an object in the loss; as many of the worst
    others make up the rest. ValueError for other maps than the anchors are for.
    """

    def __init__(
        self, backbone: nn.Module, anchor_generator: DefaultBoxGenerator, size: tuple[int, int],
        num_classes: int, image_mean: list[float] | None = None,
        image_std: list[float] | None = None, head: nn.Module | None = None,
        score_thresh: float = 0.01, nms_thresh: float = 0.45, detections_per_img: int = 200,
        iou_thresh: float = 0.5, topk_candidates: int = 400, positive_fraction: float = 0.25,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.backbone = backbone
        self.anchor_generator = anchor_generator
        self.box_coder = BoxCoder(weights=(10.0, 10.0, 5.0, 5.0))
        if head is None:
            if hasattr(backbone, "out_channels"):
                channels: Any = backbone.out_channels
            else:
                channels = retrieve_out_channels(backbone, size)
            if len(channels) != len(anchor_generator.aspect_ratios):
                raise ValueError(
                    f"The length of the output channels from the backbone ({len(channels)}) do not"
                    " match the length of the anchor generator aspect ratios"
                    f" ({len(anchor_generator.aspect_ratios)})"
                )
            head = SSDHead(channels, anchor_generator.num_anchors_per_location(), num_classes)
        self.head = head
        self.proposal_matcher = SSDMatcher(iou_thresh)
        self.transform = GeneralizedRCNNTransform(
            min(size), max(size), image_mean or [0.485, 0.456, 0.406],
            image_std or [0.229, 0.224, 0.225], size_divisible=1, fixed_size=size, **kwargs,
        )  # fmt: skip
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.topk_candidates = topk_candidates
        self.neg_to_pos_ratio = (1.0 - positive_fraction) / positive_fraction

    def compute_loss(
        self, targets: list[Target], head_outputs: dict[str, Tensor], anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:  # fmt: skip
        """The losses of matched anchors and of the worst of the others."""
        logits = head_outputs["cls_logits"]
        count, distances, kinds = 0, [], []
        facts = zip(targets, head_outputs["bbox_regression"], anchors, matched_idxs, strict=True)
        for target, codes, own, at in facts:
            matched = aten.where(at >= 0)[0]
            number = at[matched]
            count += number.numel()
            truth = self.box_coder.encode_single(target["boxes"][number], own[matched])
            distances.append(F.smooth_l1_loss(codes[matched], truth, reduction="sum"))
            kind = aten.zeros((own.shape[0],), dtype=target["labels"].dtype, device=own.device)
            kind[matched] = target["labels"][number]
            kinds.append(kind)
        known = aten.stack(kinds)
        columns = aten.reshape(logits, (-1, logits.shape[-1]))
        loss = F.cross_entropy(columns, aten.flatten(known), reduction="none")
        loss = aten.reshape(loss, known.shape)
        something: Any = known > 0
        wanted = self.neg_to_pos_ratio * something.sum(1, keepdim=True)
        others = loss.clone()
        others[something] = -math.inf
        rank = aten.sort(aten.sort(others, 1, descending=True)[1], 1)[1]
        n = max(1, count)
        return {
            "bbox_regression": aten.stack(distances).sum() / n,
            "classification": (loss[something].sum() + loss[rank < wanted].sum()) / n,
        }

    def postprocess_detections(
        self, head_outputs: dict[str, Tensor], image_anchors: list[Tensor],
        image_shapes: list[tuple[int, int]],
    ) -> list[Target]:  # fmt: skip
        """Each image's detections: of each class the `topk_candidates` best above the threshold,
        less those that overlap a better one."""
        chances = F.softmax(head_outputs["cls_logits"], dim=-1)
        found = []
        facts = zip(
            head_outputs["bbox_regression"], chances, image_anchors, image_shapes, strict=True
        )
        for codes, chance, anchors, size in facts:
            every = box_ops.clip_boxes_to_image(self.box_coder.decode_single(codes, anchors), size)
            parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
            for label in range(1, chance.shape[1]):
                keep = aten.where(chance[:, label] > self.score_thresh)[0]
                score, order = aten.topk(
                    chance[keep, label], min(self.topk_candidates, keep.shape[0])
                )
                parts[0].append(every[keep[order]])
                parts[1].append(score)
                parts[2].append(aten.full_like(order, label))
            boxes, score, kind = (aten.cat(part, 0) for part in parts)
            keep = box_ops.batched_nms(boxes, score, kind, self.nms_thresh)
            keep = keep[: self.detections_per_img]
            found.append({"boxes": boxes[keep], "scores": score[keep], "labels": kind[keep]})
        return found

    def _losses(
        self, targets: list[Target], outputs: Any, anchors: list[Tensor], maps: list[Tensor]
    ) -> dict[str, Tensor]:
        matched = []
        for own, target in zip(anchors, targets, strict=True):
            if target["boxes"].numel() == 0:
                none = aten.full((own.shape[0],), -1, dtype=int64, device=own.device)
                matched.append(none)
            else:
                overlap = box_ops.box_iou(target["boxes"], own)
                matched.append(self.proposal_matcher(overlap))
        return self.compute_loss(targets, outputs, anchors, matched)

    def _detect(
        self, outputs: Any, anchors: list[Tensor], batch: ImageList, maps: list[Tensor]
    ) -> list[Target]:
        return self.postprocess_detections(outputs, anchors, batch.image_sizes)


def _extra(*convolutions: tuple[int, int, dict[str, Any]]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inp, out, facts in convolutions:
        layers += [nn.Conv2d(inp, out, **facts), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


_ONE = {"kernel_size": 1}
_HALF = {"kernel_size": 3, "padding": 1, "stride": 2}
_INNER, _INNER4 = {"kernel_size": 3}, {"kernel_size": 4}


class SSDFeatureExtractorVGG(nn.Module):
    """The layers of VGG-16 and more: images (N, 3, H, W) → maps "0" to "5", with `highres` "6"."""

    def __init__(self, backbone: Any, highres: bool) -> None:
        super().__init__()
        pools = [i for i, layer in enumerate(backbone) if isinstance(layer, nn.MaxPool2d)]
        third, fourth = pools[2:4]
        backbone[third].ceil_mode = True  # 300 / 8 is no whole number
        self.scale_weight = nn.Parameter(aten.ones(512) * 20)
        self.features = nn.Sequential(*backbone[:fourth])
        extra = [
            _extra((1024, 256, _ONE), (256, 512, _HALF)),
            _extra((512, 128, _ONE), (128, 256, _HALF)),
            _extra((256, 128, _ONE), (128, 256, _INNER)),
            _extra((256, 128, _ONE), (128, 256, _INNER)),
        ]
        if highres:
            extra.append(_extra((256, 128, _ONE), (128, 256, _INNER4)))
        self.extra = nn.ModuleList(extra)
        _xavier_init(self.extra)
        # VGG's linear layers as convolutions
        dilated = {"kernel_size": 3, "padding": 6, "dilation": 6}
        linear = _extra((512, 1024, dilated), (1024, 1024, _ONE))
        pool = nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=False)
        linear = nn.Sequential(pool, *linear)
        _xavier_init(linear)
        self.extra.insert(0, nn.Sequential(*backbone[fourth:-1], linear))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.features(x)
        maps = [aten.reshape(self.scale_weight, (1, -1, 1, 1)) * F.normalize(x)]
        for block in self.extra:
            x = block(x)
            maps.append(x)
        return OrderedDict((str(i), m) for i, m in enumerate(maps))


def _vgg_extractor(backbone: VGG, highres: bool, trainable_layers: int) -> SSDFeatureExtractorVGG:
    """VGG's features, all but the last `trainable_layers` stages frozen."""
    layers: Any = backbone.features
    starts = [0, *(i for i, m in enumerate(layers) if isinstance(m, nn.MaxPool2d))][:-1]
    n = len(starts)
    if not 0 <= trainable_layers <= n:
        raise AssertionError(
            f"trainable_layers should be in the range [0, {n}]. Instead got {trainable_layers}"
        )
    frozen = len(layers) if trainable_layers == 0 else starts[n - trainable_layers]
    for layer in layers[:frozen]:
        for parameter in layer.parameters():
            parameter.requires_grad_(False)
    return SSDFeatureExtractorVGG(layers, highres)


def warn_of_size(kwargs: dict[str, Any]) -> None:
    """Warn if the caller gives a size, which the model fixes."""
    if "size" in kwargs:
        warnings.warn(
            "The size of the model is already fixed; ignoring the parameter.", stacklevel=3
        )


class SSD300_VGG16_Weights(WeightsEnum):
    COCO_V1 = coco(
        "ssd300_vgg16_coco-b556d3b4", {"box_map": 25.1}, 35641826, 34.858, 135.988, "#ssd300-vgg16"
    )  # fmt: skip
    DEFAULT = COCO_V1


@register_model()
@handle_legacy_interface(
    weights=("pretrained", SSD300_VGG16_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", VGG16_Weights.IMAGENET1K_FEATURES),
)
def ssd300_vgg16(
    *, weights: SSD300_VGG16_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: VGG16_Weights | None = VGG16_Weights.IMAGENET1K_FEATURES,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> SSD:  # fmt: skip
    """SSD on VGG-16 for images of 300×300; 91 classes unless `num_classes` says."""
    warn_of_size(kwargs)
    chosen, below, classes = with_backbone(
        SSD300_VGG16_Weights, weights, VGG16_Weights, weights_backbone, num_classes
    )
    trained = chosen is not None or below is not None
    layers = _validate_trainable_layers(trained, trainable_backbone_layers, 5, 4)
    body = _vgg_extractor(vgg16(weights=below, progress=progress), False, layers)
    anchors = DefaultBoxGenerator(
        [[2], [2, 3], [2, 3], [2, 3], [2], [2]],
        scales=[0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05],
        steps=[8, 16, 32, 64, 100, 300],
    )
    facts: dict[str, Any] = {
        # VGG was trained on images from 0 to 255, whose mean was 0
        "image_mean": [0.48235, 0.45882, 0.40784], "image_std": [1.0 / 255.0] * 3, **kwargs,
    }  # fmt: skip
    return loaded(SSD(body, anchors, (300, 300), classes, **facts), chosen, progress)


__all__ = ["SSD300_VGG16_Weights", "ssd300_vgg16"]
