"""Faster R-CNN (arXiv:1506.01497) on feature pyramids.

Source: https://docs.pytorch.org/vision/0.28/models/faster_rcnn.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import handle_legacy_interface
from torchlab.vision.models._weights import NEW_RECIPE, coco, loaded, with_backbone
from torchlab.vision.models.detection._utils import overwrite_eps
from torchlab.vision.models.detection.anchor_utils import AnchorGenerator
from torchlab.vision.models.detection.backbone_utils import (
    _mobilenet_extractor,
    _resnet_fpn_extractor,
    _validate_trainable_layers,
)
from torchlab.vision.models.detection.generalized_rcnn import GeneralizedRCNN
from torchlab.vision.models.detection.roi_heads import RoIHeads
from torchlab.vision.models.detection.rpn import RegionProposalNetwork, RPNHead
from torchlab.vision.models.detection.transform import GeneralizedRCNNTransform
from torchlab.vision.models.mobilenetv3 import MobileNet_V3_Large_Weights, mobilenet_v3_large
from torchlab.vision.models.resnet import ResNet50_Weights, resnet50
from torchlab.vision.ops.misc import Conv2dNormActivation, FrozenBatchNorm2d
from torchlab.vision.ops.poolers import MultiScaleRoIAlign


def _default_anchorgen() -> AnchorGenerator:
    return AnchorGenerator(((32,), (64,), (128,), (256,), (512,)), ((0.5, 1.0, 2.0),) * 5)


class FasterRCNN(GeneralizedRCNN):
    """The parts built for a `backbone` that has `out_channels`, each of them replaceable.

    Give either `num_classes`, the background included, or `box_predictor`. ValueError or TypeError
    for parts that do not fit together.
    """

    def __init__(
        self, backbone: Any, num_classes: int | None = None, min_size: Any = 800,
        max_size: int = 1333, image_mean: list[float] | None = None,
        image_std: list[float] | None = None, rpn_anchor_generator: Any = None,
        rpn_head: nn.Module | None = None, rpn_pre_nms_top_n_train: int = 2000,
        rpn_pre_nms_top_n_test: int = 1000, rpn_post_nms_top_n_train: int = 2000,
        rpn_post_nms_top_n_test: int = 1000, rpn_nms_thresh: float = 0.7,
        rpn_fg_iou_thresh: float = 0.7, rpn_bg_iou_thresh: float = 0.3,
        rpn_batch_size_per_image: int = 256, rpn_positive_fraction: float = 0.5,
        rpn_score_thresh: float = 0.0, box_roi_pool: Any = None,
        box_head: nn.Module | None = None, box_predictor: nn.Module | None = None,
        box_score_thresh: float = 0.05, box_nms_thresh: float = 0.5,
        box_detections_per_img: int = 100, box_fg_iou_thresh: float = 0.5,
        box_bg_iou_thresh: float = 0.5, box_batch_size_per_image: int = 512,
        box_positive_fraction: float = 0.25,
        bbox_reg_weights: tuple[float, float, float, float] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not hasattr(backbone, "out_channels"):
            raise ValueError(
                "backbone should contain an attribute out_channels specifying the number of output"
                " channels (assumed to be the same for all the levels)"
            )
        if not isinstance(rpn_anchor_generator, (AnchorGenerator, type(None))):
            raise TypeError(
                "rpn_anchor_generator should be of type AnchorGenerator or None instead of"
                f" {type(rpn_anchor_generator)}"
            )
        if not isinstance(box_roi_pool, (MultiScaleRoIAlign, type(None))):
            raise TypeError(
                "box_roi_pool should be of type MultiScaleRoIAlign or None instead of"
                f" {type(box_roi_pool)}"
            )
        if num_classes is not None and box_predictor is not None:
            raise ValueError("num_classes should be None when box_predictor is specified")
        if num_classes is None and box_predictor is None:
            raise ValueError("num_classes should not be None when box_predictor is not specified")
        width = backbone.out_channels
        anchors = rpn_anchor_generator or _default_anchorgen()
        head = rpn_head or RPNHead(width, anchors.num_anchors_per_location()[0])
        rpn = RegionProposalNetwork(
            anchors, head, rpn_fg_iou_thresh, rpn_bg_iou_thresh, rpn_batch_size_per_image,
            rpn_positive_fraction,
            {"training": rpn_pre_nms_top_n_train, "testing": rpn_pre_nms_top_n_test},
            {"training": rpn_post_nms_top_n_train, "testing": rpn_post_nms_top_n_test},
            rpn_nms_thresh, rpn_score_thresh,
        )  # fmt: skip
        if box_roi_pool is None:
            box_roi_pool = MultiScaleRoIAlign(["0", "1", "2", "3"], 7, 2)
        if box_head is None:
            box_head = TwoMLPHead(width * box_roi_pool.output_size[0] ** 2, 1024)
        if box_predictor is None:
            box_predictor = FastRCNNPredictor(1024, num_classes or 0)
        roi_heads = RoIHeads(
            box_roi_pool, box_head, box_predictor, box_fg_iou_thresh, box_bg_iou_thresh,
            box_batch_size_per_image, box_positive_fraction, bbox_reg_weights, box_score_thresh,
            box_nms_thresh, box_detections_per_img,
        )  # fmt: skip
        transform = GeneralizedRCNNTransform(
            min_size, max_size, image_mean or [0.485, 0.456, 0.406],
            image_std or [0.229, 0.224, 0.225], **kwargs,
        )  # fmt: skip
        super().__init__(backbone, rpn, roi_heads, transform)


class TwoMLPHead(nn.Module):
    """(N, C, H, W) → (N, representation_size) by two linear layers."""

    def __init__(self, in_channels: int, representation_size: int) -> None:
        super().__init__()
        self.fc6 = nn.Linear(in_channels, representation_size)
        self.fc7 = nn.Linear(representation_size, representation_size)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.fc7(F.relu(self.fc6(aten.flatten(x, 1)))))


class FastRCNNConvFCHead(nn.Sequential):
    """input_size (C, H, W): 3×3 convolutions to the widths `conv_layers`, then linear layers to
    the widths `fc_layers`."""

    def __init__(
        self, input_size: tuple[int, int, int], conv_layers: list[int], fc_layers: list[int],
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:  # fmt: skip
        channels, h, w = input_size
        layers: list[nn.Module] = []
        for width in conv_layers:
            layers.append(Conv2dNormActivation(channels, width, norm_layer=norm_layer))
            channels = width
        layers.append(nn.Flatten())
        channels *= h * w
        for width in fc_layers:
            layers += [nn.Linear(channels, width), nn.ReLU(inplace=True)]
            channels = width
        super().__init__(*layers)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)


class FastRCNNPredictor(nn.Module):
    """(N, in_channels) → logits (N, num_classes) and codes (N, 4 · num_classes)."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.cls_score = nn.Linear(in_channels, num_classes)
        self.bbox_pred = nn.Linear(in_channels, num_classes * 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if x.ndim == 4 and tuple(x.shape[2:]) != (1, 1):
            raise AssertionError(
                "x has the wrong shape, expecting the last two dimensions to be [1,1] instead of"
                f" {list(x.shape[2:])}"
            )
        x = aten.flatten(x, 1)
        return self.cls_score(x), self.bbox_pred(x)


class FasterRCNN_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = coco(
        "fasterrcnn_resnet50_fpn_coco-258fb6c6", {"box_map": 37.0}, 41755286, 134.38, 159.743,
        "#faster-r-cnn-resnet-50-fpn",
    )  # fmt: skip
    DEFAULT = COCO_V1


class FasterRCNN_ResNet50_FPN_V2_Weights(WeightsEnum):
    COCO_V1 = coco(
        "fasterrcnn_resnet50_fpn_v2_coco-dd69338a", {"box_map": 46.7}, 43712278, 280.371, 167.104,
        "pull/5763", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = COCO_V1


class FasterRCNN_MobileNet_V3_Large_FPN_Weights(WeightsEnum):
    COCO_V1 = coco(
        "fasterrcnn_mobilenet_v3_large_fpn-fb6a3cc7", {"box_map": 32.8}, 19386354, 4.494, 74.239,
        "#faster-r-cnn-mobilenetv3-large-fpn",
    )  # fmt: skip
    DEFAULT = COCO_V1


class FasterRCNN_MobileNet_V3_Large_320_FPN_Weights(WeightsEnum):
    COCO_V1 = coco(
        "fasterrcnn_mobilenet_v3_large_320_fpn-907ea3f9", {"box_map": 22.8}, 19386354, 0.719,
        74.239, "#faster-r-cnn-mobilenetv3-large-320-fpn",
    )  # fmt: skip
    DEFAULT = COCO_V1


def _resnet50_pyramid(
    weights: Any, weights_backbone: Any, progress: bool, trainable: int | None, v2: bool
) -> Any:
    """ResNet-50 with a pyramid: its first layers frozen if anything of it was trained before."""
    trained = weights is not None or weights_backbone is not None
    layers = _validate_trainable_layers(trained, trainable, 5, 3)
    norm = FrozenBatchNorm2d if trained and not v2 else nn.BatchNorm2d
    body = resnet50(weights=weights_backbone, progress=progress, norm_layer=norm)
    return _resnet_fpn_extractor(body, layers, norm_layer=nn.BatchNorm2d if v2 else None)


def _second_version(backbone: Any) -> dict[str, Any]:
    """The heads of the second version: deeper, normalized (arXiv:2111.11429)."""
    width = backbone.out_channels
    anchors = _default_anchorgen()
    return {
        "rpn_anchor_generator": anchors,
        "rpn_head": RPNHead(width, anchors.num_anchors_per_location()[0], conv_depth=2),
        "box_head": FastRCNNConvFCHead((width, 7, 7), [256] * 4, [1024], nn.BatchNorm2d),
    }


@register_model()
@handle_legacy_interface(
    weights=("pretrained", FasterRCNN_ResNet50_FPN_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", ResNet50_Weights.IMAGENET1K_V1),
)
def fasterrcnn_resnet50_fpn(
    *, weights: FasterRCNN_ResNet50_FPN_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> FasterRCNN:  # fmt: skip
    """Faster R-CNN on a pyramid of ResNet-50; 91 classes unless `num_classes` says."""
    chosen, below, classes = with_backbone(
        FasterRCNN_ResNet50_FPN_Weights, weights, ResNet50_Weights, weights_backbone, num_classes
    )
    backbone = _resnet50_pyramid(chosen, below, progress, trainable_backbone_layers, False)
    model = loaded(FasterRCNN(backbone, classes, **kwargs), chosen, progress)
    if chosen is not None:
        overwrite_eps(model, 0.0)
    return model


@register_model()
@handle_legacy_interface(
    weights=("pretrained", FasterRCNN_ResNet50_FPN_V2_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", ResNet50_Weights.IMAGENET1K_V1),
)
def fasterrcnn_resnet50_fpn_v2(
    *, weights: FasterRCNN_ResNet50_FPN_V2_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: ResNet50_Weights | None = None,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> FasterRCNN:  # fmt: skip
    """Faster R-CNN on a pyramid of ResNet-50 with the heads of arXiv:2111.11429."""
    chosen, below, classes = with_backbone(
        FasterRCNN_ResNet50_FPN_V2_Weights, weights, ResNet50_Weights, weights_backbone, num_classes
    )
    backbone = _resnet50_pyramid(chosen, below, progress, trainable_backbone_layers, True)
    heads = _second_version(backbone)
    return loaded(FasterRCNN(backbone, classes, **heads, **kwargs), chosen, progress)


def _mobilenet(
    kind: type[WeightsEnum], weights: Any, weights_backbone: Any, progress: bool,
    num_classes: int | None, trainable: int | None, facts: dict[str, Any],
) -> FasterRCNN:  # fmt: skip
    chosen, below, classes = with_backbone(
        kind, weights, MobileNet_V3_Large_Weights, weights_backbone, num_classes
    )
    trained = chosen is not None or below is not None
    layers = _validate_trainable_layers(trained, trainable, 6, 3)
    norm = FrozenBatchNorm2d if trained else nn.BatchNorm2d
    body = mobilenet_v3_large(weights=below, progress=progress, norm_layer=norm)
    backbone = _mobilenet_extractor(body, True, layers)
    anchors = AnchorGenerator(((32, 64, 128, 256, 512),) * 3, ((0.5, 1.0, 2.0),) * 3)
    model = FasterRCNN(backbone, classes, rpn_anchor_generator=anchors, **facts)
    return loaded(model, chosen, progress)


@register_model()
@handle_legacy_interface(
    weights=("pretrained", FasterRCNN_MobileNet_V3_Large_320_FPN_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", MobileNet_V3_Large_Weights.IMAGENET1K_V1),
)
def fasterrcnn_mobilenet_v3_large_320_fpn(
    *, weights: FasterRCNN_MobileNet_V3_Large_320_FPN_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: MobileNet_V3_Large_Weights | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> FasterRCNN:  # fmt: skip
    """Faster R-CNN on a pyramid of MobileNetV3 for small images and few proposals."""
    facts = {
        "min_size": 320, "max_size": 640, "rpn_pre_nms_top_n_test": 150,
        "rpn_post_nms_top_n_test": 150, "rpn_score_thresh": 0.05, **kwargs,
    }  # fmt: skip
    return _mobilenet(
        FasterRCNN_MobileNet_V3_Large_320_FPN_Weights, weights, weights_backbone, progress,
        num_classes, trainable_backbone_layers, facts,
    )  # fmt: skip


@register_model()
@handle_legacy_interface(
    weights=("pretrained", FasterRCNN_MobileNet_V3_Large_FPN_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", MobileNet_V3_Large_Weights.IMAGENET1K_V1),
)
def fasterrcnn_mobilenet_v3_large_fpn(
    *, weights: FasterRCNN_MobileNet_V3_Large_FPN_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: MobileNet_V3_Large_Weights | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> FasterRCNN:  # fmt: skip
    """Faster R-CNN on a pyramid of MobileNetV3."""
    return _mobilenet(
        FasterRCNN_MobileNet_V3_Large_FPN_Weights, weights, weights_backbone, progress,
        num_classes, trainable_backbone_layers, {"rpn_score_thresh": 0.05, **kwargs},
    )  # fmt: skip


__all__ = [
    "FasterRCNN", "FasterRCNN_MobileNet_V3_Large_320_FPN_Weights",
    "FasterRCNN_MobileNet_V3_Large_FPN_Weights", "FasterRCNN_ResNet50_FPN_V2_Weights",
    "FasterRCNN_ResNet50_FPN_Weights", "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn", "fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_v2",
]  # fmt: skip
