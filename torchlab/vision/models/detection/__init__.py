"""Detectors with torchvision's constructors and the names of its state dicts.

Source: https://docs.pytorch.org/vision/0.28/models.html#object-detection
"""

from __future__ import annotations

from torchlab.vision.models.detection import faster_rcnn, mask_rcnn
from torchlab.vision.models.detection.faster_rcnn import (
    FasterRCNN,
    fasterrcnn_mobilenet_v3_large_320_fpn,
    fasterrcnn_mobilenet_v3_large_fpn,
    fasterrcnn_resnet50_fpn,
    fasterrcnn_resnet50_fpn_v2,
)
from torchlab.vision.models.detection.mask_rcnn import (
    MaskRCNN,
    maskrcnn_resnet50_fpn,
    maskrcnn_resnet50_fpn_v2,
)

__all__ = [
    "FasterRCNN", "MaskRCNN", "faster_rcnn", "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn", "fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_v2",
    "mask_rcnn", "maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2",
]  # fmt: skip
