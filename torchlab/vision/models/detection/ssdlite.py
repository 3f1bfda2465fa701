"""SSDlite (arXiv:1801.04381, arXiv:1905.02244): SSD with every filter by channels.

Source: https://docs.pytorch.org/vision/0.28/models/ssdlite.html
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import handle_legacy_interface
from torchlab.vision.models._weights import coco, loaded, with_backbone
from torchlab.vision.models.detection._utils import retrieve_out_channels
from torchlab.vision.models.detection.anchor_utils import DefaultBoxGenerator
from torchlab.vision.models.detection.backbone_utils import _validate_trainable_layers
from torchlab.vision.models.detection.ssd import SSD, SSDScoringHead, warn_of_size
from torchlab.vision.models.mobilenetv3 import MobileNet_V3_Large_Weights, mobilenet_v3_large
from torchlab.vision.ops.misc import Conv2dNormActivation

Norm = Callable[..., nn.Module]


def _prediction_block(
    in_channels: int, out_channels: int, kernel_size: int, norm_layer: Norm
) -> nn.Sequential:
    return nn.Sequential(
        Conv2dNormActivation(
            in_channels, in_channels, kernel_size=kernel_size, groups=in_channels,
            norm_layer=norm_layer, activation_layer=nn.ReLU6,
        ),
        nn.Conv2d(in_channels, out_channels, 1),
    )  # fmt: skip


def _extra_block(in_channels: int, out_channels: int, norm_layer: Norm) -> nn.Sequential:
    """Half the size: narrow by 1×1, filter each channel by 3×3, widen by 1×1."""
    narrow = out_channels // 2
    facts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
    return nn.Sequential(
        Conv2dNormActivation(in_channels, narrow, kernel_size=1, **facts),
        Conv2dNormActivation(narrow, narrow, kernel_size=3, stride=2, groups=narrow, **facts),
        Conv2dNormActivation(narrow, out_channels, kernel_size=1, **facts),
    )


def _normal_init(conv: nn.Module) -> None:
    for m in conv.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.normal_(m.weight, mean=0.0, std=0.03)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0.0)


class SSDLiteHead(nn.Module):
    """Maps → {"bbox_regression": (N, anchors, 4), "cls_logits": (N, anchors, num_classes)}."""

    def __init__(
        self, in_channels: list[int], num_anchors: list[int], num_classes: int, norm_layer: Norm
    ) -> None:
        super().__init__()
        self.classification_head = SSDLiteClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer
        )
        self.regression_head = SSDLiteRegressionHead(in_channels, num_anchors, norm_layer)

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        return {
            "bbox_regression": self.regression_head(x),
            "cls_logits": self.classification_head(x),
        }


def _columns(
    in_channels: list[int], num_anchors: list[int], columns: int, norm_layer: Norm
) -> nn.ModuleList:
    pairs = zip(in_channels, num_anchors, strict=False)
    layers = nn.ModuleList(
        [_prediction_block(width, columns * n, 3, norm_layer) for width, n in pairs]
    )
    _normal_init(layers)
    return layers


class SSDLiteClassificationHead(SSDScoringHead):
    """Maps → logits."""

    def __init__(
        self, in_channels: list[int], num_anchors: list[int], num_classes: int, norm_layer: Norm
    ) -> None:
        layers = _columns(in_channels, num_anchors, num_classes, norm_layer)
        super().__init__(layers, num_classes)


class SSDLiteRegressionHead(SSDScoringHead):
    """Maps → the codes of boxes."""

    def __init__(self, in_channels: list[int], num_anchors: list[int], norm_layer: Norm) -> None:
        super().__init__(_columns(in_channels, num_anchors, 4, norm_layer), 4)


class SSDLiteFeatureExtractorMobileNet(nn.Module):
    """The features of a MobileNet, cut within the block `c4_pos` after its first layer, and four
    blocks more: images (N, 3, H, W) → maps "0" to "5".

    AssertionError if that block has a shortcut.
    """

    def __init__(
        self, backbone: Any, c4_pos: int, norm_layer: Norm, width_mult: float = 1.0,
        min_depth: int = 16,
    ) -> None:  # fmt: skip
        super().__init__()
        cut = backbone[c4_pos]
        if cut.use_res_connect:
            raise AssertionError("backbone[c4_pos].use_res_connect should be False")
        self.features = nn.Sequential(
            nn.Sequential(*backbone[:c4_pos], cut.block[0]),
            nn.Sequential(cut.block[1:], *backbone[c4_pos + 1 :]),
        )
        extra, width = [], backbone[-1].out_channels
        for depth in (512, 256, 256, 128):
            out = max(min_depth, int(depth * width_mult))
            extra.append(_extra_block(width, out, norm_layer))
            width = out
        self.extra = nn.ModuleList(extra)
        _normal_init(self.extra)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        maps = []
        for block in (*self.features, *self.extra):
            x = block(x)
            maps.append(x)
        return OrderedDict((str(i), m) for i, m in enumerate(maps))


def _mobilenet_extractor(
    backbone: Any, trainable_layers: int, norm_layer: Norm
) -> SSDLiteFeatureExtractorMobileNet:
    """A MobileNet's features, all but the last `trainable_layers` stages frozen."""
    features = backbone.features
    strided = [i for i, block in enumerate(features) if getattr(block, "_is_cn", False)]
    starts = [0, *strided, len(features) - 1]
    n = len(starts)
    if not 0 <= trainable_layers <= n:
        raise ValueError(
            f"trainable_layers should be in the range [0, {n}], instead got {trainable_layers}"
        )
    frozen = len(features) if trainable_layers == 0 else starts[n - trainable_layers]
    for block in features[:frozen]:
        for parameter in block.parameters():
            parameter.requires_grad_(False)
    return SSDLiteFeatureExtractorMobileNet(features, starts[-2], norm_layer)


