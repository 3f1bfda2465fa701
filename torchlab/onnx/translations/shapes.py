"""Views, reshapes, slices, joining and padding, with sizes that may vary.

Source: https://onnx.ai/onnx/operators/onnx__Reshape.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab.fx.experimental._symbolic_numbers import SymInt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder, simplified
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates
from torchlab.onnx.translations.pointwise import result

LAST = (1 << 63) - 1


def reshaped(g: Builder, a: str, before: Sequence[Any], after: Sequence[Any]) -> str:
    """The value in another shape. One size may be left to ONNX (-1), leading ones that stay are
    told as 0; what varies besides is computed."""
    unknown = [i for i, n in enumerate(after) if type(n) is SymInt]
    sizes: list[Any] = list(after)
    if any(n == 0 for n in after if type(n) is not SymInt):
        return g.op("Reshape", a, g.dims(after), allowzero=1)
    if len(unknown) == 1:
        sizes[unknown[0]] = -1
        return g.op("Reshape", a, g.const([int(n) for n in sizes]))
    for i in unknown:
        if i < len(before) and g.said(before[i]) == g.said(after[i]):
            sizes[i] = 0
    left = [i for i, n in enumerate(sizes) if type(n) is SymInt]
    if len(left) <= 1:
        for i in left:
            sizes[i] = -1
        return g.op("Reshape", a, g.const([int(n) for n in sizes]))
    return g.op("Reshape", a, g.dims(after))


@translates(
    "view.default", "reshape", "_unsafe_view", "_reshape_alias", "flatten", "unflatten", "view_as",
    "reshape_as",
)  # fmt: skip
def reshape(g: Builder, node: Node, x: Node, *rest: Any) -> str:
    return reshaped(g, g.of(x), g.shape(x), g.shape(node))


@translates("squeeze")
def squeeze(g: Builder, node: Node, x: Node, dim: Any = None) -> str:
    rank = g.rank(x)
    dims = range(rank) if dim is None else [dim] if isinstance(dim, int) else dim
    shape = g.shape(x)
    axes = [d % rank for d in dims if rank and type(shape[d]) is not SymInt and shape[d] == 1]
    return g.op("Squeeze", g.of(x), g.const(axes)) if axes else g.op("Identity", g.of(x))


@translates("unsqueeze")
def unsqueeze(g: Builder, node: Node, x: Node, dim: int) -> str:
    return g.op("Unsqueeze", g.of(x), g.const([dim]))


@translates("permute")
def permute(g: Builder, node: Node, x: Node, dims: Sequence[int]) -> str:
    if not g.rank(x):
        return g.op("Identity", g.of(x))
    return g.op("Transpose", g.of(x), perm=[int(d) % g.rank(x) for d in dims])


@translates("transpose.int", "swapaxes", "swapdims")
def transpose(g: Builder, node: Node, x: Node, a: int, b: int) -> str:
    perm = list(range(g.rank(x)))
    if not perm:
        return g.op("Identity", g.of(x))
    perm[a], perm[b] = perm[b], perm[a]
    return g.op("Transpose", g.of(x), perm=perm)


@translates("t", "numpy_T")
def t(g: Builder, node: Node, x: Node) -> str:
    if g.rank(x) < 2:
        return g.op("Identity", g.of(x))
    return g.op("Transpose", g.of(x), perm=list(reversed(range(g.rank(x)))))


@translates("movedim", "moveaxis")
def movedim(g: Builder, node: Node, x: Node, source: Any, destination: Any) -> str:
    rank = g.rank(x)
    a = [source] if isinstance(source, int) else list(source)
    b = [destination] if isinstance(destination, int) else list(destination)
    place = {d % rank: s % rank for s, d in zip(a, b, strict=True)}
    rest = iter([d for d in range(rank) if d not in place.values()])
    return g.op("Transpose", g.of(x), perm=[place.get(i, -1) if i in place else next(rest)
                                            for i in range(rank)])  # fmt: skip


@translates("expand", "expand_as", "broadcast_to")
def expand(g: Builder, node: Node, x: Node, *rest: Any) -> str:
    before, after = g.shape(x), g.shape(node)
    lead = len(after) - len(before)
    wanted = [
        1 if i >= lead and g.said(before[i - lead]) == g.said(n) else n for i, n in enumerate(after)
    ]
    return g.op("Expand", g.of(x), g.dims(wanted))


@translates("repeat")
def repeat(g: Builder, node: Node, x: Node, repeats: Sequence[Any]) -> str:
    a = g.of(x)
    lead = len(repeats) - g.rank(x)
    if lead:
        a = g.op("Unsqueeze", a, g.const(list(range(lead))))
    return g.op("Tile", a, g.ints(repeats))


@translates("tile")
def tile(g: Builder, node: Node, x: Node, repeats: Sequence[Any]) -> str:
    return repeat(g, node, x, [1] * (g.rank(x) - len(repeats)) + list(repeats))


# ---- joining and taking apart --------------------------------------------------------------------


@translates("cat", "concat", "concatenate")
def cat(g: Builder, node: Node, tensors: Sequence[Node], dim: int = 0) -> str:
    d = result(g, node)
    rank = g.rank(node)
    kept = [x for x in tensors if not (g.rank(x) == 1 and rank != 1 and g.shape(x)[0] == 0)]
    return g.op("Concat", *(g.of(x, d) for x in kept), axis=dim)


@translates("stack")
def stack(g: Builder, node: Node, tensors: Sequence[Node], dim: int = 0) -> str:
    d, at = result(g, node), g.const([dim])
    return g.op("Concat", *(g.op("Unsqueeze", g.of(x, d), at) for x in tensors), axis=dim)


@translates("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_split", "unsafe_chunk")
def split(g: Builder, node: Node, x: Node, how: Any, dim: int = 0) -> list[str]:
    parts = node.meta["val"]
    if len(parts) == 1:
        return [g.op("Identity", g.of(x))]
    sizes = [simplified(p.shape[dim]) for p in parts]
    return g.several("Split", g.of(x), g.dims(sizes), outputs=len(parts), axis=dim)


@translates("unbind")
def unbind(g: Builder, node: Node, x: Node, dim: int = 0) -> list[str]:
    n = len(node.meta["val"])
    return [g.op("Gather", g.of(x), g.const(i), axis=dim) for i in range(n)]


# ---- slices --------------------------------------------------------------------------------------


def sliced(g: Builder, a: str, dim: int, start: Any, end: Any, step: Any = 1) -> str:
    """`a[start:end:step]` of a dim."""
    return g.op(
        "Slice", a, g.vector(0 if start is None else start),
        g.vector(LAST if end is None else end), g.const([dim]), g.vector(step),
    )  # fmt: skip


@translates("slice")
def slice_(
    g: Builder, node: Node, x: Node, dim: int = 0, start: Any = None, end: Any = None,
    step: Any = 1,
) -> str:  # fmt: skip
    return sliced(g, g.of(x), dim, start, end, step)


@translates("narrow")
def narrow(g: Builder, node: Node, x: Node, dim: int, start: Any, length: Any) -> str:
    if not isinstance(start, Node) and not isinstance(length, Node) and start >= 0:
        return sliced(g, g.of(x), dim, start, start + length)
    end = g.op("Add", g.vector(start), g.vector(length))
    return g.op("Slice", g.of(x), g.vector(start), end, g.const([dim]))


@translates("select")
def select(g: Builder, node: Node, x: Node, dim: int, index: Any) -> str:
    return g.op("Gather", g.of(x), g.of(index), axis=dim)


@translates("flip")
def flip(g: Builder, node: Node, x: Node, dims: Sequence[int]) -> str:
    n = len(dims)
    return g.op(
        "Slice", g.of(x), g.const([-1] * n), g.const([-LAST] * n),
        g.const([int(d) for d in dims]), g.const([-1] * n),
    )  # fmt: skip


@translates("roll")
def roll(g: Builder, node: Node, x: Node, shifts: Any, dims: Any = ()) -> str:
    moves = [shifts] if isinstance(shifts, int) else list(shifts)
    along = [dims] if isinstance(dims, int) else list(dims)
    a = g.of(x)
    if not along:
        flat = _rolled(g, g.op("Reshape", a, g.const([-1])), 0, moves[0], None)
        return g.op("Reshape", flat, g.shape_of(x))
    for shift, dim in zip(moves, along, strict=True):
        a = _rolled(g, a, dim, shift, g.shape(x)[dim])
    return a


def _rolled(g: Builder, a: str, dim: int, shift: int, size: Any) -> str:
    if size is not None and type(size) is not SymInt:
        shift %= max(int(size), 1)
    if shift == 0:
        return a
    return g.op(
        "Concat", sliced(g, a, dim, -shift, None), sliced(g, a, dim, None, -shift), axis=dim
    )


# ---- padding -------------------------------------------------------------------------------------


def _padded(g: Builder, x: Node, pad: Sequence[Any], mode: str, value: str | None = None) -> str:
    rank = g.rank(x)
    before: list[Any] = [0] * rank
    after: list[Any] = [0] * rank
    for i in range(len(pad) // 2):
        before[rank - 1 - i], after[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    a = g.of(x)
    for dim in range(rank):  # what is taken off is a slice
        low, high = before[dim], after[dim]
        if isinstance(low, int) and isinstance(high, int) and (low < 0 or high < 0):
            a = sliced(g, a, dim, max(-low, 0), high if high < 0 else None)
            before[dim], after[dim] = max(low, 0), max(high, 0)
    if not any(isinstance(n, Node) or n for n in (*before, *after)):
        return g.op("Identity", a)
    return g.op("Pad", a, g.ints([*before, *after]), value, mode=mode)


@translates("constant_pad_nd")
def constant_pad(g: Builder, node: Node, x: Node, pad: Sequence[Any], value: Any = 0) -> str:
    return _padded(g, x, pad, "constant", g.of(value, g.dtype(x)))


@translates("pad")
def pad_(
    g: Builder, node: Node, x: Node, pad: Sequence[Any], mode: str = "constant", value: Any = None
) -> str:
    if mode == "constant":
        return constant_pad(g, node, x, pad, 0 if value is None else value)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return _padded(g, x, pad, modes[mode])


for _n in (1, 2, 3):
    for _name, _mode in (("reflection", "reflect"), ("replication", "edge")):

        @translates(f"{_name}_pad{_n}d")
        def _pad_by_mode(g: Builder, node: Node, x: Node, pad: Any, mode: str = _mode) -> str:
            return _padded(g, x, pad, mode)


def _triangle(name: str, upper: int) -> None:
    @translates(name)
    def translate(g: Builder, node: Node, x: Node, diagonal: Any = 0) -> str:
        d = g.dtype(x)
        a = g.of(x, dt.int32) if d is dt.bool_ else g.of(x)
        k = g.of(diagonal, dt.int64) if diagonal != 0 else None
        r = g.op("Trilu", a, k, upper=upper)
        return g.cast(r, dt.int32, dt.bool_) if d is dt.bool_ else r


_triangle("tril", 0)
_triangle("triu", 1)


@translates("channel_shuffle")
def channel_shuffle(g: Builder, node: Node, x: Node, groups: int) -> str:
    c = g.known(x, 1, "the number of channels")
    a = g.op("Reshape", g.of(x), g.const([0, groups, c // groups, -1]))
    a = g.op("Transpose", a, perm=[0, 2, 1, 3])
    return g.op("Reshape", a, g.shape_of(x))


@translates("diagonal")
def diagonal(g: Builder, node: Node, x: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    rank = g.rank(x)
    a, b = dim1 % rank, dim2 % rank
    rest = [d for d in range(rank) if d not in (a, b)]
    n = g.shape(node)[-1]
    if type(n) is SymInt:
        raise Untranslatable("a diagonal whose length varies")
    turned = g.op("Transpose", g.of(x), perm=[a, b, *rest])
    low = max(-offset, 0)
    places = [[low + i, low + offset + i] for i in range(int(n))]
    r = g.op("GatherND", turned, g.const(places))  # the diagonal comes first
    return g.op("Transpose", r, perm=[*range(1, rank - 1), 0]) if rest else r


@translates("trace")
def trace(g: Builder, node: Node, x: Node) -> str:
    rows, columns = g.shape(x)
    if type(rows) is SymInt or type(columns) is SymInt:
        raise Untranslatable("a trace whose length varies")
    d = result(g, node)
    ones = g.const(np.eye(int(rows), int(columns), dtype=d.np))
    return g.op("ReduceSum", g.op("Mul", g.of(x, d), ones), keepdims=0)


@translates("unfold")
def unfold(g: Builder, node: Node, x: Node, dim: int, size: int, step: int) -> str:
    if not g.rank(x):
        raise Untranslatable("a tensor without dims has no windows")
    n = g.shape(node)[dim]
    if type(n) is SymInt:
        raise Untranslatable("the number of windows varies")
    rank = g.rank(x)
    starts = [[i * step + j for j in range(size)] for i in range(int(n))]
    at = dim % rank
    a = g.op("Gather", g.of(x), g.const(starts), axis=at)  # …, windows, size, …
    perm = [i for i in range(rank + 1) if i != at + 1] + [at + 1]
    return g.op("Transpose", a, perm=perm)


__all__ = ["LAST", "reshaped", "sliced"]
