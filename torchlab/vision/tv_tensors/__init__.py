"""`torchvision.tv_tensors`: tensors that know what their values are.

Source: https://docs.pytorch.org/vision/0.28/tv_tensors.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.vision.tv_tensors._bounding_boxes import (
    BoundingBoxes,
    BoundingBoxFormat,
    is_rotated_bounding_format,
)
from torchlab.vision.tv_tensors._images import Image, Mask, Video
from torchlab.vision.tv_tensors._keypoints import KeyPoints
from torchlab.vision.tv_tensors._return_type import set_return_type
from torchlab.vision.tv_tensors._tv_tensor import TVTensor

__all__ = [
    "BoundingBoxFormat",
    "BoundingBoxes",
    "Image",
    "KeyPoints",
    "Mask",
    "TVTensor",
    "Video",
    "is_rotated_bounding_format",
    "set_return_type",
    "wrap",
]


def wrap(wrappee: Tensor, *, like: Any, **kwargs: Any) -> Any:
    """`wrappee` as a TVTensor of the type of `like` with its metadata; `kwargs` replace parts of
    the metadata. What is like a plain tensor stays as it is."""
    return type(like).wrap(wrappee, like=like, **kwargs) if isinstance(like, TVTensor) else wrappee
