"""Five or ten parts of one image.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.FiveCrop.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _geometry
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.tv_tensors import Image, Video


def five_crop(inpt: Any, size: list[int]) -> tuple[Any, Any, Any, Any, Any]:
    """The corners (top left, top right, bottom left, bottom right) and the middle.

    size: [height, width] or a number for both; ValueError for more than the image has.
    """
    return run(five_crop, inpt, size=size)


@kernel(five_crop, Tensor, Image)
def five_crop_image(image: Any, size: list[int]) -> tuple[Any, Any, Any, Any, Any]:
    return _geometry.five_crop(image, size)


kernel(five_crop, Picture)(_geometry.five_crop)


@kernel(five_crop, Video)
def five_crop_video(video: Any, size: list[int]) -> tuple[Any, Any, Any, Any, Any]:
    return five_crop_image(video, size)


def ten_crop(inpt: Any, size: list[int], vertical_flip: bool = False) -> tuple[Any, ...]:
    """`five_crop` of the image and of the flipped image."""
    return run(ten_crop, inpt, size=size, vertical_flip=vertical_flip)


@kernel(ten_crop, Tensor, Image)
def ten_crop_image(image: Any, size: list[int], vertical_flip: bool = False) -> tuple[Any, ...]:
    return _geometry.ten_crop(image, size, vertical_flip)


kernel(ten_crop, Picture)(_geometry.ten_crop)


@kernel(ten_crop, Video)
def ten_crop_video(video: Any, size: list[int], vertical_flip: bool = False) -> tuple[Any, ...]:
    return ten_crop_image(video, size, vertical_flip)
