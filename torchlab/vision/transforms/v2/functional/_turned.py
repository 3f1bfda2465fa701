"""Turned boxes: cut to the image, and made rectangles again.

Note [Cutting a turned box]
A turned box keeps its angle when it is cut. "soft" cuts what no part of the image needs: the result
is the smallest box around what the box and the image have in common. "hard" leaves nothing outside:
one border of the image after the other (left, top, right, bottom), the corner that reaches farthest
beyond it moves to the middle of the piece of the border that lies in the box; its two sides follow,
and the other two grow again as far as the box went before and the image reaches. A level box is cut
as upright ones are, and what has nothing in common with the image shrinks to its lower left corner.

Where torchvision takes a box for level that is tilted by less than a tenth of a pixel, and returns
its corners in another order or numbers without meaning, this cuts it as any other.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.transforms.v2.ClampBoundingBoxes.html
"""

from __future__ import annotations

import math

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor


def to_rectangles(corners: Tensor) -> Tensor:
    """Parallelograms (N, 8) as rectangles with the same longer diagonal and the same direction of
    the longer side.

    Of other quadrilaterals the first, second and fourth corner make the parallelogram, whose middle
    is the one between the first and the third. Boxes that are turned clockwise by 90 to 180 degrees
    keep the diagonal from the first corner, the longer one or not: so does torchvision.
    """
    p = aten.reshape(corners, (-1, 4, 2))
    upper, left = p[:, 1] - p[:, 0], p[:, 3] - p[:, 0]
    first, second = upper + left, left - upper
    turned_back = (upper[:, 1] > 0) & (left[:, 1] <= 0)
    keeps_first = (_dot(first, first) >= _dot(second, second)) | turned_back
    keeps_upper = (_dot(upper, upper) >= _dot(left, left))[:, None]
    side = aten.where(keeps_upper, upper, left)
    along = side / aten.clamp(_dot(side, side)[:, None], min=1e-12)
    # From a corner that stays, the diagonal's part along the side leads to a new corner.
    diagonal = aten.where(keeps_first[:, None], first, second)
    middle = (p[:, 0] + p[:, 2]) / 2
    start, end = middle - diagonal / 2, middle + diagonal / 2
    near = start + _dot(diagonal, along)[:, None] * side
    far = start + end - near
    # Of the two new corners, `near` is the next one after `start` if the side leads there.
    follows = (keeps_upper[:, 0] == keeps_first)[:, None]
    next_one, last = aten.where(follows, near, far), aten.where(follows, far, near)
    kept = aten.stack((start, next_one, end, last), 1)
    other = aten.stack((last, start, next_one, end), 1)
    return aten.reshape(aten.where(keeps_first[:, None, None], kept, other), (-1, 8))


def cut_turned(corners: Tensor, canvas_size: tuple[int, int], mode: str) -> Tensor:
    """Turned boxes (N, 8) cut to the canvas, "soft" or "hard"."""
    p = aten.reshape(corners, (-1, 4, 2))
    a, b, inside = _common(p, canvas_size)
    out = _around(p, a, b, inside)
    if mode == "hard":
        # What lies along the borders has no corner that reaches farther than its neighbour.
        level = _directions(p)[0].abs().amin(-1) < 1e-5
        out = aten.where(level[:, None, None], out, _hard(p, canvas_size))
    # What lies outside altogether shrinks to one point of the border.
    nowhere = aten.tensor([0, canvas_size[0]], dtype=p.dtype, device=p.device)
    return aten.reshape(aten.where(inside.any(1)[:, None, None], out, nowhere), (-1, 8))


def _directions(p: Tensor) -> tuple[Tensor, Tensor]:
    """The unit vectors (N, 2) from the first corner to the second and to the fourth."""
    u, v = p[:, 1] - p[:, 0], p[:, 3] - p[:, 0]
    return tuple(  # type: ignore[return-value]
        d / aten.clamp((d**2).sum(-1, keepdim=True).sqrt(), min=1e-12) for d in (u, v)
    )


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1)


