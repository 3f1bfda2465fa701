"""Turned boxes: cut to the image, and made rectangles again.

Note [Cutting a turned box]
A turned box keeps its angle when it is cut. "soft" cuts what no part of the image needs: the result
is the smallest box around what the box and the image have in common. "hard" leaves nothing outside:
one border of the image after the other (left, top, right, bottom), the corner that reaches farthest
beyond it moves to the middle of the piece of the border that lies in the box; its two sides follow,
and the other two grow again as far as the box went before and the image reaches.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.ClampBoundingBoxes.html
"""

from __future__ import annotations

import math

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor


def to_rectangles(corners: Tensor) -> Tensor:
    """Parallelograms (N, 8) as rectangles with the same longer diagonal and the same direction of
    the first side."""
    p = aten.reshape(corners, (-1, 4, 2))
    first, second = p[:, 2] - p[:, 0], p[:, 3] - p[:, 1]
    keeps_first = aten.unsqueeze((first**2).sum(-1) >= (second**2).sum(-1), -1)
    side = p[:, 1] - p[:, 0]
    # The diagonal's part along the side is the new side: from a corner that stays.
    along = side / (side**2).sum(-1, keepdim=True)
    part_first = (first * along).sum(-1, keepdim=True) * side
    part_second = -(second * along).sum(-1, keepdim=True) * side
    one = aten.where(keeps_first, p[:, 0], p[:, 1] - part_second)
    two = aten.where(keeps_first, p[:, 0] + part_first, p[:, 1])
    three = aten.where(keeps_first, p[:, 2], p[:, 3] + part_second)
    four = aten.where(keeps_first, p[:, 2] - part_first, p[:, 3])
    return aten.cat((one, two, three, four), -1)


def cut_turned(corners: Tensor, canvas_size: tuple[int, int], mode: str) -> Tensor:
    """Turned boxes (N, 8) cut to the canvas, "soft" or "hard"."""
    p = aten.reshape(corners, (-1, 4, 2))
    out = _soft(p, canvas_size) if mode == "soft" else _hard(p, canvas_size)
    return aten.reshape(out, (-1, 8))


def _directions(p: Tensor) -> tuple[Tensor, Tensor]:
    """The unit vectors (N, 2) from the first corner to the second and to the fourth."""
    u, v = p[:, 1] - p[:, 0], p[:, 3] - p[:, 0]
    return tuple(  # type: ignore[return-value]
        d / aten.clamp((d**2).sum(-1, keepdim=True).sqrt(), min=1e-12) for d in (u, v)
    )


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1)


def _soft(p: Tensor, canvas_size: tuple[int, int]) -> Tensor:
    height, width = canvas_size
    u, v = _directions(p)
    # What box and canvas have in common has its corners where sides cross borders, and among the
    # corners of both.
    ends = aten.tensor(
        [[0, 0], [width, 0], [width, height], [0, height]], dtype=p.dtype, device=p.device
    )
    candidates = [p, ends.expand(p.shape[0], 4, 2)]
    following = p[:, [1, 2, 3, 0]]
    for axis, at in ((0, 0), (0, width), (1, 0), (1, height)):
        way = following[..., axis] - p[..., axis]
        share = (at - p[..., axis]) / aten.where(way == 0, aten.ones_like(way), way)
        share = aten.unsqueeze(aten.where(way == 0, aten.full_like(way, -1), share), -1)
        candidates.append(
            aten.where((share >= 0) & (share <= 1), p + share * (following - p), p)
        )
    points = aten.cat(candidates, 1)
    off = points - p[:, :1]
    a, b = _dot(off, u[:, None]), _dot(off, v[:, None])
    w, h = _dot(p[:, 1] - p[:, 0], u)[:, None], _dot(p[:, 3] - p[:, 0], v)[:, None]
    x, y = points[..., 0], points[..., 1]
    slack = 1e-5 * max(height, width)
    inside = (a >= -slack) & (a <= w + slack) & (b >= -slack) & (b <= h + slack)
    inside = inside & (x >= -slack) & (x <= width + slack)
    inside = inside & (y >= -slack) & (y <= height + slack)
    least = [aten.where(inside, c, aten.full_like(c, math.inf)).amin(1) for c in (a, b)]
    most = [aten.where(inside, c, aten.full_like(c, -math.inf)).amax(1) for c in (a, b)]
    parts = []
    for s, t in ((least[0], least[1]), (most[0], least[1]), (most[0], most[1]), (least[0], most[1])):
        parts.append(p[:, 0] + s[:, None] * u + t[:, None] * v)
    return aten.where(inside.any(1)[:, None, None], aten.stack(parts, 1), p)


