"""Images turned.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.RandomRotation.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _geometry, _tensor_grid
from torchlab.vision.transforms._image import InterpolationMode
from torchlab.vision.transforms.v2.functional._maps import affine_map, move_boxes, move_points
from torchlab.vision.transforms.v2.functional._modes import mode_of, with_mode
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


def rotate(
    inpt: Any,
    angle: float,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: list[float] | None = None,
    fill: Any = None,
) -> Any:
    """The image turned by `angle` degrees, counter-clockwise.

    center: (x, y), by default the middle. expand: a result that holds all corners.
    """
    return run(
        rotate,
        inpt,
        angle=angle,
        interpolation=interpolation,
        expand=expand,
        fill=fill,
        center=center,
    )


@kernel(rotate, Tensor, Image)
def rotate_image(
    image: Any,
    angle: float,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: list[float] | None = None,
    fill: Any = None,
) -> Any:
    angle = angle % 360
    height, width = image.shape[-2:]
    if center is None and angle % 180 == 0:
        return aten.clone(image) if angle == 0 else aten.flip(image, (-2, -1))
    if center is None and angle % 90 == 0 and (expand or height == width):
        # Every pixel finds its place: nothing has to be interpolated.
        return aten.flip(aten.transpose(image, -1, -2), (-2,) if angle == 90 else (-1,))
    mode = mode_of(interpolation)
    return _geometry.rotate_in_mode(image, angle, mode, expand, center, fill, fused=True)


kernel(rotate, Picture)(with_mode(_geometry.rotate))


@kernel(rotate, Video)
def rotate_video(
    video: Any,
    angle: float,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: list[float] | None = None,
    fill: Any = None,
) -> Any:
    return rotate_image(video, angle, interpolation, expand, center, fill)


def rotate_mask(
    mask: Any,
    angle: float,
    expand: bool = False,
    center: list[float] | None = None,
    fill: Any = None,
) -> Any:
    return rotate_image(mask, angle, InterpolationMode.NEAREST, expand, center, fill)


@kernel(rotate, Mask)
def _rotate_mask(
    inpt: Any,
    angle: float,
    expand: bool = False,
    center: list[float] | None = None,
    fill: Any = None,
    **_: Any,
) -> Any:
    return rotate_mask(inpt, angle, expand, center, fill)


def _forward(
    canvas_size: tuple[int, int], angle: float, expand: bool, center: Any
) -> tuple[list[float], tuple[int, int]]:
    """The map's 6 numbers, from places in the image to places in the result; the result's size."""
    height, width = canvas_size
    at = (width * 0.5, height * 0.5) if center is None else center
    still = (0.0, 0.0)
    matrix = _tensor_grid.inverse_affine_matrix(
        at, -angle, still, 1.0, still, inverted=False, fused=True
    )
    if not expand:
        return matrix, canvas_size
    back = _tensor_grid.inverse_affine_matrix(at, -angle, still, 1.0, still)
    # Everything is moved so that the turned canvas begins at 0.
    ends = [(x, y) for x in (0, width) for y in (0, height)]
    for row in (0, 3):
        first = min(matrix[row] * x + matrix[row + 1] * y + matrix[row + 2] for x, y in ends)
        matrix[row + 2] -= first
    return matrix, _tensor_grid.turned_size(back, width, height)


def rotate_keypoints(
    keypoints: Any,
    canvas_size: tuple[int, int],
    angle: float,
    expand: bool = False,
    center: list[float] | None = None,
) -> tuple[Any, tuple[int, int]]:
    matrix, new = _forward(canvas_size, angle, expand, center)
    return move_points(keypoints, affine_map(matrix)), new


@kernel(rotate, KeyPoints, whole=True)
def _rotate_key_points(
    inpt: KeyPoints,
    angle: float,
    expand: bool = False,
    center: list[float] | None = None,
    **_: Any,
) -> Any:
    out, new = rotate_keypoints(inpt.as_subclass(Tensor), inpt.canvas_size, angle, expand, center)
    return wrap(out, like=inpt, canvas_size=new)


def rotate_bounding_boxes(
    bounding_boxes: Any,
    format: BoundingBoxFormat,
    canvas_size: tuple[int, int],
    angle: float,
    expand: bool = False,
    center: list[float] | None = None,
    clamping_mode: str | None = "soft",
) -> tuple[Any, tuple[int, int]]:
    matrix, new = _forward(canvas_size, angle, expand, center)
    return move_boxes(bounding_boxes, format, affine_map(matrix), new, clamping_mode), new


@kernel(rotate, BoundingBoxes, whole=True)
def _rotate_boxes(
    inpt: BoundingBoxes,
    angle: float,
    expand: bool = False,
    center: list[float] | None = None,
    **_: Any,
) -> Any:
    out, new = rotate_bounding_boxes(
        inpt.as_subclass(Tensor),
        inpt.format,
        inpt.canvas_size,
        angle,
        expand,
        center,
        inpt.clamping_mode,
    )
    return wrap(out, like=inpt, canvas_size=new)