def _common(p: Tensor, canvas_size: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Points that have the corners of what box and canvas have in common among them, as distances
    (N, 24) along the box's two directions, and which of them lie in both.

    Such corners are where sides cross borders, and among the corners of both.
    """
    height, width = canvas_size
    u, v = _directions(p)
    ends = aten.tensor(
        [[0, 0], [width, 0], [width, height], [0, height]], dtype=p.dtype, device=p.device
    )
    candidates = [p, ends.expand(p.shape[0], 4, 2)]
    following = p[:, [1, 2, 3, 0]]
    for axis, at in ((0, 0), (0, width), (1, 0), (1, height)):
        way = following[..., axis] - p[..., axis]
        share = (at - p[..., axis]) / aten.where(way == 0, aten.ones_like(way), way)
        share = aten.unsqueeze(aten.where(way == 0, aten.full_like(way, -1), share), -1)
        candidates.append(aten.where((share >= 0) & (share <= 1), p + share * (following - p), p))
    points = aten.cat(candidates, 1)
    off = points - p[:, :1]
    a, b = _dot(off, u[:, None]), _dot(off, v[:, None])
    w, h = _dot(p[:, 1] - p[:, 0], u)[:, None], _dot(p[:, 3] - p[:, 0], v)[:, None]
    x, y = points[..., 0], points[..., 1]
    slack = 1e-5 * max(height, width)
    inside = aten.ones_like(a, dtype=dt.bool_)
    for where, end in ((a, w), (b, h), (x, width), (y, height)):
        inside = aten.logical_and(inside, where >= -slack)
        inside = aten.logical_and(inside, where <= end + slack)
    return a, b, inside


def _around(p: Tensor, a: Tensor, b: Tensor, inside: Tensor) -> Tensor:
    """The smallest box in the directions of `p` around points."""
    u, v = _directions(p)
    least = [aten.where(inside, c, aten.full_like(c, math.inf)).amin(1) for c in (a, b)]
    most = [aten.where(inside, c, aten.full_like(c, -math.inf)).amax(1) for c in (a, b)]
    (a0, b0), (a1, b1) = least, most
    ends = ((a0, b0), (a1, b0), (a1, b1), (a0, b1))
    return aten.stack([p[:, 0] + s[:, None] * u + t[:, None] * v for s, t in ends], 1)


def _hard(p: Tensor, canvas_size: tuple[int, int]) -> Tensor:
    height, width = canvas_size
    u, v = p[:, 1] - p[:, 0], p[:, 3] - p[:, 0]
    # Boxes whose corners go round the other way (a projection can do that) are read backwards.
    backwards = (u[:, 0] * v[:, 1] < u[:, 1] * v[:, 0])[:, None, None]
    before = p = aten.where(backwards, p[:, [0, 3, 2, 1]], p)
    for _ in range(4):
        p = _hard_left(p, before, height, width)
        # A quarter turn: the upper border becomes the left one.
        p, before = (aten.stack((q[..., 1], width - q[..., 0]), -1) for q in (p, before))
        height, width = width, height
    return aten.where(backwards, p[:, [0, 3, 2, 1]], p)


def _piece(p: Tensor) -> tuple[Tensor, Tensor]:
    """From where to where (y, y) the line x = 0 lies in boxes whose first corner is the leftmost
    one."""

    def crossing(i: int, j: int) -> Tensor:
        way = p[:, j, 0] - p[:, i, 0]
        way = aten.where(way == 0, aten.ones_like(way), way)
        return p[:, i, 1] - p[:, i, 0] / way * (p[:, j, 1] - p[:, i, 1])

    out = p[..., 0] < 0
    one = aten.where(
        out[:, 1], aten.where(out[:, 2], crossing(2, 3), crossing(1, 2)), crossing(0, 1)
    )
    other = aten.where(
        out[:, 3], aten.where(out[:, 2], crossing(2, 1), crossing(3, 2)), crossing(0, 3)
    )
    return aten.minimum(one, other), aten.maximum(one, other)


def _hard_left(p: Tensor, before: Tensor, height: int, width: int) -> Tensor:
    lowest = p[..., 0].amin(1, keepdim=True)
    y = aten.where(p[..., 0] <= lowest, p[..., 1], aten.full_like(p[..., 1], math.inf))
    first = y.argmin(1, keepdim=True)
    turn = aten.unsqueeze((first + aten.arange(4, device=p.device)) % 4, -1).expand_as(p)
    back = aten.unsqueeze((aten.arange(4, device=p.device) - first) % 4, -1).expand_as(p)
    q, old = aten.gather(p, 1, turn), aten.gather(before, 1, turn)
    u, v = _directions(q)

    upper, lower = _piece(q)
    # In the image, unless the box never came so far.
    upper = aten.minimum(aten.clamp(upper, min=0), _piece(old)[1])
    lower = aten.maximum(aten.clamp(lower, max=height), upper)
    middle = (upper + lower) / 2
    corner = aten.stack((aten.zeros_like(middle), middle), -1)

    # In the box's own directions, from the new corner.
    def reach(points: Tensor, direction: Tensor) -> Tensor:
        return _dot(points - corner, direction)

    inf = aten.full_like(middle, math.inf)

    def room(distance: Tensor, speed: Tensor) -> Tensor:
        return aten.where(speed > 1e-9, distance / aten.clamp(speed, min=1e-9), inf)

    w, h = reach(q[:, 1], u), reach(q[:, 3], v)
    most_w = aten.minimum(room(middle, -u[:, 1]), room(width - h * v[:, 0], u[:, 0]))
    most_w = aten.maximum(w, most_w)
    most_h = aten.minimum(room(height - middle, v[:, 1]), room(width - most_w * u[:, 0], v[:, 0]))
    w = aten.maximum(w, aten.minimum(reach(old[:, 1], u), most_w))[:, None]
    h = aten.maximum(h, aten.minimum(reach(old[:, 3], v), most_h))[:, None]
    cut = aten.stack((corner, corner + w * u, corner + w * u + h * v, corner + h * v), 1)
    cut = aten.where((q[:, 0, 0] < 0)[:, None, None], cut, q)
    return aten.gather(cut, 1, back)