def _hard(p: Tensor, canvas_size: tuple[int, int]) -> Tensor:
    height, width = canvas_size
    before = p
    for _ in range(4):
        p = _hard_left(p, before, height, width)
        # A quarter turn: the upper border becomes the left one.
        p, before = (aten.stack((q[..., 1], width - q[..., 0]), -1) for q in (p, before))
        height, width = width, height
    return p


def _hard_left(p: Tensor, before: Tensor, height: int, width: int) -> Tensor:
    lowest = p[..., 0].amin(1, keepdim=True)
    y = aten.where(p[..., 0] <= lowest, p[..., 1], aten.full_like(p[..., 1], math.inf))
    first = y.argmin(1, keepdim=True)
    turn = aten.unsqueeze((first + aten.arange(4, device=p.device)) % 4, -1).expand_as(p)
    back = aten.unsqueeze((aten.arange(4, device=p.device) - first) % 4, -1).expand_as(p)
    q, old = aten.gather(p, 1, turn), aten.gather(before, 1, turn)
    u, v = _directions(q)

    def crossing(i: int, j: int) -> Tensor:
        way = q[:, j, 0] - q[:, i, 0]
        way = aten.where(way == 0, aten.ones_like(way), way)
        return q[:, i, 1] - q[:, i, 0] / way * (q[:, j, 1] - q[:, i, 1])

    out = q[..., 0] < 0
    upper = aten.where(
        out[:, 1], aten.where(out[:, 2], crossing(2, 3), crossing(1, 2)), crossing(0, 1)
    )
    lower = aten.where(
        out[:, 3], aten.where(out[:, 2], crossing(2, 1), crossing(3, 2)), crossing(0, 3)
    )
    upper, lower = aten.minimum(upper, lower), aten.maximum(upper, lower)
    inner = aten.clamp(upper, min=0) + aten.clamp(lower, max=height)
    middle = aten.where(lower < 0, lower, aten.where(upper > height, upper, inner / 2))
    corner = aten.stack((aten.zeros_like(middle), middle), -1)

    # In the box's own directions, from the new corner.
    def reach(points: Tensor, direction: Tensor) -> Tensor:
        return _dot(points - corner, direction)

    inf = aten.full_like(middle, math.inf)

    def room(distance: Tensor, speed: Tensor) -> Tensor:
        return aten.where(speed > 1e-9, distance / aten.clamp(speed, min=1e-9), inf)

    w, h = reach(q[:, 1], u), reach(q[:, 3], v)
    most_w = aten.minimum(room(middle, -u[:, 1]), room(width - h * v[:, 0], u[:, 0]))
    most_h = aten.minimum(
        room(height - middle, v[:, 1]), room(width - most_w * u[:, 0], v[:, 0])
    )
    w = aten.maximum(w, aten.minimum(reach(old[:, 1], u), most_w))[:, None]
    h = aten.maximum(h, aten.minimum(reach(old[:, 3], v), most_h))[:, None]
    cut = aten.stack((corner, corner + w * u, corner + w * u + h * v, corner + h * v), 1)
    cut = aten.where((q[:, 0, 0] < 0)[:, None, None], cut, q)
    return aten.gather(cut, 1, back)
