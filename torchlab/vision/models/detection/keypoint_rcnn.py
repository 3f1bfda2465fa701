"""Keypoint R-CNN (arXiv:1703.06870): Faster R-CNN with keypoints of each person.

Source: https://docs.pytorch.org/vision/0.28/models/keypoint_rcnn.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab import nn
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._meta import names
from torchlab.vision.models._utils import _ovewrite_value_param, handle_legacy_interface
from torchlab.vision.models._weights import coco, loaded, with_backbone
from torchlab.vision.models.detection._utils import overwrite_eps
from torchlab.vision.models.detection.faster_rcnn import FasterRCNN, _resnet50_pyramid
from torchlab.vision.models.resnet import ResNet50_Weights
from torchlab.vision.ops.poolers import MultiScaleRoIAlign


class KeypointRCNN(FasterRCNN):
    """FasterRCNN with "keypoints" (N, K, 3) of (x, y, 1) and "keypoints_scores" (N, K) in each
    image's detections, and "loss_keypoint" in training, where targets have "keypoints" (N, K, 3)
    of (x, y, visible).

    Further arguments are those of FasterRCNN. ValueError or TypeError for parts that do not fit.
    """

    def __init__(
        self, backbone: Any, num_classes: int | None = None, min_size: Any = None,
        max_size: int = 1333, *args: Any, keypoint_roi_pool: Any = None,
        keypoint_head: nn.Module | None = None, keypoint_predictor: nn.Module | None = None,
        num_keypoints: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not isinstance(keypoint_roi_pool, (MultiScaleRoIAlign, type(None))):
            raise TypeError(
                "keypoint_roi_pool should be of type MultiScaleRoIAlign or None instead of"
                f" {type(keypoint_roi_pool)}"
            )
        if min_size is None:
            min_size = (640, 672, 704, 736, 768, 800)
        if num_keypoints is not None and keypoint_predictor is not None:
            raise ValueError("num_keypoints should be None when keypoint_predictor is specified")
        if num_keypoints is None:
            num_keypoints = 17
        if keypoint_roi_pool is None:
            keypoint_roi_pool = MultiScaleRoIAlign(["0", "1", "2", "3"], 14, 2)
        # built before the other heads: the same seed gives torchvision's weights
        if keypoint_head is None:
            keypoint_head = KeypointRCNNHeads(backbone.out_channels, (512,) * 8)
        if keypoint_predictor is None:
            keypoint_predictor = KeypointRCNNPredictor(512, num_keypoints)
        super().__init__(backbone, num_classes, min_size, max_size, *args, **kwargs)
        heads: Any = self.roi_heads
        heads.keypoint_roi_pool = keypoint_roi_pool
        heads.keypoint_head = keypoint_head
        heads.keypoint_predictor = keypoint_predictor


class KeypointRCNNHeads(nn.Sequential):
    """3×3 convolutions to the widths `layers`: (N, in_channels, H, W) → (N, layers[-1], H, W)."""

    def __init__(self, in_channels: int, layers: Sequence[int]) -> None:
        blocks: list[nn.Module] = []
        for width in layers:
            blocks += [nn.Conv2d(in_channels, width, 3, stride=1, padding=1), nn.ReLU(inplace=True)]
            in_channels = width
        super().__init__(*blocks)
        for m in self:
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                nn.init.constant_(m.bias, 0)


class KeypointRCNNPredictor(nn.Module):
    """(N, in_channels, H, W) → heat maps (N, num_keypoints, 4H, 4W)."""

    def __init__(self, in_channels: int, num_keypoints: int) -> None:
        super().__init__()
        self.kps_score_lowres = nn.ConvTranspose2d(
            in_channels, num_keypoints, 4, stride=2, padding=1
        )
        nn.init.kaiming_normal_(self.kps_score_lowres.weight, mode="fan_out", nonlinearity="relu")
        nn.init.constant_(self.kps_score_lowres.bias, 0)
        self.up_scale = 2
        self.out_channels = num_keypoints

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(
            self.kps_score_lowres(x), scale_factor=float(self.up_scale), mode="bilinear",
            align_corners=False, recompute_scale_factor=False,
        )  # fmt: skip


class KeypointRCNN_ResNet50_FPN_Weights(WeightsEnum):
    COCO_LEGACY = coco(
        "keypointrcnn_resnet50_fpn_coco-9f466800", {"box_map": 50.6, "kp_map": 61.1}, 59137258,
        133.924, 226.054, "issues/1606", classes="coco_person",
        keypoint_names=names("coco_person_keypoints"),
    )  # fmt: skip
    COCO_V1 = coco(
        "keypointrcnn_resnet50_fpn_coco-fc266e95", {"box_map": 54.6, "kp_map": 65.0}, 59137258,
        137.42, 226.054, "#keypoint-r-cnn", classes="coco_person",
        keypoint_names=names("coco_person_keypoints"),
    )  # fmt: skip
    DEFAULT = COCO_V1


def _legacy(kwargs: dict[str, Any]) -> KeypointRCNN_ResNet50_FPN_Weights:
    kinds = KeypointRCNN_ResNet50_FPN_Weights
    return kinds.COCO_LEGACY if kwargs["pretrained"] == "legacy" else kinds.COCO_V1


@register_model()
@handle_legacy_interface(
    weights=("pretrained", _legacy),
    weights_backbone=("pretrained_backbone", ResNet50_Weights.IMAGENET1K_V1),
)
def keypointrcnn_resnet50_fpn(
    *, weights: KeypointRCNN_ResNet50_FPN_Weights | None = None, progress: bool = True,
    num_classes: int | None = None, num_keypoints: int | None = None,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None, **kwargs: Any,
) -> KeypointRCNN:  # fmt: skip
    """Keypoint R-CNN on a pyramid of ResNet-50; persons or not, with 17 keypoints, unless
    `num_classes` and `num_keypoints` say."""
    kind = KeypointRCNN_ResNet50_FPN_Weights
    chosen, below, classes = with_backbone(
        kind, weights, ResNet50_Weights, weights_backbone, num_classes, default=2
    )
    if chosen is not None:
        n = len(chosen.meta["keypoint_names"])
        num_keypoints = _ovewrite_value_param("num_keypoints", num_keypoints, n)
    backbone = _resnet50_pyramid(chosen, below, progress, trainable_backbone_layers, False)
    model = KeypointRCNN(
        backbone, classes, num_keypoints=17 if num_keypoints is None else num_keypoints, **kwargs
    )
    loaded(model, chosen, progress)
    if chosen is kind.COCO_V1:
        overwrite_eps(model, 0.0)
    return model


__all__ = ["KeypointRCNN", "KeypointRCNN_ResNet50_FPN_Weights", "keypointrcnn_resnet50_fpn"]
