"""Points and boxes under maps of the plane.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#v2-api-reference-recommended
"""

from __future__ import annotations

from collections.abc import Callable

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms.v2.functional._box_formats import XYXY, XYXYXYXY, convert
from torchlab.vision.transforms.v2.functional._clamps import clamp
from torchlab.vision.transforms.v2.functional._turned import to_rectangles
from torchlab.vision.tv_tensors import BoundingBoxFormat, is_rotated_bounding_format

Map = Callable[[Tensor], Tensor]
"""Floating-point points (N, 2) to points (N, 2)."""


def move_points(points: Tensor, move: Map) -> Tensor:
    """Points (…, 2) moved, of their own type."""
    wide = points if points.is_floating_point() else points.to(dt.float32)
    return aten.reshape(move(aten.reshape(wide, (-1, 2))), points.shape).to(points.dtype)


def move_boxes(
    boxes: Tensor,
    format: BoundingBoxFormat,
    move: Map,
    canvas_size: tuple[int, int] | None,
    clamping_mode: str | None,
    whole_before: bool = False,
    whole_after: bool = False,
) -> Tensor:
    """Boxes (…, K) around their moved corners, clamped to the canvas if there is one, of their own
    type.

    whole_before, whole_after: whether whole numbers change their format as whole numbers, and not
        as floating-point ones, before and after they are moved.
    """
    wide = boxes if boxes.is_floating_point() else boxes.to(dt.float32)
    if is_rotated_bounding_format(format):
        corners = aten.reshape(convert(wide, format, XYXYXYXY), (-1, 8))
        moved = aten.reshape(move(aten.reshape(corners, (-1, 2))), (-1, 8))
        out, given = to_rectangles(moved), XYXYXYXY
    else:
        corners = convert(boxes if whole_before else wide, format, XYXY)
        corners = aten.reshape(corners.to(wide.dtype), (-1, 4))
        four = corners[:, [0, 1, 2, 1, 2, 3, 0, 3]]
        moved = aten.reshape(move(aten.reshape(four, (-1, 2))), (-1, 4, 2))
        out, given = aten.cat((moved.amin(1), moved.amax(1)), -1), XYXY
    if whole_after:
        out = out.to(boxes.dtype)
    if canvas_size is not None:
        out = clamp(out, given, canvas_size, clamping_mode)
    return aten.reshape(convert(out, given, format), boxes.shape).to(boxes.dtype)


def affine_map(matrix: list[float]) -> Map:
    """(x, y) to (m0 x + m1 y + m2, m3 x + m4 y + m5)."""

    def move(points: Tensor) -> Tensor:
        m = aten.tensor(matrix, dtype=points.dtype, device=points.device).reshape(2, 3)
        return points[:, :1] * m[:, 0] + points[:, 1:] * m[:, 1] + m[:, 2]

    return move


def shift_boxes(
    boxes: Tensor,
    format: BoundingBoxFormat,
    dx: int,
    dy: int,
    canvas_size: tuple[int, int],
    clamping_mode: str | None,
) -> Tensor:
    """Boxes (…, K) moved by (dx, dy), clamped to the canvas."""
    count = 4 if format == XYXYXYXY else 2 if format == XYXY else 1
    by = [dx, dy] * count + [0] * (boxes.shape[-1] - 2 * count)
    moved = boxes + aten.tensor(by, dtype=boxes.dtype, device=boxes.device)
    return clamp(moved, format, canvas_size, clamping_mode)
