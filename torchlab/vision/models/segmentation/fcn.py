"""Fully convolutional networks (arXiv:1411.4038) on dilated ResNets.

Source: https://docs.pytorch.org/vision/0.28/models/fcn.html
"""

from __future__ import annotations

from functools import partial

from torchlab import nn
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import known
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
    resnet_stages,
)
from torchlab.vision.transforms._presets import SemanticSegmentation


class FCN(_SimpleSegmentationModel):
    """A 3×3 convolution and one logit per class and pixel, on the backbone's map."""


class FCNHead(nn.Sequential):
    """(N, in_channels, H, W) → (N, channels, H, W)."""

    def __init__(self, in_channels: int, channels: int) -> None:
        narrow = in_channels // 4
        super().__init__(
            nn.Conv2d(in_channels, narrow, 3, padding=1, bias=False),
            nn.BatchNorm2d(narrow),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(narrow, channels, 1),
        )


class FCN_ResNet50_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = known(
        "fcn_resnet50_coco-1167a1af", partial(SemanticSegmentation, resize_size=520),
        {"COCO-val2017-VOC-labels": {"miou": 60.5, "pixel_acc": 91.4}}, 35322218, 152.717, 135.009,
        "tree/main/references/segmentation#fcn_resnet50", classes="voc",
    )  # fmt: skip
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class FCN_ResNet101_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = known(
        "fcn_resnet101_coco-7ecb50ca", partial(SemanticSegmentation, resize_size=520),
        {"COCO-val2017-VOC-labels": {"miou": 63.7, "pixel_acc": 91.9}}, 54314346, 232.738, 207.711,
        "tree/main/references/segmentation#deeplabv3_resnet101", classes="voc",
    )  # fmt: skip
    DEFAULT = COCO_WITH_VOC_LABELS_V1


def _fcn_resnet(backbone: ResNet, num_classes: int, aux: bool | None) -> FCN:
    stages = resnet_stages(backbone, aux)
    aux_classifier = FCNHead(1024, num_classes) if aux else None
    return FCN(stages, FCNHead(2048, num_classes), aux_classifier)


fcn_resnet50 = builder(
    "fcn_resnet50", _fcn_resnet, FCN_ResNet50_Weights, resnet50, ResNet50_Weights,
    "FCN on ResNet-50; 21 classes unless `num_classes` says.", **DILATED,
)  # fmt: skip
fcn_resnet101 = builder(
    "fcn_resnet101", _fcn_resnet, FCN_ResNet101_Weights, resnet101, ResNet101_Weights,
    "FCN on ResNet-101; 21 classes unless `num_classes` says.", **DILATED,
)  # fmt: skip

__all__ = [
    "FCN", "FCN_ResNet50_Weights", "FCN_ResNet101_Weights", "fcn_resnet50", "fcn_resnet101",
]  # fmt: skip
