"""Reading and writing by index.

Source: https://onnx.ai/onnx/operators/onnx__GatherND.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core import dtype as dt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates
from torchlab.onnx.translations.shapes import LAST


@translates("index_select")
def index_select(g: Builder, node: Node, x: Node, dim: int, index: Node) -> str:
    i = g.of(index, dt.int64)
    if not g.rank(index):
        i = g.op("Unsqueeze", i, g.const([0]))
    if not g.rank(x):
        return g.op("Identity", g.of(x))
    return g.op("Gather", g.of(x), i, axis=dim)


def needs_dims(g: Builder, x: Node) -> None:
    """ONNX's index operators take no tensors without dims."""
    if not g.rank(x):
        raise Untranslatable("a tensor without dims is indexed")


@translates("gather")
def gather(g: Builder, node: Node, x: Node, dim: int, index: Node, *rest: Any) -> str:
    needs_dims(g, x)
    a = g.of(x)
    for d, (n, m) in enumerate(zip(g.shape(x), g.shape(index), strict=True)):
        if d != dim % g.rank(x) and g.said(n) != g.said(m):  # only as much as is read
            a = g.op("Slice", a, g.const([0]), g.size(m), g.const([d]))
    return g.op("GatherElements", a, g.of(index, dt.int64), axis=dim)


@translates("take")
def take(g: Builder, node: Node, x: Node, index: Node) -> str:
    return g.op("Gather", g.op("Reshape", g.of(x), g.const([-1])), g.of(index, dt.int64), axis=0)


@translates("embedding")
def embedding(g: Builder, node: Node, weight: Node, index: Node, *rest: Any) -> str:
    return g.op("Gather", g.of(weight), g.of(index, dt.int64), axis=0)


@translates("index.Tensor")
def index(g: Builder, node: Node, x: Node, indices: Sequence[Node | None]) -> str:
    at = [d for d, i in enumerate(indices) if i is not None]
    tensors = [i for i in indices if i is not None]
    if len(at) == 1:
        return g.op("Gather", g.of(x), g.of(tensors[0], dt.int64), axis=at[0])
    rank = g.rank(x)
    rest = [d for d in range(rank) if d not in at]
    a = g.of(x)
    if [*at, *rest] != list(range(rank)):
        a = g.op("Transpose", a, perm=[*at, *rest])
    places, n = _places(g, tensors)
    r = g.op("GatherND", a, places)
    first = at[0]
    if first and at == list(range(first, first + len(at))):  # the result's dims stay there
        before = list(range(n, n + first))
        r = g.op("Transpose", r, perm=[*before, *range(n), *range(n + first, n + len(rest))])
    return r


def _places(g: Builder, tensors: Sequence[Node]) -> tuple[str, int]:
    """(indices broadcast and put side by side in a last dim, the number of their dims)."""
    values = [g.of(t, dt.int64) for t in tensors]
    n = max(g.rank(t) for t in tensors)
    total = values[0]
    for v in values[1:]:
        total = g.op("Add", total, v)
    shape = g.op("Shape", total)
    wide = [g.op("Unsqueeze", g.op("Expand", v, shape), g.const([-1])) for v in values]
    return g.op("Concat", *wide, axis=-1), n


@translates("index_put")
def index_put(
    g: Builder, node: Node, x: Node, indices: Sequence[Node | None], values: Node,
    accumulate: bool = False,
) -> str:  # fmt: skip
    tensors = [i for i in indices if i is not None]
    if any(g.dtype(t) is dt.bool_ for t in tensors):
        if len(tensors) == 1 and not g.rank(values) and g.rank(tensors[0]) == g.rank(x):
            return g.op("Where", g.of(tensors[0]), g.of(values, g.dtype(x)), g.of(x))
        raise Untranslatable("a write at the places of a mask; use torch.where")
    if list(indices[: len(tensors)]) != tensors:
        raise Untranslatable("a write at indices that do not begin with the first dim")
    places, n = _places(g, tensors)
    rest = g.op("Shape", g.of(x), start=len(tensors)) if g.rank(x) > len(tensors) else None
    shape = g.op("Shape", places, start=0, end=n)
    shape = shape if rest is None else g.op("Concat", shape, rest, axis=0)
    updates = g.op("Expand", g.of(values, g.dtype(x)), shape)
    return g.op("ScatterND", g.of(x), places, updates, reduction="add" if accumulate else "none")


