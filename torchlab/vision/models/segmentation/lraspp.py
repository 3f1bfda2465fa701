"""Lite R-ASPP (arXiv:1905.02244): few channels, weighed by the map's mean.

Source: https://docs.pytorch.org/vision/0.28/models/lraspp.html
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import (
    IntermediateLayerGetter,
    _ovewrite_value_param,
    handle_legacy_interface,
)
from torchlab.vision.models._weights import known, loaded
from torchlab.vision.models.mobilenetv3 import (
    MobileNet_V3_Large_Weights,
    MobileNetV3,
    mobilenet_v3_large,
)
from torchlab.vision.models.segmentation._utils import mobilenet_stages, resized
from torchlab.vision.transforms._presets import SemanticSegmentation


class LRASPPHead(nn.Module):
    """{"low": map, "high": a smaller map} → logits (N, num_classes, H, W) of the size of "low"."""

    def __init__(
        self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int
    ) -> None:
        super().__init__()
        self.cbr = nn.Sequential(
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.BatchNorm2d(inter_channels),
            nn.ReLU(inplace=True),
        )
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.Sigmoid(),
        )
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input: dict[str, Tensor]) -> Tensor:
        low, high = input["low"], input["high"]
        weighed = resized(self.cbr(high) * self.scale(high), low.shape[-2:])
        return self.low_classifier(low) + self.high_classifier(weighed)


class LRASPP(nn.Module):
    """(N, 3, H, W) → {"out": logits (N, num_classes, H, W)}. `backbone` gives {"low", "high"}."""

    def __init__(
        self, backbone: nn.Module, low_channels: int, high_channels: int, num_classes: int,
        inter_channels: int = 128,
    ) -> None:  # fmt: skip
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input: Tensor) -> dict[str, Tensor]:
        logits = self.classifier(self.backbone(input))
        return OrderedDict(out=resized(logits, input.shape[-2:]))


class LRASPP_MobileNet_V3_Large_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = known(
        "lraspp_mobilenet_v3_large-d234d4ea", partial(SemanticSegmentation, resize_size=520),
        {"COCO-val2017-VOC-labels": {"miou": 57.9, "pixel_acc": 91.2}}, 3221538, 2.086, 12.49,
        "tree/main/references/segmentation#lraspp_mobilenet_v3_large", classes="voc",
    )  # fmt: skip
    DEFAULT = COCO_WITH_VOC_LABELS_V1


def _lraspp_mobilenetv3(backbone: MobileNetV3, num_classes: int) -> LRASPP:
    features, ends = mobilenet_stages(backbone)
    low, high = ends[-4], ends[-1]
    stages = IntermediateLayerGetter(features, {str(low): "low", str(high): "high"})
    widths = (features[low].out_channels, features[high].out_channels)
    return LRASPP(stages, *widths, num_classes)


@register_model()
@handle_legacy_interface(
    weights=("pretrained", LRASPP_MobileNet_V3_Large_Weights.COCO_WITH_VOC_LABELS_V1),
    weights_backbone=("pretrained_backbone", MobileNet_V3_Large_Weights.IMAGENET1K_V1),
)
def lraspp_mobilenet_v3_large(
    *, weights: LRASPP_MobileNet_V3_Large_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: MobileNet_V3_Large_Weights | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    **kwargs: Any,
) -> LRASPP:  # fmt: skip
    """Lite R-ASPP on MobileNetV3; 21 classes unless `num_classes` says."""
    if kwargs.pop("aux_loss", False):
        raise NotImplementedError("This model does not use auxiliary loss")
    chosen = LRASPP_MobileNet_V3_Large_Weights.verify(weights)
    weights_backbone = MobileNet_V3_Large_Weights.verify(weights_backbone)
    if chosen is not None:
        weights_backbone = None
        classes = len(chosen.meta["categories"])
        num_classes = _ovewrite_value_param("num_classes", num_classes, classes)
    body = mobilenet_v3_large(weights=weights_backbone, dilated=True)
    model = _lraspp_mobilenetv3(body, 21 if num_classes is None else num_classes)
    return loaded(model, chosen, progress)


__all__ = ["LRASPP", "LRASPP_MobileNet_V3_Large_Weights", "lraspp_mobilenet_v3_large"]
