"""Reductions, sums along a dim, sorting.

Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torchlab._core import dtype as dt
from torchlab.fx.experimental._symbolic_numbers import SymInt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates
from torchlab.onnx.translations.pointwise import result


def dims_of(dim: Any) -> list[int]:
    """The dims of a reduction; none: all."""
    if dim is None:
        return []
    return [dim] if isinstance(dim, int) else [int(d) for d in dim]


def reduce(
    g: Builder, kind: str, a: str, dims: Sequence[int], keepdim: bool, x: Node | None = None
) -> str:
    """A reduction of ONNX over dims; over all without any. `x`: what `a` is the value of, where it
    may have no dims."""
    if x is not None and not g.rank(x):
        if kind in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp"):
            return g.op("Identity", a)
        dims = []
    axes = g.const(list(dims)) if dims else None
    return g.op(kind, a, axes, keepdims=int(keepdim))


def count(g: Builder, x: Node, dims: Sequence[int], d: dt.dtype) -> str:
    """How many elements a reduction takes together."""
    shape = g.shape(x)
    taken = [shape[i] for i in dims] if dims else shape
    if all(type(n) is not SymInt for n in taken):
        return g.const(math.prod(int(n) for n in taken), d)
    shape_value = g.op("Shape", g.of(x))
    if dims:
        at = g.const([i % len(shape) for i in dims])
        shape_value = g.op("Gather", shape_value, at, axis=0)
    n = g.op("ReduceProd", shape_value, keepdims=0)
    return g.cast(n, dt.int64, d)


@translates("sum")
def sum_(g: Builder, node: Node, x: Node, *rest: Any) -> str:
    dim, keepdim = (rest[0], rest[1]) if len(rest) > 2 else (None, False)
    d = result(g, node)
    if not g.rank(x):
        return g.of(x, d)
    return reduce(g, "ReduceSum", g.of(x, d), dims_of(dim), keepdim)


@translates("mean")
def mean(g: Builder, node: Node, x: Node, *rest: Any) -> str:
    dim, keepdim = (rest[0], rest[1]) if len(rest) > 2 else (None, False)
    d = result(g, node)
    if not g.rank(x):
        return g.of(x, d)
    return reduce(g, "ReduceMean", g.of(x, d), dims_of(dim), keepdim)


def _extreme(name: str, kind: str, arg: str) -> None:
    @translates(f"a{name}")
    def whole(g: Builder, node: Node, x: Node, dim: Any = (), keepdim: bool = False) -> str:
        if not g.rank(x):
            return g.of(x)
        return reduce(g, kind, g.of(x), dims_of(dim), keepdim)

    @translates(f"{name}.default")
    def every(g: Builder, node: Node, x: Node) -> str:
        return whole(g, node, x)  # type: ignore[no-any-return]

    @translates(f"{name}.dim")
    def along(g: Builder, node: Node, x: Node, dim: int, keepdim: bool = False) -> list[str]:
        a = g.of(x)
        if not g.rank(x):
            return [g.op("Identity", a), g.const(0)]
        return [
            reduce(g, kind, a, [dim], keepdim),
            g.op(arg, a, axis=dim, keepdims=int(keepdim)),
        ]

    @translates(f"{name}.other")
    def other(g: Builder, node: Node, x: Node, y: Node) -> str:
        d = result(g, node)
        return g.op(kind.removeprefix("Reduce"), g.of(x, d), g.of(y, d))

    @translates(f"arg{name}")
    def index(g: Builder, node: Node, x: Node, dim: Any = None, keepdim: bool = False) -> str:
        a = g.of(x)
        if dim is None:
            a = g.op("Reshape", a, g.const([-1]))
            r = g.op(arg, a, axis=0, keepdims=0)
            return g.op("Reshape", r, g.const([1] * g.rank(x))) if keepdim else r
        return g.op(arg, a, axis=dim, keepdims=int(keepdim))


_extreme("max", "ReduceMax", "ArgMax")
_extreme("min", "ReduceMin", "ArgMin")


@translates("aminmax")
def aminmax(
    g: Builder, node: Node, x: Node, dim: int | None = None, keepdim: bool = False
) -> list[str]:
    a = g.of(x)
    dims = dims_of(dim)
    return [reduce(g, f"Reduce{k}", a, dims, keepdim) for k in ("Min", "Max")]


def _quantified(name: str, kind: str) -> None:
    @translates(name)
    def translate(g: Builder, node: Node, x: Node, dim: Any = None, keepdim: bool = False) -> str:
        truth = g.cast(g.of(x, dt.bool_), dt.bool_, dt.int32)
        r = reduce(g, kind, truth, dims_of(dim), keepdim, x)
        return g.cast(r, dt.int32, result(g, node))


_quantified("any", "ReduceMax")
_quantified("all", "ReduceMin")


@translates("prod")
def prod(g: Builder, node: Node, x: Node, *rest: Any) -> str:
    dim, keepdim = (rest[0], rest[1]) if len(rest) > 2 else (None, False)
    return reduce(g, "ReduceProd", g.of(x, result(g, node)), dims_of(dim), keepdim, x)


@translates("logsumexp")
def logsumexp(g: Builder, node: Node, x: Node, dim: Any, keepdim: bool = False) -> str:
    return reduce(g, "ReduceLogSumExp", g.of(x, result(g, node)), dims_of(dim), keepdim, x)


def moments(
    g: Builder, x: Node, dims: Sequence[int], correction: Any, keepdim: bool, d: dt.dtype
) -> tuple[str, str]:
    """(variance, mean) over dims."""
    a = g.of(x, d)
    wide = reduce(g, "ReduceMean", a, dims, True)
    away = g.op("Sub", a, wide)
    total = reduce(g, "ReduceSum", g.op("Mul", away, away), dims, keepdim)
    n = count(g, x, dims, d)
    if correction:
        n = g.op("Sub", n, g.of(float(correction), d))
        n = g.op("Max", n, g.of(0.0, d))
    variance = g.op("Div", total, n)
    return variance, reduce(g, "ReduceMean", a, dims, keepdim)


def _spread(name: str) -> None:
    @translates(f"{name}.correction")
    def translate(
        g: Builder, node: Node, x: Node, dim: Any = None, correction: Any = None,
        keepdim: bool = False,
    ) -> Any:  # fmt: skip
        d = result(g, node) if "mean" not in name else g.dtype(x)
        v, m = moments(g, x, dims_of(dim), 1 if correction is None else correction, keepdim, d)
        if name.startswith("std"):
            v = g.op("Sqrt", v)
        return [v, m] if "mean" in name else v


for _name in ("var", "std", "var_mean", "std_mean"):
    _spread(_name)


@translates("linalg_vector_norm")
def vector_norm(
    g: Builder, node: Node, x: Node, order: Any = 2, dim: Any = None, keepdim: bool = False,
    dtype: Any = None,
) -> str:  # fmt: skip
    d = result(g, node)
    a = g.of(x, d)
    dims = dims_of(dim)
    if order == 2:
        return reduce(g, "ReduceL2", a, dims, keepdim, x)
    if order == 1:
        return reduce(g, "ReduceL1", a, dims, keepdim, x)
    size = g.op("Abs", a)
    if order in (math.inf, -math.inf):
        return reduce(g, "ReduceMax" if order > 0 else "ReduceMin", size, dims, keepdim, x)
    if order == 0:
        nonzero = g.cast(g.op("Greater", size, g.of(0, d)), dt.bool_, d)
        return reduce(g, "ReduceSum", nonzero, dims, keepdim, x)
    total = reduce(g, "ReduceSum", g.op("Pow", size, g.of(order, d)), dims, keepdim, x)
    return g.op("Pow", total, g.of(1 / order, d))


@translates("cumsum")
def cumsum(g: Builder, node: Node, x: Node, dim: int, dtype: Any = None) -> str:
    a = g.of(x, result(g, node))
    return g.op("CumSum", a, g.const(dim)) if g.rank(x) else g.op("Identity", a)


@translates("nansum")
def nansum(
    g: Builder, node: Node, x: Node, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> str:
    d = result(g, node)
    a = g.of(x, d)
    if d.is_floating_point:
        a = g.op("Where", g.op("IsNaN", a), g.of(0, d), a)
    return reduce(g, "ReduceSum", a, dims_of(dim), keepdim, x)


@translates("count_nonzero")
def count_nonzero(g: Builder, node: Node, x: Node, dim: Any = None) -> str:
    truth = g.cast(g.of(x, dt.bool_), dt.bool_, dt.int64)
    return reduce(g, "ReduceSum", truth, dims_of(dim), False, x)


# ---- order ---------------------------------------------------------------------------------------


@translates("topk")
def topk(
    g: Builder, node: Node, x: Node, k: Any, dim: int = -1, largest: bool = True,
    ordered: bool = True,
) -> list[str]:  # fmt: skip
    return g.several(
        "TopK", g.of(x), g.vector(k), outputs=2, axis=dim, largest=int(largest), sorted=1
    )


def _sorted(g: Builder, x: Node, dim: int, descending: bool) -> list[str]:
    n = g.shape(x)[dim] if g.rank(x) else 1
    dim = dim % max(g.rank(x), 1)
    many = g.const([n]) if type(n) is not SymInt else g.op("Shape", g.of(x), start=dim, end=dim + 1)
    return g.several("TopK", g.of(x), many, outputs=2, axis=dim, largest=int(descending), sorted=1)


@translates("sort.default")
def sort(g: Builder, node: Node, x: Node, dim: int = -1, descending: bool = False) -> list[str]:
    return _sorted(g, x, dim, descending)


@translates("sort.stable")
def sort_stable(
    g: Builder, node: Node, x: Node, stable: Any = None, dim: int = -1, descending: bool = False
) -> list[str]:
    if stable:
        raise Untranslatable("ONNX sorts without keeping the order of equal elements")
    return _sorted(g, x, dim, descending)


@translates("argsort")
def argsort(g: Builder, node: Node, x: Node, dim: int = -1, descending: bool = False) -> str:
    return _sorted(g, x, dim, descending)[1]


__all__ = ["count", "dims_of", "moments", "reduce"]
