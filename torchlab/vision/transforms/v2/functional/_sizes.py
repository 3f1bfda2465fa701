"""The sizes of images, videos, masks, and of what boxes and points belong to.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#v2-api-reference-recommended
"""

from __future__ import annotations

import warnings
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _image
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video


def get_dimensions(inpt: Any) -> list[int]:
    """[channels, height, width]."""
    return run(get_dimensions, inpt)


@kernel(get_dimensions, Tensor, Image)
def get_dimensions_image(image: Any) -> list[int]:
    if image.ndim < 2:
        raise TypeError(f"Input tensor should have at least two dimensions, but got {image.ndim}")
    return [1 if image.ndim == 2 else image.shape[-3], *image.shape[-2:]]


@kernel(get_dimensions, Picture)
def _get_dimensions_picture(image: Any) -> list[int]:
    return _image.get_dimensions(image)


@kernel(get_dimensions, Video)
def get_dimensions_video(video: Any) -> list[int]:
    return get_dimensions_image(video)


def get_num_channels(inpt: Any) -> int:
    """The number of channels."""
    return run(get_num_channels, inpt)


@kernel(get_num_channels, Tensor, Image)
def get_num_channels_image(image: Any) -> int:
    return get_dimensions_image(image)[0]


@kernel(get_num_channels, Picture)
def _get_num_channels_picture(image: Any) -> int:
    return len(image.getbands())


@kernel(get_num_channels, Video)
def get_num_channels_video(video: Any) -> int:
    return get_num_channels_image(video)


get_image_num_channels = get_num_channels


def get_size(inpt: Any) -> list[int]:
    """[height, width]."""
    return run(get_size, inpt)


@kernel(get_size, Tensor, Image)
def get_size_image(image: Any) -> list[int]:
    return get_dimensions_image(image)[1:]


@kernel(get_size, Picture)
def _get_size_picture(image: Any) -> list[int]:
    return [image.height, image.width]


@kernel(get_size, Video)
def get_size_video(video: Any) -> list[int]:
    return get_size_image(video)


@kernel(get_size, Mask)
def get_size_mask(mask: Any) -> list[int]:
    return get_size_image(mask)


@kernel(get_size, BoundingBoxes, whole=True)
def get_size_bounding_boxes(bounding_box: BoundingBoxes) -> list[int]:
    return list(bounding_box.canvas_size)


@kernel(get_size, KeyPoints, whole=True)
def get_size_keypoints(keypoints: KeyPoints) -> list[int]:
    return list(keypoints.canvas_size)


def get_image_size(inpt: Any) -> list[int]:
    """[width, height]: the order that `get_size` replaced."""
    warnings.warn(
        "The function `get_image_size(...)` is deprecated and will be removed in a future release."
        " Instead, please use `get_size(...)` which returns `[h, w]` instead of `[w, h]`.",
        stacklevel=2,
    )
    return _image.get_image_size(inpt)


def get_num_frames(inpt: Any) -> int:
    """The number of frames of a video."""
    return run(get_num_frames, inpt)


@kernel(get_num_frames, Tensor, Video)
def get_num_frames_video(video: Any) -> int:
    return video.shape[-4]
