"""The elements of a batch one by one, and back: for what runs once for each.

An element is a wrapper of the same vmap without a hidden dimension, so that the vmap's own tape,
and transforms within it, go on seeing what becomes of it. All three functions are linear, and each
is the derivative of another: so they can be differentiated as often as one likes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.batches import Batched, batched, held, is_batched, whole
from torchlab._core.dispatch.duals import Dual, dual, primal_of, tangent_of
from torchlab._core.dispatch.exotic import record
from torchlab._core.dispatch.levels import LEVELS, edge_at, top_level
from torchlab._core.dispatch.registry import aten


def element(x: Any, i: int, n: int, level: int) -> Any:
    """Element i of what the vmap of `level` (over n) hides; others as they are. Without a tape that
    knows of it, it is no wrapper at all."""
    if x._level < level:
        return x
    if x._level == level and edge_at(level, x) is None:
        return _picked(x, i, level)
    return _row(x, i, n, level)


def _picked(x: Any, i: int, level: int) -> Any:
    return x.value if x.bdim is None else _below(level, lambda: aten.select(x.value, x.bdim, i))


def _row(x: Any, i: int, n: int, level: int) -> Any:
    def one(parts: list[Any]) -> Any:
        (x,) = parts
        if not is_batched(x, level):
            return x
        return batched(_picked(x, i, level), None, level)

    return record(
        "UnbatchBackward0",
        _through([x], level, one, lambda parts: _row(parts[0], i, n, level)),
        (x,),
        lambda g: (_placed(g, i, n, level),),
    )


def _placed(g: Any, i: int, n: int, level: int) -> Any:
    """A batch of zeros but for element i."""

    def one(parts: list[Any]) -> Any:
        value = held(parts[0], level)
        shape = (n, *value._a.shape)
        return batched(_below(level, lambda: aten.select_backward(value, shape, 0, i)), 0, level)

    return record(
        "PlaceBackward0",
        _through([g], level, one, lambda parts: _placed(parts[0], i, n, level)),
        (g,),
        lambda h: (_row(h, i, n, level),),
    )


def stacked(found: list[Any], level: int) -> Any:
    """Elements as a batch of `level` again."""
    n = len(found)

    def one(parts: list[Any]) -> Any:
        values = [held(x, level) for x in parts]
        return batched(_below(level, lambda: aten.stack(values)), 0, level)

    return record(
        "BatchBackward0",
        _through(found, level, one, lambda parts: stacked(parts, level)),
        found,
        lambda g: tuple(_row(g, i, n, level) for i in range(n)),
    )


def _below(level: int, call: Callable[[], Any]) -> Any:
    running = LEVELS.running
    LEVELS.running = running[: level - 1]
    try:
        return call()
    finally:
        LEVELS.running = running


def _through(
    xs: list[Any], level: int, one: Callable[[list[Any]], Any], again: Callable[[list[Any]], Any]
) -> Any:
    """A linear function of tensors: `one` at `level`; `again`, with tapes, on what the wrappers of
    transforms within it hold."""
    top = top_level(xs)
    if top <= level:
        return one(xs)
    cls = next(type(x) for x in xs if x._level == top)
    if cls is Dual:
        primals = [primal_of(x, top) for x in xs]
        given = [tangent_of(x, top) for x in xs]
        tangents = [
            aten.zeros_like(p) if t is None else t for p, t in zip(primals, given, strict=True)
        ]
        return dual(again(primals), again(tangents), top)
    if cls is not Batched:
        raise NotImplementedError(
            f"vmap: {cls.__name__} within a vmap whose function runs once for each element"
        )
    if all(x._level < top or x.bdim is None for x in xs):
        return batched(again([held(x, top) for x in xs]), None, top)
    size = next(x.value._a.shape[x.bdim] for x in xs if is_batched(x, top))
    return batched(again([whole(x, size, top) for x in xs]), 0, top)


__all__ = ["element", "stacked"]