@translates("scatter.src", "scatter.value")
def scatter(g: Builder, node: Node, x: Node, dim: int, index: Node, source: Any) -> str:
    return _scattered(g, x, dim, index, source, "none")


def _scattered(g: Builder, x: Node, dim: int, index: Node, source: Any, reduction: str) -> str:
    needs_dims(g, x)
    i, d = g.of(index, dt.int64), g.dtype(x)
    if isinstance(source, Node) and g.rank(source):
        updates = g.of(source, d)
        if [g.said(n) for n in g.shape(source)] != [g.said(n) for n in g.shape(index)]:
            updates = g.op(
                "Slice", updates, g.const([0] * g.rank(index)), g.op("Shape", i),
                g.const(list(range(g.rank(index)))),
            )  # fmt: skip
    else:
        updates = g.op("Expand", g.of(source, d), g.op("Shape", i))
    return g.op("ScatterElements", g.of(x), i, updates, axis=dim, reduction=reduction)


@translates("scatter_add")
def scatter_add(g: Builder, node: Node, x: Node, dim: int, index: Node, source: Node) -> str:
    return _scattered(g, x, dim, index, source, "add")


_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


@translates("scatter_reduce.two")
def scatter_reduce(
    g: Builder, node: Node, x: Node, dim: int, index: Node, source: Node, how: str,
    include_self: bool = True,
) -> str:  # fmt: skip
    if not include_self or how not in _REDUCTIONS:
        raise Untranslatable(f"scatter_reduce '{how}' with include_self={include_self}")
    return _scattered(g, x, dim, index, source, _REDUCTIONS[how])


# ---- writes to a part ----------------------------------------------------------------------------


def _written(
    g: Builder, x: Node, dim: int, places: str, updates: str, reduction: str = "none"
) -> str:
    """`x` with `updates` at `places` (a vector) of a dim."""
    needs_dims(g, x)
    rank = g.rank(x)
    dim %= rank
    front = [dim, *(d for d in range(rank) if d != dim)]
    back = [front.index(d) for d in range(rank)]
    a = g.of(x)
    if dim:
        a, updates = g.op("Transpose", a, perm=front), g.op("Transpose", updates, perm=front)
    column = g.op("Unsqueeze", places, g.const([1]))
    r = g.op("ScatterND", a, column, updates, reduction=reduction)
    return g.op("Transpose", r, perm=back) if dim else r


@translates("select_scatter")
def select_scatter(g: Builder, node: Node, x: Node, source: Node, dim: int, index: Any) -> str:
    updates = g.op("Unsqueeze", g.of(source, g.dtype(x)), g.const([dim]))
    return _written(g, x, dim, g.vector(index), updates)


@translates("slice_scatter")
def slice_scatter(
    g: Builder, node: Node, x: Node, source: Node, dim: int = 0, start: Any = None,
    end: Any = None, step: Any = 1,
) -> str:  # fmt: skip
    n = g.op("Squeeze", g.op("Shape", g.of(x), start=dim % g.rank(x), end=dim % g.rank(x) + 1))
    every = g.op("Range", g.const(0), n, g.const(1))
    places = g.op(
        "Slice", every, g.vector(0 if start is None else start),
        g.vector(LAST if end is None else end), g.const([0]), g.vector(step),
    )  # fmt: skip
    return _written(g, x, dim, places, g.of(source, g.dtype(x)))


@translates("index_add")
def index_add(
    g: Builder, node: Node, x: Node, dim: int, index: Node, source: Node, alpha: Any = 1
) -> str:
    d = g.dtype(x)
    updates = g.of(source, d)
    if alpha != 1:
        updates = g.op("Mul", updates, g.of(alpha, d))
    return _written(g, x, dim, g.of(index, dt.int64), updates, "add")


@translates("index_copy")
def index_copy(g: Builder, node: Node, x: Node, dim: int, index: Node, source: Node) -> str:
    return _written(g, x, dim, g.of(index, dt.int64), g.of(source, g.dtype(x)))


@translates("index_fill")
def index_fill(g: Builder, node: Node, x: Node, dim: int, index: Node, value: Any) -> str:
    needs_dims(g, x)
    i = g.of(index, dt.int64)
    shape = list(g.shape(x))
    n = g.shape(index)[0] if g.rank(index) else 1
    shape[dim] = n
    return _written(g, x, dim, i, g.op("Expand", g.of(value, g.dtype(x)), g.dims(shape)))


__all__ = ["embedding", "gather", "index", "index_select"]
