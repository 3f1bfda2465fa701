"""Detectors with torchvision's constructors and the names of its state dicts.

Source: https://docs.pytorch.org/vision/0.28/models.html#object-detection
"""

from __future__ import annotations

from torchlab.vision.models.detection import (
    faster_rcnn,
    fcos,
    keypoint_rcnn,
    mask_rcnn,
    retinanet,
    ssd,
    ssdlite,
)
from torchlab.vision.models.detection.faster_rcnn import *  # noqa: F403
from torchlab.vision.models.detection.fcos import *  # noqa: F403
from torchlab.vision.models.detection.keypoint_rcnn import *  # noqa: F403
from torchlab.vision.models.detection.mask_rcnn import *  # noqa: F403
from torchlab.vision.models.detection.retinanet import *  # noqa: F403
from torchlab.vision.models.detection.ssd import *  # noqa: F403
from torchlab.vision.models.detection.ssdlite import *  # noqa: F403

__all__ = ["faster_rcnn", "fcos", "keypoint_rcnn", "mask_rcnn", "retinanet", "ssd", "ssdlite"]
__all__ += faster_rcnn.__all__
__all__ += fcos.__all__
__all__ += keypoint_rcnn.__all__
__all__ += mask_rcnn.__all__
__all__ += retinanet.__all__
__all__ += ssd.__all__
__all__ += ssdlite.__all__
