"""Parts of images: a rectangle, the middle, a rectangle in another size.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.RandomCrop.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _geometry
from torchlab.vision.transforms._image import InterpolationMode
from torchlab.vision.transforms.v2.functional._maps import shift_boxes
from torchlab.vision.transforms.v2.functional._modes import with_mode
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.transforms.v2.functional._resize import (
    resize_bounding_boxes,
    resize_image,
    resize_keypoints,
    resize_mask,
)
from torchlab.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    KeyPoints,
    Mask,
    Video,
    wrap,
)


def crop(inpt: Any, top: int, left: int, height: int, width: int) -> Any:
    """The rectangle of that upper left corner and size; zeros outside the image."""
    return run(crop, inpt, top=top, left=left, height=height, width=width)


@kernel(crop, Tensor, Image)
def crop_image(image: Any, top: int, left: int, height: int, width: int) -> Any:
    return _geometry.crop(image, top, left, height, width)


kernel(crop, Picture)(_geometry.crop)


@kernel(crop, Mask)
def crop_mask(mask: Any, top: int, left: int, height: int, width: int) -> Any:
    return crop_image(mask, top, left, height, width)


@kernel(crop, Video)
def crop_video(video: Any, top: int, left: int, height: int, width: int) -> Any:
    return crop_image(video, top, left, height, width)


def crop_keypoints(
    keypoints: Any, top: int, left: int, height: int, width: int
) -> tuple[Any, tuple[int, int]]:
    by = aten.tensor([left, top], dtype=keypoints.dtype, device=keypoints.device)
    return keypoints - by, (height, width)


@kernel(crop, KeyPoints, whole=True)
def _crop_key_points(inpt: KeyPoints, top: int, left: int, height: int, width: int) -> Any:
    out, new = crop_keypoints(inpt.as_subclass(Tensor), top, left, height, width)
    return wrap(out, like=inpt, canvas_size=new)


def crop_bounding_boxes(
    bounding_boxes: Any,
    format: BoundingBoxFormat,
    top: int,
    left: int,
    height: int,
    width: int,
    clamping_mode: str | None = "soft",
) -> tuple[Any, tuple[int, int]]:
    new = (height, width)
    return shift_boxes(bounding_boxes, format, -left, -top, new, clamping_mode), new


@kernel(crop, BoundingBoxes, whole=True)
def _crop_boxes(inpt: BoundingBoxes, top: int, left: int, height: int, width: int) -> Any:
    out, new = crop_bounding_boxes(
        inpt.as_subclass(Tensor), inpt.format, top, left, height, width, inpt.clamping_mode
    )
    return wrap(out, like=inpt, canvas_size=new)


def center_crop(inpt: Any, output_size: list[int]) -> Any:
    """The middle of the image, [height, width] or a number for both; zeros around an image that is
    smaller."""
    return run(center_crop, inpt, output_size=output_size)


@kernel(center_crop, Tensor, Image)
def center_crop_image(image: Any, output_size: list[int]) -> Any:
    return _geometry.center_crop(image, output_size)


kernel(center_crop, Picture)(_geometry.center_crop)


@kernel(center_crop, Mask)
def center_crop_mask(mask: Any, output_size: list[int]) -> Any:
    return center_crop_image(mask, output_size)


@kernel(center_crop, Video)
def center_crop_video(video: Any, output_size: list[int]) -> Any:
    return center_crop_image(video, output_size)


def center_crop_keypoints(inpt: Any, canvas_size: tuple[int, int], output_size: list[int]) -> Any:
    height, width = _geometry.pair(output_size)
    top, left = _geometry.middle(canvas_size, (height, width))
    return crop_keypoints(inpt, top, left, height, width)


@kernel(center_crop, KeyPoints, whole=True)
def _center_crop_key_points(inpt: KeyPoints, output_size: list[int]) -> Any:
    out, new = center_crop_keypoints(inpt.as_subclass(Tensor), inpt.canvas_size, output_size)
    return wrap(out, like=inpt, canvas_size=new)


def center_crop_bounding_boxes(
    bounding_boxes: Any,
    format: BoundingBoxFormat,
    canvas_size: tuple[int, int],
    output_size: list[int],
    clamping_mode: str | None = "soft",
) -> tuple[Any, tuple[int, int]]:
    height, width = _geometry.pair(output_size)
    top, left = _geometry.middle(canvas_size, (height, width))
    return crop_bounding_boxes(bounding_boxes, format, top, left, height, width, clamping_mode)


@kernel(center_crop, BoundingBoxes, whole=True)
def _center_crop_boxes(inpt: BoundingBoxes, output_size: list[int]) -> Any:
    out, new = center_crop_bounding_boxes(
        inpt.as_subclass(Tensor), inpt.format, inpt.canvas_size, output_size, inpt.clamping_mode
    )
    return wrap(out, like=inpt, canvas_size=new)


def resized_crop(
    inpt: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: list[int],
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """`crop`, then `resize`."""
    return run(
        resized_crop,
        inpt,
        top=top,
        left=left,
        height=height,
        width=width,
        size=size,
        interpolation=interpolation,
        antialias=antialias,
    )


@kernel(resized_crop, Tensor, Image)
def resized_crop_image(
    image: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: list[int],
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    part = crop_image(image, top, left, height, width)
    return resize_image(part, size, interpolation=interpolation, antialias=antialias)


kernel(resized_crop, Picture)(with_mode(_geometry.resized_crop))


def resized_crop_mask(
    mask: Any, top: int, left: int, height: int, width: int, size: list[int]
) -> Any:
    return resize_mask(crop_mask(mask, top, left, height, width), size)


@kernel(resized_crop, Mask)
def _resized_crop_mask(
    inpt: Any, top: int, left: int, height: int, width: int, size: list[int], **_: Any
) -> Any:
    return resized_crop_mask(inpt, top, left, height, width, size)


@kernel(resized_crop, Video)
def resized_crop_video(
    video: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: list[int],
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    return resized_crop_image(
        video, top, left, height, width, size, interpolation=interpolation, antialias=antialias
    )


def resized_crop_keypoints(
    keypoints: Any, top: int, left: int, height: int, width: int, size: list[int]
) -> tuple[Any, tuple[int, int]]:
    part, canvas_size = crop_keypoints(keypoints, top, left, height, width)
    return resize_keypoints(part, size=size, canvas_size=canvas_size)


@kernel(resized_crop, KeyPoints, whole=True)
def _resized_crop_key_points(
    inpt: KeyPoints, top: int, left: int, height: int, width: int, size: list[int], **_: Any
) -> Any:
    out, new = resized_crop_keypoints(inpt.as_subclass(Tensor), top, left, height, width, size)
    return wrap(out, like=inpt, canvas_size=new)


def resized_crop_bounding_boxes(
    bounding_boxes: Any,
    format: BoundingBoxFormat,
    top: int,
    left: int,
    height: int,
    width: int,
    size: list[int],
    clamping_mode: str | None = "soft",
) -> tuple[Any, tuple[int, int]]:
    part, canvas_size = crop_bounding_boxes(
        bounding_boxes, format, top, left, height, width, clamping_mode
    )
    return resize_bounding_boxes(
        part, canvas_size=canvas_size, size=size, format=format, clamping_mode=clamping_mode
    )


@kernel(resized_crop, BoundingBoxes, whole=True)
def _resized_crop_boxes(
    inpt: BoundingBoxes, top: int, left: int, height: int, width: int, size: list[int], **_: Any
) -> Any:
    out, new = resized_crop_bounding_boxes(
        inpt.as_subclass(Tensor),
        inpt.format,
        top,
        left,
        height,
        width,
        size,
        inpt.clamping_mode,
    )
    return wrap(out, like=inpt, canvas_size=new)
