"""Images whose pixels are moved one by one.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.ElasticTransform.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _geometry, _tensor_grid
from torchlab.vision.transforms._convert import pil_to_tensor, to_pil_image
from torchlab.vision.transforms._image import InterpolationMode
from torchlab.vision.transforms.v2.functional._box_formats import CXCYWHR, convert
from torchlab.vision.transforms.v2.functional._clamps import clamp
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


def elastic(
    inpt: Any,
    displacement: Tensor,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
) -> Any:
    """The image with each pixel taken from a place that is moved by `displacement` (1, H, W, 2),
    in halves of the image's sides."""
    return run(elastic, inpt, displacement=displacement, interpolation=interpolation, fill=fill)


elastic_transform = elastic


@kernel(elastic, Tensor, Image)
def elastic_image(
    image: Any,
    displacement: Tensor,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
) -> Any:
    mode = mode_of(interpolation)
    _geometry.check_displacement(displacement, image.shape[-2:])
    return _geometry.displace(image, displacement, mode.value, fill, fused=True)


@kernel(elastic, Picture)
def _elastic_picture(
    image: Any,
    displacement: Tensor,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
) -> Any:
    out = elastic_image(pil_to_tensor(image), displacement, interpolation, fill)
    return to_pil_image(out, mode=image.mode)


@kernel(elastic, Video)
def elastic_video(
    video: Any,
    displacement: Tensor,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
) -> Any:
    return elastic_image(video, displacement, interpolation, fill)


def elastic_mask(mask: Any, displacement: Tensor, fill: Any = None) -> Any:
    return elastic_image(mask, displacement, InterpolationMode.NEAREST, fill)


@kernel(elastic, Mask)
def _elastic_mask(inpt: Any, displacement: Tensor, fill: Any = None, **_: Any) -> Any:
    return elastic_mask(inpt, displacement, fill)


def _forward(canvas_size: tuple[int, int], displacement: Tensor, pixel: Any) -> Any:
    """The map of points: the displacement taken backwards at the `pixel` of each point, the first
    of them for what lies before the canvas and the last for what lies behind it."""
    _geometry.check_displacement(displacement, canvas_size)
    height, width = canvas_size

    def move(points: Tensor) -> Tensor:
        where = _tensor_grid.identity_grid(height, width).to(points) - displacement.to(points)
        at = pixel(points).long()
        x, y = aten.clamp(at[:, 0], 0, width - 1), aten.clamp(at[:, 1], 0, height - 1)
        size = aten.tensor([width, height], dtype=points.dtype, device=points.device)
        return (where[0, y, x] + 1) * 0.5 * size - 0.5

    return move


def elastic_keypoints(keypoints: Any, canvas_size: tuple[int, int], displacement: Tensor) -> Any:
    return move_points(keypoints, _forward(canvas_size, displacement, aten.floor))


@kernel(elastic, KeyPoints, whole=True)
def _elastic_key_points(inpt: KeyPoints, displacement: Tensor, **_: Any) -> Any:
    out = elastic_keypoints(inpt.as_subclass(Tensor), inpt.canvas_size, displacement)
    return wrap(out, like=inpt)


def elastic_bounding_boxes(
    bounding_boxes: Any,
    format: BoundingBoxFormat,
    canvas_size: tuple[int, int],
    displacement: Tensor,
    clamping_mode: str | None = "soft",
) -> Any:
    move = _forward(canvas_size, displacement, aten.ceil)
    if is_rotated_bounding_format(format):
        # The middle moves, size and angle stay.
        middle = convert(bounding_boxes, format, CXCYWHR)
        moved = aten.cat((move(aten.reshape(middle[..., :2], (-1, 2))), middle[..., 2:]), -1)
        moved = convert(aten.reshape(moved, middle.shape), CXCYWHR, format)
        return clamp(moved, format, canvas_size, clamping_mode)
    return move_boxes(
        bounding_boxes,
        format,
        move,
        canvas_size,
        clamping_mode,
        whole_before=True,
        whole_after=True,
    )


@kernel(elastic, BoundingBoxes, whole=True)
def _elastic_boxes(inpt: BoundingBoxes, displacement: Tensor, **_: Any) -> Any:
    out = elastic_bounding_boxes(
        inpt.as_subclass(Tensor),
        inpt.format,
        inpt.canvas_size,
        displacement,
        inpt.clamping_mode,
    )
    return wrap(out, like=inpt)
