"""Images turned, sheared, scaled and moved.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.RandomAffine.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _geometry, _tensor_grid
from torchlab.vision.transforms._image import InterpolationMode
from torchlab.vision.transforms.v2.functional._maps import affine_map, move_boxes, move_points
from torchlab.vision.transforms.v2.functional._modes import mode_of
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


def affine(
    inpt: Any,
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: list[float] | None = None,
) -> Any:
    """The image scaled, sheared (x, y) and turned clockwise around `center` (by default the
    middle), then moved by `translate` (x, y) pixels. Angles in degrees."""
    return run(
        affine,
        inpt,
        angle=angle,
        translate=translate,
        scale=scale,
        shear=shear,
        interpolation=interpolation,
        fill=fill,
        center=center,
    )


@kernel(affine, Tensor, Image)
def affine_image(
    image: Any,
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: list[float] | None = None,
) -> Any:
    mode = mode_of(interpolation)
    return _geometry.affine_in_mode(
        image, angle, translate, scale, shear, mode, fill, center, fused=True
    )


@kernel(affine, Picture)
def _affine_picture(
    image: Any,
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: list[float] | None = None,
) -> Any:
    mode = mode_of(interpolation)
    return _geometry.affine_in_mode(
        image, angle, translate, scale, shear, mode, fill, center, fused=True
    )


@kernel(affine, Video)
def affine_video(
    video: Any,
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: list[float] | None = None,
) -> Any:
    return affine_image(video, angle, translate, scale, shear, interpolation, fill, center)


def affine_mask(
    mask: Any,
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    fill: Any = None,
    center: list[float] | None = None,
) -> Any:
    nearest = InterpolationMode.NEAREST
    return affine_image(mask, angle, translate, scale, shear, nearest, fill, center)


@kernel(affine, Mask)
def _affine_mask(
    inpt: Any,
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    fill: Any = None,
    center: list[float] | None = None,
    **_: Any,
) -> Any:
    return affine_mask(inpt, angle, translate, scale, shear, fill, center)


def _forward(
    canvas_size: tuple[int, int],
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Any,
    center: Any,
) -> list[float]:
    """The map's 6 numbers, from places in the image to places in the result."""
    shears = _geometry.affine_arguments(angle, translate, scale, shear, center)
    height, width = canvas_size
    at = (width * 0.5, height * 0.5) if center is None else center
    return _tensor_grid.inverse_affine_matrix(
        at, angle, translate, scale, shears, inverted=False, fused=True
    )


def affine_keypoints(
    keypoints: Any,
    canvas_size: tuple[int, int],
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    center: list[float] | None = None,
) -> Any:
    matrix = _forward(canvas_size, angle, translate, scale, shear, center)
    return move_points(keypoints, affine_map(matrix)), canvas_size


@kernel(affine, KeyPoints, whole=True)
def _affine_key_points(
    inpt: KeyPoints,
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    center: list[float] | None = None,
    **_: Any,
) -> Any:
    out, new = affine_keypoints(
        inpt.as_subclass(Tensor), inpt.canvas_size, angle, translate, scale, shear, center
    )
    return wrap(out, like=inpt, canvas_size=new)


def affine_bounding_boxes(
    bounding_boxes: Any,
    format: BoundingBoxFormat,
    canvas_size: tuple[int, int],
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    center: list[float] | None = None,
    clamping_mode: str | None = "soft",
) -> Any:
    matrix = _forward(canvas_size, angle, translate, scale, shear, center)
    return move_boxes(bounding_boxes, format, affine_map(matrix), canvas_size, clamping_mode)


@kernel(affine, BoundingBoxes, whole=True)
def _affine_boxes(
    inpt: BoundingBoxes,
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    center: list[float] | None = None,
    **_: Any,
) -> Any:
    out = affine_bounding_boxes(
        inpt.as_subclass(Tensor),
        inpt.format,
        inpt.canvas_size,
        angle,
        translate,
        scale,
        shear,
        center,
        inpt.clamping_mode,
    )
    return wrap(out, like=inpt)
