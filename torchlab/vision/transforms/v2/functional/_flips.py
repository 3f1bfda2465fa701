"""Left and right, top and bottom exchanged.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.RandomHorizontalFlip.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _geometry
from torchlab.vision.transforms.v2.functional._box_formats import (
    CXCYWH,
    CXCYWHR,
    XYWH,
    XYWHR,
    XYXYXYXY,
    convert,
)
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    KeyPoints,
    Mask,
    Video,
    wrap,
)


def _flip_points(points: Tensor, axis: int, canvas_size: tuple[int, int]) -> Tensor:
    """Points (…, 2) mirrored along the axis (0: x, 1: y). They are pixels: the first becomes the
    last."""
    out = aten.clone(points)
    out[..., axis] = canvas_size[1 - axis] - 1 - points[..., axis]
    return out


def _flip_boxes(
    boxes: Tensor, axis: int, format: BoundingBoxFormat, canvas_size: tuple[int, int]
) -> Tensor:
    """Boxes mirrored along the axis (0: x, 1: y)."""
    side = canvas_size[1 - axis]
    if format == XYXYXYXY:
        # A mirror turns the sense of rotation: the left corners take the places of the right ones.
        out = boxes[..., [2, 3, 0, 1, 6, 7, 4, 5]]
        out[..., axis::2] = side - out[..., axis::2]
        return out
    if format in (XYWHR, CXCYWHR):
        out = aten.clone(convert(boxes, format, CXCYWHR))
        out[..., axis] = side - out[..., axis]
        out[..., 4] = (-out[..., 4]) if axis == 0 else 180 - out[..., 4]
        return convert(out, CXCYWHR, format)
    out = aten.clone(boxes)
    if format == XYWH:
        out[..., axis] = side - boxes[..., axis] - boxes[..., axis + 2]
    elif format == CXCYWH:
        out[..., axis] = side - boxes[..., axis]
    else:
        out[..., [axis, axis + 2]] = side - boxes[..., [axis + 2, axis]]
    return out


def horizontal_flip(inpt: Any) -> Any:
    """Left and right exchanged."""
    return run(horizontal_flip, inpt)


@kernel(horizontal_flip, Tensor, Image)
def horizontal_flip_image(image: Any) -> Any:
    return aten.flip(image, (-1,))


@kernel(horizontal_flip, Picture)
def _horizontal_flip_picture(image: Any) -> Any:
    return _geometry.hflip(image)


@kernel(horizontal_flip, Mask)
def horizontal_flip_mask(mask: Any) -> Any:
    return horizontal_flip_image(mask)


@kernel(horizontal_flip, Video)
def horizontal_flip_video(video: Any) -> Any:
    return horizontal_flip_image(video)


def horizontal_flip_keypoints(keypoints: Any, canvas_size: tuple[int, int]) -> Any:
    return _flip_points(keypoints, 0, canvas_size)


@kernel(horizontal_flip, KeyPoints, whole=True)
def _horizontal_flip_key_points(keypoints: KeyPoints) -> Any:
    out = horizontal_flip_keypoints(keypoints.as_subclass(Tensor), keypoints.canvas_size)
    return wrap(out, like=keypoints)


def horizontal_flip_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: tuple[int, int]
) -> Any:
    return _flip_boxes(bounding_boxes, 0, format, canvas_size)


@kernel(horizontal_flip, BoundingBoxes, whole=True)
def _horizontal_flip_boxes(inpt: BoundingBoxes) -> Any:
    out = horizontal_flip_bounding_boxes(inpt.as_subclass(Tensor), inpt.format, inpt.canvas_size)
    return wrap(out, like=inpt)


def vertical_flip(inpt: Any) -> Any:
    """Top and bottom exchanged."""
    return run(vertical_flip, inpt)


@kernel(vertical_flip, Tensor, Image)
def vertical_flip_image(image: Any) -> Any:
    return aten.flip(image, (-2,))


@kernel(vertical_flip, Picture)
def _vertical_flip_picture(image: Any) -> Any:
    return _geometry.vflip(image)


@kernel(vertical_flip, Mask)
def vertical_flip_mask(mask: Any) -> Any:
    return vertical_flip_image(mask)


@kernel(vertical_flip, Video)
def vertical_flip_video(video: Any) -> Any:
    return vertical_flip_image(video)


def vertical_flip_keypoints(keypoints: Any, canvas_size: tuple[int, int]) -> Any:
    return _flip_points(keypoints, 1, canvas_size)


@kernel(vertical_flip, KeyPoints, whole=True)
def _vertical_flip_key_points(keypoints: KeyPoints) -> Any:
    out = vertical_flip_keypoints(keypoints.as_subclass(Tensor), keypoints.canvas_size)
    return wrap(out, like=keypoints)


def vertical_flip_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: tuple[int, int]
) -> Any:
    return _flip_boxes(bounding_boxes, 1, format, canvas_size)


@kernel(vertical_flip, BoundingBoxes, whole=True)
def _vertical_flip_boxes(inpt: BoundingBoxes) -> Any:
    out = vertical_flip_bounding_boxes(inpt.as_subclass(Tensor), inpt.format, inpt.canvas_size)
    return wrap(out, like=inpt)


hflip = horizontal_flip
vflip = vertical_flip
