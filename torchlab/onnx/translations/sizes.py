"""Symbolic sizes: read from shapes, computed as vectors of one.

Source: https://onnx.ai/onnx/operators/onnx__Shape.html
"""

from __future__ import annotations

import math
import operator
from typing import Any

from torchlab._core import dtype as dt
from torchlab.fx.experimental._intervals import range_of
from torchlab.fx.experimental._symbolic_numbers import SymFloat, sym_max, sym_min
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates


@translates("sym_size.int")
def sym_size(g: Builder, node: Node, x: Node, dim: int) -> None:
    g.vectors[node] = g.op("Shape", g.of(x), start=dim, end=dim + 1)


def _is_float(x: Any) -> bool:
    if isinstance(x, Node):
        return type(x.meta.get("val")) is SymFloat
    return isinstance(x, float)


def _as_float(g: Builder, x: Any) -> str:
    if isinstance(x, Node):
        before = dt.float64 if _is_float(x) else dt.int64
        return g.cast(g.vector(x), before, dt.float64)
    return g.const([float(x)], dt.float64)


def _binary(fn: Any, kind: str) -> None:
    @translates(fn)
    def translate(g: Builder, node: Node, a: Any, b: Any) -> None:
        if kind == "Div" or _is_float(a) or _is_float(b):
            g.vectors[node] = g.op(kind, _as_float(g, a), _as_float(g, b))
        else:
            g.vectors[node] = g.op(kind, g.vector(a), g.vector(b))


for _fn, _kind in (
    (operator.add, "Add"), (operator.sub, "Sub"), (operator.mul, "Mul"), (operator.mod, "Mod"),
    (operator.truediv, "Div"), (operator.pow, "Pow"), (sym_max, "Max"), (sym_min, "Min"),
):  # fmt: skip
    _binary(_fn, _kind)


@translates(operator.floordiv)
def floordiv(g: Builder, node: Node, a: Any, b: Any) -> None:
    x, y = g.vector(a), g.vector(b)
    if _may_be_negative(a):  # ONNX rounds towards zero
        x = g.op("Sub", x, g.op("Mod", x, y))
    g.vectors[node] = g.op("Div", x, y)


def _may_be_negative(x: Any) -> bool:
    if not isinstance(x, Node):
        return bool(x < 0)
    inner = x.meta["val"].node
    return range_of(inner.expr, inner.shape_env.var_to_range)[0] < 0


def _rounding(fn: Any, kind: str) -> None:
    @translates(fn)
    def translate(g: Builder, node: Node, a: Any) -> None:
        if not _is_float(a):
            raise Untranslatable(f"{fn.__name__} of what is no float")
        value = g.op(kind, g.vector(a)) if kind else g.vector(a)
        g.vectors[node] = g.cast(value, dt.float64, dt.int64)


_rounding(math.trunc, "")
_rounding(math.ceil, "Ceil")
_rounding(math.floor, "Floor")


__all__ = ["floordiv", "sym_size"]