class SSDLite320_MobileNet_V3_Large_Weights(WeightsEnum):
    COCO_V1 = coco(
        "ssdlite320_mobilenet_v3_large_coco-a79551df", {"box_map": 21.3}, 3440060, 0.583, 13.418,
        "#ssdlite320-mobilenetv3-large",
    )  # fmt: skip
    DEFAULT = COCO_V1


@register_model()
@handle_legacy_interface(
    weights=("pretrained", SSDLite320_MobileNet_V3_Large_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", MobileNet_V3_Large_Weights.IMAGENET1K_V1),
)
def ssdlite320_mobilenet_v3_large(
    *, weights: SSDLite320_MobileNet_V3_Large_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: MobileNet_V3_Large_Weights | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None, norm_layer: Norm | None = None, **kwargs: Any,
) -> SSD:  # fmt: skip
    """SSDlite on MobileNetV3 for images of 320×320; 91 classes unless `num_classes` says."""
    warn_of_size(kwargs)
    chosen, below, classes = with_backbone(
        SSDLite320_MobileNet_V3_Large_Weights, weights, MobileNet_V3_Large_Weights,
        weights_backbone, num_classes,
    )  # fmt: skip
    trained = chosen is not None or below is not None
    layers = _validate_trainable_layers(trained, trainable_backbone_layers, 6, 6)
    if norm_layer is None:
        norm_layer = partial(nn.BatchNorm2d, eps=0.001, momentum=0.03)
    body = mobilenet_v3_large(
        weights=below, progress=progress, norm_layer=norm_layer, reduced_tail=below is None
    )
    if below is None:
        _normal_init(body)
    backbone = _mobilenet_extractor(body, layers, norm_layer)
    size = (320, 320)
    anchors = DefaultBoxGenerator([[2, 3] for _ in range(6)], min_ratio=0.2, max_ratio=0.95)
    widths = retrieve_out_channels(backbone, size)
    head = SSDLiteHead(widths, anchors.num_anchors_per_location(), classes, norm_layer)
    facts: dict[str, Any] = {
        "score_thresh": 0.001, "nms_thresh": 0.55, "detections_per_img": 300,
        "topk_candidates": 300, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, **kwargs,
    }  # fmt: skip
    model = SSD(backbone, anchors, size, classes, head=head, **facts)
    return loaded(model, chosen, progress)


__all__ = ["SSDLite320_MobileNet_V3_Large_Weights", "ssdlite320_mobilenet_v3_large"]
