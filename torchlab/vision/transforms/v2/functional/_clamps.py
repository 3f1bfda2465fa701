"""Boxes and points kept within the image, and those that lie outside removed.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.ClampBoundingBoxes.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms.v2.functional._box_formats import (
    XYXY,
    XYXYXYXY,
    convert,
    named_format,
)
from torchlab.vision.transforms.v2.functional._registry import is_pure_tensor
from torchlab.vision.transforms.v2.functional._turned import cut_turned
from torchlab.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    KeyPoints,
    is_rotated_bounding_format,
    wrap,
)


def clamp(
    boxes: Tensor,
    format: BoundingBoxFormat,
    canvas_size: tuple[int, int],
    clamping_mode: str | None,
) -> Tensor:
    """The boxes (…, K) cut to the canvas, or as they are where the mode is None."""
    if clamping_mode is None:
        return aten.clone(boxes)
    if is_rotated_bounding_format(format):
        corners = aten.reshape(convert(boxes, format, XYXYXYXY), (-1, 8))
        cut = cut_turned(corners, canvas_size, clamping_mode)
        return aten.reshape(convert(cut, XYXYXYXY, format), boxes.shape)
    height, width = canvas_size
    wide = boxes if boxes.is_floating_point() else boxes.to(dt.float32)
    xyxy = convert(wide, format, XYXY)
    x, y = aten.clamp(xyxy[..., 0::2], 0, width), aten.clamp(xyxy[..., 1::2], 0, height)
    cut = aten.stack((x[..., 0], y[..., 0], x[..., 1], y[..., 1]), -1)
    return convert(cut, XYXY, format).to(boxes.dtype)


def clamp_bounding_boxes(
    inpt: Any,
    format: BoundingBoxFormat | None = None,
    canvas_size: tuple[int, int] | None = None,
    clamping_mode: str | None = "auto",
) -> Any:
    """Boxes cut to their image.

    format, canvas_size: for plain tensors only. clamping_mode: "soft", "hard", None (nothing is
    cut) or "auto" (what the `BoundingBoxes` say); upright boxes are cut alike by soft and hard.
    """
    if clamping_mode not in (None, "soft", "hard", "auto"):
        raise ValueError(f"clamping_mode must be soft, hard, auto or None, got {clamping_mode}")
    if is_pure_tensor(inpt):
        if format is None or canvas_size is None or clamping_mode == "auto":
            raise ValueError(
                "For pure tensor inputs, `format`, `canvas_size` and `clamping_mode` have to be"
                " passed."
            )
        return clamp(inpt, named_format(format), canvas_size, clamping_mode)
    if isinstance(inpt, BoundingBoxes):
        if format is not None or canvas_size is not None:
            raise ValueError(
                "For bounding box tv_tensor inputs, `format` and `canvas_size` must not be passed."
            )
        mode = inpt.clamping_mode if clamping_mode == "auto" else clamping_mode
        return wrap(clamp(inpt.as_subclass(Tensor), inpt.format, inpt.canvas_size, mode), like=inpt)
    raise TypeError(
        "Input can either be a plain tensor or a bounding box tv_tensor, but got"
        f" {type(inpt)} instead."
    )


def clamp_points(points: Tensor, canvas_size: tuple[int, int]) -> Tensor:
    """Points (…, 2) moved to the nearest pixel of the canvas."""
    height, width = canvas_size
    x, y = aten.clamp(points[..., 0], 0, width - 1), aten.clamp(points[..., 1], 0, height - 1)
    return aten.stack((x, y), -1)


def clamp_keypoints(inpt: Any, canvas_size: tuple[int, int] | None = None) -> Any:
    """Points moved to the nearest pixel of their image. canvas_size: for plain tensors only."""
    if is_pure_tensor(inpt):
        if canvas_size is None:
            raise ValueError("For pure tensor inputs, `canvas_size` has to be passed.")
        return clamp_points(inpt, canvas_size)
    if isinstance(inpt, KeyPoints):
        if canvas_size is not None:
            raise ValueError("For keypoints tv_tensor inputs, `canvas_size` must not be passed.")
        return wrap(clamp_points(inpt.as_subclass(Tensor), inpt.canvas_size), like=inpt)
    raise TypeError(
        "Input can either be a plain tensor or a keypoints tv_tensor, but got"
        f" {type(inpt)} instead."
    )


def sanitize_bounding_boxes(
    bounding_boxes: Any,
    format: BoundingBoxFormat | None = None,
    canvas_size: tuple[int, int] | None = None,
    min_size: float = 1.0,
    min_area: float = 1.0,
) -> tuple[Any, Tensor]:
    """The boxes that are good, and the mask (N) of them among all.

    A box is removed that reaches beyond its image, or whose width or height is below `min_size` or
    its area below `min_area`; the height of a turned box counts as
    hypot(x2 - x1, y4 - y1). format, canvas_size: for plain tensors only.
    """
    if is_pure_tensor(bounding_boxes):
        if format is None or canvas_size is None:
            raise ValueError(
                "format and canvas_size cannot be None if bounding_boxes is a pure tensor."
                f" Got format={format} and canvas_size={canvas_size}. Set those to appropriate"
                " values or pass bounding_boxes as a tv_tensors.BoundingBoxes object."
            )
        boxes = bounding_boxes
        kind, size = named_format(format), canvas_size
    elif isinstance(bounding_boxes, BoundingBoxes):
        if format is not None or canvas_size is not None:
            raise ValueError(
                "format and canvas_size must be None when bounding_boxes is a"
                f" tv_tensors.BoundingBoxes instance. Got format={format} and"
                f" canvas_size={canvas_size}. Leave those to None or pass bounding_boxes as a pure"
                " tensor."
            )
        boxes = bounding_boxes.as_subclass(Tensor)
        kind, size = bounding_boxes.format, bounding_boxes.canvas_size
    else:
        raise ValueError(
            "bounding_boxes must be a tv_tensors.BoundingBoxes instance or a pure tensor."
        )
    good = _good_boxes(boxes, kind, size, min_size, min_area)
    return wrap(boxes[good], like=bounding_boxes), good


def _good_boxes(
    boxes: Tensor,
    format: BoundingBoxFormat,
    canvas_size: tuple[int, int],
    min_size: float,
    min_area: float,
) -> Tensor:
    height, width = canvas_size
    turned = is_rotated_bounding_format(format)
    corners = convert(boxes, format, XYXYXYXY if turned else XYXY)
    w, h = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    if turned:
        # torchvision's measure of the height takes the x of the upper side, not of the left one.
        w, h = aten.hypot(w, h), aten.hypot(w, corners[:, 7] - corners[:, 1])
    x, y = corners[:, 0::2], corners[:, 1::2]
    good = w * h >= min_area
    conditions = [w >= min_size, h >= min_size]
    for where, end in ((x, width), (y, height)):
        conditions += [(where >= 0).all(-1), (where <= end).all(-1)]
    for condition in conditions:
        good = aten.logical_and(good, condition)
    return good


def sanitize_keypoints(
    key_points: Any, canvas_size: tuple[int, int] | None = None
) -> tuple[Any, Tensor]:
    """The points that lie in their image, and the mask of them among all.

    Groups of points (N, …, 2) go or stay as a whole. canvas_size: for plain tensors only.
    """
    if is_pure_tensor(key_points):
        if canvas_size is None:
            raise ValueError(
                "canvas_size cannot be None if key_points is a pure tensor. Set it to an"
                " appropriate value or pass key_points as a tv_tensors.KeyPoints object."
            )
        points, size = key_points, canvas_size
    elif isinstance(key_points, KeyPoints):
        if canvas_size is not None:
            raise ValueError(
                "canvas_size must be None when key_points is a tv_tensors.KeyPoints instance. Got"
                f" canvas_size={canvas_size}. Leave it to None or pass key_points as a pure tensor."
            )
        points, size = key_points.as_subclass(Tensor), key_points.canvas_size
    else:
        raise ValueError("key_points must be a tv_tensors.KeyPoints instance or a pure tensor.")
    height, width = size
    x, y = points[..., 0], points[..., 1]
    good = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    if good.ndim > 1:
        good = good.flatten(1).all(-1)
    return wrap(points[good], like=key_points), good
