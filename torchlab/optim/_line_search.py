"""A line search for the strong Wolfe conditions.

Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6, with cubic interpolation
(3.59) and safeguards of the bracket. Source:
https://docs.pytorch.org/docs/2.13/generated/torch.optim.LBFGS.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

DECREASE, CURVATURE, LIMIT = 1e-4, 0.9, 25  # c₁, c₂ and the most evaluations


class Point(NamedTuple):
    """Loss, gradient and slope at step `t` along the direction."""

    t: Any
    loss: float
    gradient: Any
    slope: Any


def strong_wolfe(
    at: Callable[[Any], Point], t: Any, start: Point, longest: Any, change: float
) -> tuple[Point, int]:
    """A point with enough decrease and a slope flat enough, or the best of those seen, and the
    number of evaluations.

    at: evaluates a step. start: the point at 0. longest: the largest |element| of the direction; a
    bracket in which no parameter moves by `change` is not searched further.
    """
    before, here = start, at(t)
    tries = 0
    while tries < LIMIT:
        if _too_high(here, start) or (tries > 1 and here.loss >= before.loss):
            return _zoom(at, [before, here], start, longest, change, tries)
        if abs(here.slope) <= -CURVATURE * start.slope:
            return here, tries + 1
        if here.slope >= 0:
            return _zoom(at, [before, here], start, longest, change, tries)
        bounds = here.t + 0.01 * (here.t - before.t), here.t * 10
        before, here = here, at(_lowest(before, here, bounds))
        tries += 1
    return (start if start.loss <= here.loss else here), tries + 1


def _zoom(
    at: Callable[[Any], Point],
    bracket: list[Point],
    start: Point,
    longest: Any,
    change: float,
    tries: int,
) -> tuple[Point, int]:
    """Search within the bracket."""
    stuck = False
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    while tries < LIMIT:
        if abs(bracket[1].t - bracket[0].t) * longest < change:
            break
        t = _lowest(bracket[0], bracket[1])
        left, right = min(b.t for b in bracket), max(b.t for b in bracket)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # so near the edge that little is won
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        here = at(t)
        tries += 1
        if _too_high(here, start) or here.loss >= bracket[low].loss:
            bracket[1 - low] = here
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        done = abs(here.slope) <= -CURVATURE * start.slope
        if not done and here.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = here
        if done:
            break
    return bracket[low], tries + 1


def _too_high(here: Point, start: Point) -> bool:
    return bool(here.loss > start.loss + DECREASE * here.t * start.slope)


def _lowest(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through two points with their slopes is lowest, within the bounds (else
    between them)."""
    if a.t > b.t:
        a, b = b, a
    least, most = (a.t, b.t) if bounds is None else bounds
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2.0
    d2 = square**0.5
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(t, least), most)
