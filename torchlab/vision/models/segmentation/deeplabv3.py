"""DeepLab v3 (arXiv:1706.05587): convolutions dilated by several rates, side by side.

Source: https://docs.pytorch.org/vision/0.28/models/deeplabv3.html
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._utils import IntermediateLayerGetter
from torchlab.vision.models._weights import known
from torchlab.vision.models.mobilenetv3 import (
    MobileNet_V3_Large_Weights,
    MobileNetV3,
    mobilenet_v3_large,
)
from torchlab.vision.models.resnet import (
    ResNet,
    ResNet50_Weights,
    ResNet101_Weights,
    resnet50,
    resnet101,
)
from torchlab.vision.models.segmentation._utils import (
    DILATED,
    _SimpleSegmentationModel,
    builder,
    mobilenet_stages,
    resized,
    resnet_stages,
)
from torchlab.vision.models.segmentation.fcn import FCNHead
from torchlab.vision.transforms._presets import SemanticSegmentation


class DeepLabV3(_SimpleSegmentationModel):
    """Classes of pixels from maps that dilated convolutions have looked at."""


class ASPPConv(nn.Sequential):
    """A dilated 3×3 convolution, normalized, rectified."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(
            nn.Conv2d(
                in_channels, out_channels, 3, padding=dilation, dilation=dilation, bias=False
            ),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
        )


class ASPPPooling(nn.Sequential):
    """The mean of the map through a 1×1 convolution, at every pixel."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(in_channels, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return resized(super().forward(x), x.shape[-2:])


class ASPP(nn.Module):
    """A pyramid of rates: 1×1, 3×3 dilated by each of `atrous_rates`, and the mean; together
    narrowed to `out_channels`."""

    def __init__(
        self, in_channels: int, atrous_rates: Sequence[int], out_channels: int = 256
    ) -> None:
        super().__init__()
        one = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
        )
        dilated = [ASPPConv(in_channels, out_channels, rate) for rate in atrous_rates]
        self.convs = nn.ModuleList([one, *dilated, ASPPPooling(in_channels, out_channels)])
        self.project = nn.Sequential(
            nn.Conv2d(len(self.convs) * out_channels, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
            nn.Dropout(0.5),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.project(aten.cat([conv(x) for conv in self.convs], 1))


class DeepLabHead(nn.Sequential):
    """(N, in_channels, H, W) → (N, num_classes, H, W)."""

    def __init__(
        self, in_channels: int, num_classes: int, atrous_rates: Sequence[int] = (12, 24, 36)
    ) -> None:
        super().__init__(
            ASPP(in_channels, atrous_rates),
            nn.Conv2d(256, 256, 3, padding=1, bias=False),
            nn.BatchNorm2d(256),
            nn.ReLU(),
            nn.Conv2d(256, num_classes, 1),
        )


class DeepLabV3_ResNet50_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = known(
        "deeplabv3_resnet50_coco-cd0a2569", partial(SemanticSegmentation, resize_size=520),
        {"COCO-val2017-VOC-labels": {"miou": 66.4, "pixel_acc": 92.4}}, 42004074, 178.722, 160.515,
        "tree/main/references/segmentation#deeplabv3_resnet50", classes="voc",
    )  # fmt: skip
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class DeepLabV3_ResNet101_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = known(
        "deeplabv3_resnet101_coco-586e9e4e", partial(SemanticSegmentation, resize_size=520),
        {"COCO-val2017-VOC-labels": {"miou": 67.4, "pixel_acc": 92.4}}, 60996202, 258.743, 233.217,
        "tree/main/references/segmentation#fcn_resnet101", classes="voc",
    )  # fmt: skip
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class DeepLabV3_MobileNet_V3_Large_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = known(
        "deeplabv3_mobilenet_v3_large-fc3c493d", partial(SemanticSegmentation, resize_size=520),
        {"COCO-val2017-VOC-labels": {"miou": 60.3, "pixel_acc": 91.2}}, 11029328, 10.452, 42.301,
        "tree/main/references/segmentation#deeplabv3_mobilenet_v3_large", classes="voc",
    )  # fmt: skip
    DEFAULT = COCO_WITH_VOC_LABELS_V1


def _deeplabv3_resnet(backbone: ResNet, num_classes: int, aux: bool | None) -> DeepLabV3:
    stages = resnet_stages(backbone, aux)
    aux_classifier = FCNHead(1024, num_classes) if aux else None
    return DeepLabV3(stages, DeepLabHead(2048, num_classes), aux_classifier)


def _deeplabv3_mobilenetv3(backbone: MobileNetV3, num_classes: int, aux: bool | None) -> DeepLabV3:
    features, ends = mobilenet_stages(backbone)
    out, low = ends[-1], ends[-4]
    named = {str(out): "out"}
    if aux:
        named[str(low)] = "aux"
    stages = IntermediateLayerGetter(features, named)
    aux_classifier = FCNHead(features[low].out_channels, num_classes) if aux else None
    head = DeepLabHead(features[out].out_channels, num_classes)
    return DeepLabV3(stages, head, aux_classifier)


deeplabv3_resnet50 = builder(
    "deeplabv3_resnet50", _deeplabv3_resnet, DeepLabV3_ResNet50_Weights, resnet50,
    ResNet50_Weights, "DeepLab v3 on ResNet-50; 21 classes unless `num_classes` says.", **DILATED,
)  # fmt: skip
deeplabv3_resnet101 = builder(
    "deeplabv3_resnet101", _deeplabv3_resnet, DeepLabV3_ResNet101_Weights, resnet101,
    ResNet101_Weights, "DeepLab v3 on ResNet-101; 21 classes unless `num_classes` says.",
    **DILATED,
)  # fmt: skip
deeplabv3_mobilenet_v3_large = builder(
    "deeplabv3_mobilenet_v3_large", _deeplabv3_mobilenetv3,
    DeepLabV3_MobileNet_V3_Large_Weights, mobilenet_v3_large, MobileNet_V3_Large_Weights,
    "DeepLab v3 on MobileNetV3; 21 classes unless `num_classes` says.", dilated=True,
)  # fmt: skip

__all__ = [
    "DeepLabV3", "DeepLabV3_MobileNet_V3_Large_Weights", "DeepLabV3_ResNet50_Weights",
    "DeepLabV3_ResNet101_Weights", "deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50",
    "deeplabv3_resnet101",
]  # fmt: skip
