"""Operators, losses and layers for vision, with torchvision's names.

Source: https://docs.pytorch.org/vision/0.28/ops.html
"""

from __future__ import annotations

from torchlab.vision.ops import boxes, misc
from torchlab.vision.ops.boxes import (
    batched_nms,
    box_area,
    box_convert,
    box_iou,
    clip_boxes_to_image,
    complete_box_iou,
    distance_box_iou,
    generalized_box_iou,
    masks_to_boxes,
    nms,
    remove_small_boxes,
)
from torchlab.vision.ops.deform_conv import DeformConv2d, deform_conv2d
from torchlab.vision.ops.drop_block import DropBlock2d, DropBlock3d, drop_block2d, drop_block3d
from torchlab.vision.ops.feature_pyramid_network import FeaturePyramidNetwork
from torchlab.vision.ops.losses import (
    complete_box_iou_loss,
    distance_box_iou_loss,
    generalized_box_iou_loss,
    sigmoid_focal_loss,
)
from torchlab.vision.ops.misc import (
    MLP,
    Conv2dNormActivation,
    Conv3dNormActivation,
    FrozenBatchNorm2d,
    Permute,
    SqueezeExcitation,
)
from torchlab.vision.ops.poolers import MultiScaleRoIAlign
from torchlab.vision.ops.regions import RoIAlign, RoIPool, roi_align, roi_pool
from torchlab.vision.ops.stochastic_depth import StochasticDepth, stochastic_depth

__all__ = [
    "Conv2dNormActivation", "Conv3dNormActivation", "DeformConv2d", "DropBlock2d",
    "DropBlock3d", "FeaturePyramidNetwork", "FrozenBatchNorm2d", "MLP", "MultiScaleRoIAlign",
    "Permute", "RoIAlign", "RoIPool", "SqueezeExcitation", "StochasticDepth", "batched_nms",
    "box_area", "box_convert", "box_iou", "boxes", "clip_boxes_to_image", "complete_box_iou",
    "complete_box_iou_loss", "deform_conv2d", "distance_box_iou", "distance_box_iou_loss",
    "drop_block2d", "drop_block3d", "generalized_box_iou", "generalized_box_iou_loss",
    "masks_to_boxes", "misc", "nms", "remove_small_boxes", "roi_align", "roi_pool",
    "sigmoid_focal_loss", "stochastic_depth",
]  # fmt: skip
