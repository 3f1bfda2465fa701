"""Another size.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.Resize.html
"""

from __future__ import annotations

import operator
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _geometry, _tensor_grid
from torchlab.vision.transforms._image import InterpolationMode
from torchlab.vision.transforms.v2.functional._box_formats import XYXY
from torchlab.vision.transforms.v2.functional._maps import move_boxes, move_points
from torchlab.vision.transforms.v2.functional._modes import mode_of
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    KeyPoints,
    Mask,
    Video,
    is_rotated_bounding_format,
    wrap,
)


def resize(
    inpt: Any,
    size: list[int] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """The image in another size.

    size: [height, width]; a number (also [number]) for the shorter edge; None for the largest size
        of the same shape within `max_size`.
    max_size: the longer edge is cut down to it.
    antialias: for tensors with bilinear and bicubic: the average over what shrinks to one pixel.
        Pillow does it always.
    """
    return run(
        resize,
        inpt,
        size=size,
        interpolation=interpolation,
        max_size=max_size,
        antialias=antialias,
    )


def new_size(old: tuple[int, int], size: Any, max_size: int | None) -> tuple[int, int]:
    """(height, width) after a resize to `size`."""
    if isinstance(size, int):
        size = [size]
    if size is not None and len(size) != 1:
        if max_size is not None:
            raise ValueError(
                "max_size should only be passed if size is None or specifies the length of the"
                " smaller edge"
            )
        return operator.index(size[0]), operator.index(size[1])
    return _geometry.edges(*old, size, max_size)


@kernel(resize, Tensor, Image)
def resize_image(
    image: Any,
    size: list[int] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    mode = mode_of(interpolation)
    old = tuple(image.shape[-2:])
    new = new_size(old, size, max_size)
    if mode is InterpolationMode.LANCZOS and not antialias:
        raise ValueError(f"{mode} requires antialias=True")
    if new == old:
        return image
    if image.numel() == 0:
        return aten.reshape(image, (*image.shape[:-2], *new))
    return _tensor_grid.resize(image, new, mode.value, bool(antialias), as_bytes=True)


@kernel(resize, Picture)
def _resize_picture(
    image: Any,
    size: list[int] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    new = new_size((image.height, image.width), size, max_size)
    return _geometry.resize(image, new, mode_of(interpolation))


def resize_mask(
    mask: Any,
    size: list[int] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
) -> Any:
    # Between labels there are none, so that there are only two ways to pick one.
    mode = mode_of(interpolation)
    if mode is not InterpolationMode.NEAREST_EXACT:
        mode = InterpolationMode.NEAREST
    return resize_image(mask, size, mode, max_size)


@kernel(resize, Mask)
def _resize_mask(
    mask: Any,
    size: list[int] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    return resize_mask(mask, size, interpolation, max_size)


@kernel(resize, Video)
def resize_video(
    video: Any,
    size: list[int] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    return resize_image(video, size, interpolation, max_size, antialias)


def resize_keypoints(
    keypoints: Any,
    size: list[int] | None,
    canvas_size: tuple[int, int],
    max_size: int | None = None,
) -> Any:
    new = new_size(canvas_size, size, max_size)
    return move_points(keypoints, _stretch(canvas_size, new)), new


@kernel(resize, KeyPoints, whole=True)
def _resize_key_points(inpt: KeyPoints, size: Any, max_size: int | None = None, **_: Any) -> Any:
    out, new = resize_keypoints(inpt.as_subclass(Tensor), size, inpt.canvas_size, max_size)
    return wrap(out, like=inpt, canvas_size=new)


def resize_bounding_boxes(
    bounding_boxes: Any,
    canvas_size: tuple[int, int],
    size: list[int] | None,
    max_size: int | None = None,
    format: BoundingBoxFormat = XYXY,
    clamping_mode: str | None = "soft",
) -> tuple[Any, tuple[int, int]]:
    new = new_size(canvas_size, size, max_size)
    if is_rotated_bounding_format(format):
        move = _stretch(canvas_size, new)
        return move_boxes(bounding_boxes, format, move, new, clamping_mode), new
    ratios = aten.tensor(_ratios(canvas_size, new) * 2, device=bounding_boxes.device)
    return (bounding_boxes * ratios).to(bounding_boxes.dtype), new


@kernel(resize, BoundingBoxes, whole=True)
def _resize_boxes(inpt: BoundingBoxes, size: Any, max_size: int | None = None, **_: Any) -> Any:
    out, new = resize_bounding_boxes(
        inpt.as_subclass(Tensor),
        inpt.canvas_size,
        size,
        max_size,
        inpt.format,
        inpt.clamping_mode,
    )
    return wrap(out, like=inpt, canvas_size=new)


def _ratios(old: tuple[int, int], new: tuple[int, int]) -> list[float]:
    return [new[1] / old[1], new[0] / old[0]]


def _stretch(old: tuple[int, int], new: tuple[int, int]) -> Any:
    ratios = _ratios(old, new)
    return lambda points: points * aten.tensor(ratios, dtype=points.dtype, device=points.device)
