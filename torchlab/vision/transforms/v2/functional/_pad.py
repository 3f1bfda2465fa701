"""A border around images, and what it does to boxes and points.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.Pad.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _geometry
from torchlab.vision.transforms.v2.functional._maps import shift_boxes
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


def pad(inpt: Any, padding: list[int], fill: Any = None, padding_mode: str = "constant") -> Any:
    """The image with a border.

    padding: one number; [left and right, top and bottom]; or [left, top, right, bottom]. Negative
        numbers cut.
    fill: a number, or one for each channel. padding_mode: "constant" (`fill`), "edge", "reflect"
        (the edge once) or "symmetric" (twice); points and boxes know "constant" alone.
    """
    return run(pad, inpt, padding=padding, fill=fill, padding_mode=padding_mode)


@kernel(pad, Tensor, Image)
def pad_image(
    image: Any, padding: list[int], fill: Any = None, padding_mode: str = "constant"
) -> Any:
    if isinstance(fill, (list, tuple)):
        if len(fill) != 1:
            return _pad_coloured(image, padding, fill, padding_mode)
        fill = fill[0]
    return _geometry.pad(image, padding, fill, padding_mode)


def _pad_coloured(image: Tensor, padding: Any, fill: Sequence[float], mode: str) -> Tensor:
    """A border with a value for each channel."""
    if mode != "constant":
        raise ValueError(f"Padding mode '{mode}' is not supported if fill is not scalar")
    if image.ndim < 3 or len(fill) != image.shape[-3]:
        raise RuntimeError(
            f"pad: a fill of {len(fill)} values does not fit the image's shape"
            f" {tuple(image.shape)}; give one number, or one for each channel"
        )
    inside = _geometry.pad(aten.ones(image.shape[-2:], device=image.device), padding) != 0
    colour = aten.tensor(list(fill), device=image.device).to(image.dtype).reshape(-1, 1, 1)
    return aten.where(inside, _geometry.pad(image, padding), colour)


kernel(pad, Picture)(_geometry.pad)


@kernel(pad, Mask)
def pad_mask(
    mask: Any, padding: list[int], fill: Any = None, padding_mode: str = "constant"
) -> Any:
    if isinstance(fill, (list, tuple)):
        raise ValueError("Non-scalar fill value is not supported")
    return pad_image(mask, padding, fill or 0, padding_mode)


@kernel(pad, Video)
def pad_video(
    video: Any, padding: list[int], fill: Any = None, padding_mode: str = "constant"
) -> Any:
    return pad_image(video, padding, fill, padding_mode)


def _padded(
    canvas_size: tuple[int, int], padding: Any, mode: str, kind: str
) -> tuple[int, int, tuple[int, int]]:
    """Left, top and the new size."""
    if mode != "constant":
        raise ValueError(f"Padding mode '{mode}' is not supported with {kind}")
    left, top, right, bottom = _geometry.sides(padding)
    height, width = canvas_size
    return left, top, (height + top + bottom, width + left + right)


def pad_keypoints(
    keypoints: Any,
    canvas_size: tuple[int, int],
    padding: list[int],
    padding_mode: str = "constant",
) -> Any:
    left, top, new = _padded(canvas_size, padding, padding_mode, "keypoints")
    by = aten.tensor([left, top], dtype=keypoints.dtype, device=keypoints.device)
    return keypoints + by, new


@kernel(pad, KeyPoints, whole=True)
def _pad_key_points(inpt: KeyPoints, padding: Any, padding_mode: str = "constant", **_: Any) -> Any:
    out, new = pad_keypoints(inpt.as_subclass(Tensor), inpt.canvas_size, padding, padding_mode)
    return wrap(out, like=inpt, canvas_size=new)


def pad_bounding_boxes(
    bounding_boxes: Any,
    format: BoundingBoxFormat,
    canvas_size: tuple[int, int],
    padding: list[int],
    padding_mode: str = "constant",
    clamping_mode: str | None = "soft",
) -> tuple[Any, tuple[int, int]]:
    left, top, new = _padded(canvas_size, padding, padding_mode, "bounding boxes")
    return shift_boxes(bounding_boxes, format, left, top, new, clamping_mode), new


@kernel(pad, BoundingBoxes, whole=True)
def _pad_boxes(inpt: BoundingBoxes, padding: Any, padding_mode: str = "constant", **_: Any) -> Any:
    out, new = pad_bounding_boxes(
        inpt.as_subclass(Tensor),
        inpt.format,
        inpt.canvas_size,
        padding,
        padding_mode,
        inpt.clamping_mode,
    )
    return wrap(out, like=inpt, canvas_size=new)
