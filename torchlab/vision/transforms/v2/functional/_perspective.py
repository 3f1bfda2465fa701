"""Images seen from elsewhere.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.RandomPerspective.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _geometry
from torchlab.vision.transforms._image import InterpolationMode
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
    wrap,
)

Corners = list[list[int]]


def perspective(
    inpt: Any,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
    coefficients: list[float] | None = None,
) -> Any:
    """The image under the projection that takes 4 points (x, y) to 4 others.

    coefficients: instead of the points, the 8 numbers c of the way back: x' = (c0 x + c1 y + c2) /
        (c6 x + c7 y + 1), and y' alike with c3, c4, c5.
    """
    return run(
        perspective,
        inpt,
        startpoints=startpoints,
        endpoints=endpoints,
        interpolation=interpolation,
        fill=fill,
        coefficients=coefficients,
    )


@kernel(perspective, Tensor, Image)
def perspective_image(
    image: Any,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
    coefficients: list[float] | None = None,
) -> Any:
    numbers = _geometry.projection(startpoints, endpoints, coefficients)
    return _geometry.project(image, numbers, mode_of(interpolation), fill, fused=True)


@kernel(perspective, Picture)
def _perspective_picture(
    image: Any,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
    coefficients: list[float] | None = None,
) -> Any:
    numbers = _geometry.projection(startpoints, endpoints, coefficients)
    return _geometry.project(image, numbers, mode_of(interpolation), fill, fused=True)


@kernel(perspective, Video)
def perspective_video(
    video: Any,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
    coefficients: list[float] | None = None,
) -> Any:
    return perspective_image(video, startpoints, endpoints, interpolation, fill, coefficients)


def perspective_mask(
    mask: Any,
    startpoints: Corners | None,
    endpoints: Corners | None,
    fill: Any = None,
    coefficients: list[float] | None = None,
) -> Any:
    nearest = InterpolationMode.NEAREST
    return perspective_image(mask, startpoints, endpoints, nearest, fill, coefficients)


@kernel(perspective, Mask)
def _perspective_mask(
    inpt: Any,
    startpoints: Corners | None,
    endpoints: Corners | None,
    fill: Any = None,
    coefficients: list[float] | None = None,
    **_: Any,
) -> Any:
    return perspective_mask(inpt, startpoints, endpoints, fill, coefficients)


def _forward(back: Sequence[float]) -> Any:
    """The map of points whose way back has these 8 numbers: the inverse of the 3x3 matrix."""
    matrix = aten.tensor([*back, 1.0], dtype=dt.float64).reshape(3, 3)
    inverse = aten.linalg_inv(matrix)
    inverse = inverse / inverse[2, 2]

    def move(points: Tensor) -> Tensor:
        m = inverse.to(points)
        moved = points @ m[:, :2].T + m[:, 2]
        return moved[:, :2] / moved[:, 2:]

    return move


def perspective_keypoints(
    keypoints: Any,
    canvas_size: tuple[int, int],
    startpoints: Corners | None,
    endpoints: Corners | None,
    coefficients: list[float] | None = None,
) -> Any:
    move = _forward(_geometry.projection(startpoints, endpoints, coefficients))
    return move_points(keypoints, move)


@kernel(perspective, KeyPoints, whole=True)
def _perspective_key_points(
    inpt: KeyPoints,
    startpoints: Corners | None,
    endpoints: Corners | None,
    coefficients: list[float] | None = None,
    **_: Any,
) -> Any:
    out = perspective_keypoints(
        inpt.as_subclass(Tensor), inpt.canvas_size, startpoints, endpoints, coefficients
    )
    return wrap(out, like=inpt)


def perspective_bounding_boxes(
    bounding_boxes: Any,
    format: BoundingBoxFormat,
    canvas_size: tuple[int, int],
    startpoints: Corners | None,
    endpoints: Corners | None,
    coefficients: list[float] | None = None,
    clamping_mode: str | None = "soft",
) -> Any:
    move = _forward(_geometry.projection(startpoints, endpoints, coefficients))
    return move_boxes(bounding_boxes, format, move, canvas_size, clamping_mode, whole_before=True)


@kernel(perspective, BoundingBoxes, whole=True)
def _perspective_boxes(
    inpt: BoundingBoxes,
    startpoints: Corners | None,
    endpoints: Corners | None,
    coefficients: list[float] | None = None,
    **_: Any,
) -> Any:
    out = perspective_bounding_boxes(
        inpt.as_subclass(Tensor),
        inpt.format,
        inpt.canvas_size,
        startpoints,
        endpoints,
        coefficients,
        inpt.clamping_mode,
    )
    return wrap(out, like=inpt)
