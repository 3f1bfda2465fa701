"""Mask R-CNN (arXiv:1703.06870): Faster R-CNN with a mask for each detection.

Source: https://docs.pytorch.org/vision/0.28/models/mask_rcnn.html
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from torchlab import nn
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import handle_legacy_interface
from torchlab.vision.models._weights import NEW_RECIPE, coco, loaded, with_backbone
from torchlab.vision.models.detection._utils import overwrite_eps
from torchlab.vision.models.detection.faster_rcnn import (
    FasterRCNN,
    _resnet50_pyramid,
    _second_version,
)
from torchlab.vision.models.resnet import ResNet50_Weights
from torchlab.vision.ops.misc import Conv2dNormActivation
from torchlab.vision.ops.poolers import MultiScaleRoIAlign


class MaskRCNN(FasterRCNN):
    """FasterRCNN with "masks" (N, 1, H, W), probabilities, in each image's detections, and
    "loss_mask" in training, where targets have "masks" (N, H, W).

    Further arguments are those of FasterRCNN. ValueError or TypeError for parts that do not fit.
    """

    def __init__(
        self, backbone: Any, num_classes: int | None = None, *args: Any, mask_roi_pool: Any = None,
        mask_head: nn.Module | None = None, mask_predictor: nn.Module | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not isinstance(mask_roi_pool, (MultiScaleRoIAlign, type(None))):
            raise TypeError(
                "mask_roi_pool should be of type MultiScaleRoIAlign or None instead of"
                f" {type(mask_roi_pool)}"
            )
        if num_classes is not None and mask_predictor is not None:
            raise ValueError("num_classes should be None when mask_predictor is specified")
        if num_classes is None and mask_predictor is None:
            raise ValueError("num_classes should not be None when mask_predictor is not specified")
        if mask_roi_pool is None:
            mask_roi_pool = MultiScaleRoIAlign(["0", "1", "2", "3"], 14, 2)
        # built before the other heads: the same seed gives torchvision's weights
        if mask_head is None:
            mask_head = MaskRCNNHeads(backbone.out_channels, (256,) * 4, 1)
        if mask_predictor is None:
            mask_predictor = MaskRCNNPredictor(256, 256, num_classes or 0)
        super().__init__(backbone, num_classes, *args, **kwargs)
        heads: Any = self.roi_heads
        heads.mask_roi_pool = mask_roi_pool
        heads.mask_head = mask_head
        heads.mask_predictor = mask_predictor


class MaskRCNNHeads(nn.Sequential):
    """3×3 convolutions to the widths `layers`: (N, in_channels, H, W) → (N, layers[-1], H, W)."""

    _version = 2

    def __init__(
        self, in_channels: int, layers: Sequence[int], dilation: int,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:  # fmt: skip
        blocks: list[nn.Module] = []
        for width in layers:
            blocks.append(
                Conv2dNormActivation(
                    in_channels, width, kernel_size=3, stride=1, padding=dilation,
                    dilation=dilation, norm_layer=norm_layer,
                )
            )  # fmt: skip
            in_channels = width
        super().__init__(*blocks)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        # before version 2 the convolutions were mask_fcn1, mask_fcn2, …
        if (local_metadata.get("version") or 0) < 2:
            for i in range(len(self)):
                for part in ("weight", "bias"):
                    old = f"{prefix}mask_fcn{i + 1}.{part}"
                    if old in state_dict:
                        state_dict[f"{prefix}{i}.0.{part}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class MaskRCNNPredictor(nn.Sequential):
    """(N, in_channels, H, W) → logits (N, num_classes, 2H, 2W)."""

    def __init__(self, in_channels: int, dim_reduced: int, num_classes: int) -> None:
        super().__init__(
            OrderedDict(
                [
                    ("conv5_mask", nn.ConvTranspose2d(in_channels, dim_reduced, 2, 2, 0)),
                    ("relu", nn.ReLU(inplace=True)),
                    ("mask_fcn_logits", nn.Conv2d(dim_reduced, num_classes, 1, 1, 0)),
                ]
            )
        )
        for name, parameter in self.named_parameters():
            if "weight" in name:
                nn.init.kaiming_normal_(parameter, mode="fan_out", nonlinearity="relu")


class MaskRCNN_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = coco(
        "maskrcnn_resnet50_fpn_coco-bf2d0c1e", {"box_map": 37.9, "mask_map": 34.6}, 44401393,
        134.38, 169.84, "#mask-r-cnn",
    )  # fmt: skip
    DEFAULT = COCO_V1


class MaskRCNN_ResNet50_FPN_V2_Weights(WeightsEnum):
    COCO_V1 = coco(
        "maskrcnn_resnet50_fpn_v2_coco-73cbd019", {"box_map": 47.4, "mask_map": 41.8}, 46359409,
        333.577, 177.219, "pull/5773", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = COCO_V1


@register_model()
@handle_legacy_interface(
    weights=("pretrained", MaskRCNN_ResNet50_FPN_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", ResNet50_Weights.IMAGENET1K_V1),
)
def maskrcnn_resnet50_fpn(
    *, weights: MaskRCNN_ResNet50_FPN_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> MaskRCNN:  # fmt: skip
    """Mask R-CNN on a pyramid of ResNet-50; 91 classes unless `num_classes` says."""
    chosen, below, classes = with_backbone(
        MaskRCNN_ResNet50_FPN_Weights, weights, ResNet50_Weights, weights_backbone, num_classes
    )
    backbone = _resnet50_pyramid(chosen, below, progress, trainable_backbone_layers, False)
    model = loaded(MaskRCNN(backbone, classes, **kwargs), chosen, progress)
    if chosen is not None:
        overwrite_eps(model, 0.0)
    return model


@register_model()
@handle_legacy_interface(
    weights=("pretrained", MaskRCNN_ResNet50_FPN_V2_Weights.COCO_V1),
    weights_backbone=("pretrained_backbone", ResNet50_Weights.IMAGENET1K_V1),
)
def maskrcnn_resnet50_fpn_v2(
    *, weights: MaskRCNN_ResNet50_FPN_V2_Weights | None = None, progress: bool = True,
    num_classes: int | None = None,
    weights_backbone: ResNet50_Weights | None = None,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> MaskRCNN:  # fmt: skip
    """Mask R-CNN on a pyramid of ResNet-50 with the heads of arXiv:2111.11429."""
    chosen, below, classes = with_backbone(
        MaskRCNN_ResNet50_FPN_V2_Weights, weights, ResNet50_Weights, weights_backbone, num_classes
    )
    backbone = _resnet50_pyramid(chosen, below, progress, trainable_backbone_layers, True)
    heads = _second_version(backbone)
    heads["mask_head"] = MaskRCNNHeads(backbone.out_channels, [256] * 4, 1, nn.BatchNorm2d)
    return loaded(MaskRCNN(backbone, classes, **heads, **kwargs), chosen, progress)


__all__ = [
    "MaskRCNN", "MaskRCNN_ResNet50_FPN_V2_Weights", "MaskRCNN_ResNet50_FPN_Weights",
    "maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2",
]  # fmt: skip
