"""Turned boxes in other formats: "xywhr" (first corner, size, angle), "cxcywhr" (centre, size,
angle) and "xyxyxyxy" (the four corners).

Note [Turned boxes]
Image rows go down, an angle r > 0 turns counter-clockwise as one sees it: the upper side of a box
of width w leaves its corner in the direction (cos r, -sin r), the left side of height h in the
direction (sin r, cos r).

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.ops.box_convert.html
"""

from __future__ import annotations

from collections.abc import Callable

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor


def _sides(b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The upper and the left side (dx, dy) of boxes (…, 5)."""
    w, h, r = b[..., 2], b[..., 3], aten.deg2rad(b[..., 4])
    cos, sin = aten.cos(r), aten.sin(r)
    return w * cos, -w * sin, h * sin, h * cos


def _xywhr_to_cxcywhr(b: Tensor) -> Tensor:
    ux, uy, lx, ly = _sides(b)
    middle = aten.stack((b[..., 0] + (ux + lx) / 2, b[..., 1] + (uy + ly) / 2), -1)
    return aten.cat((middle, b[..., 2:]), -1)


def _cxcywhr_to_xywhr(b: Tensor) -> Tensor:
    ux, uy, lx, ly = _sides(b)
    corner = aten.stack((b[..., 0] - (ux + lx) / 2, b[..., 1] - (uy + ly) / 2), -1)
    return aten.cat((corner, b[..., 2:]), -1)


def _xywhr_to_corners(b: Tensor) -> Tensor:
    ux, uy, lx, ly = _sides(b)
    x, y = b[..., 0], b[..., 1]
    return aten.stack((x, y, x + ux, y + uy, x + ux + lx, y + uy + ly, x + lx, y + ly), -1)


def _corners_to_xywhr(b: Tensor) -> Tensor:
    ux, up = b[..., 2] - b[..., 0], b[..., 1] - b[..., 3]
    lx, ly = b[..., 4] - b[..., 2], b[..., 5] - b[..., 3]
    angle = aten.rad2deg(aten.atan2(up, ux))
    w, h = aten.sqrt(ux**2 + up**2), aten.sqrt(lx**2 + ly**2)
    return aten.stack((b[..., 0], b[..., 1], w, h, angle), -1)


# From one format (by its lower-case name) into another, step by step.
STEPS: dict[tuple[str, str], tuple[Callable[[Tensor], Tensor], ...]] = {
    ("xywhr", "cxcywhr"): (_xywhr_to_cxcywhr,),
    ("cxcywhr", "xywhr"): (_cxcywhr_to_xywhr,),
    ("xywhr", "xyxyxyxy"): (_xywhr_to_corners,),
    ("xyxyxyxy", "xywhr"): (_corners_to_xywhr,),
    ("cxcywhr", "xyxyxyxy"): (_cxcywhr_to_xywhr, _xywhr_to_corners),
    ("xyxyxyxy", "cxcywhr"): (_corners_to_xywhr, _xywhr_to_cxcywhr),
}
FORMATS = ("xywhr", "cxcywhr", "xyxyxyxy")
