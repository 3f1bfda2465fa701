"""Tensors that are made: constants where their sizes are known.

Source: https://onnx.ai/onnx/operators/onnx__ConstantOfShape.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab.fx.experimental._symbolic_numbers import SymFloat, SymInt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates
from torchlab.onnx.translations.pointwise import result

_LARGE = 1024  # elements from which a constant is made at run time


def filled(g: Builder, node: Node, value: Any) -> str:
    """A tensor of the node's shape and type with one value."""
    d = result(g, node)
    shape = g.shape(node)
    if not any(type(n) is SymInt for n in shape) and not isinstance(value, Node):
        sizes = [int(n) for n in shape]
        if math.prod(sizes) <= _LARGE:
            return g.const(np.full(sizes, value, d.np))
    return g.op("Expand", g.of(value, d), g.dims(shape))


def _constant(value: int, *names: str) -> None:
    @translates(*names)
    def translate(g: Builder, node: Node, *rest: Any) -> str:
        return filled(g, node, value)


_constant(0, "zeros", "zeros_like", "new_zeros", "zero")
_constant(0, "empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")
_constant(1, "ones", "ones_like", "new_ones")


@translates("full", "full_like")
def full(g: Builder, node: Node, like: Any, value: Any, *rest: Any) -> str:
    return filled(g, node, value)


@translates("new_full")
def new_full(g: Builder, node: Node, x: Node, size: Any, value: Any, *rest: Any) -> str:
    return filled(g, node, value)


@translates("fill")
def fill(g: Builder, node: Node, x: Node, value: Any) -> str:
    return filled(g, node, value)


@translates("scalar_tensor")
def scalar_tensor(g: Builder, node: Node, value: Any, *rest: Any) -> str:
    return g.of(value, result(g, node))


def _is_float(x: Any) -> bool:
    return type(x.meta["val"]) is SymFloat if isinstance(x, Node) else isinstance(x, float)


def _range(g: Builder, node: Node, start: Any, end: Any, step: Any) -> str:
    d = result(g, node)
    if any(isinstance(x, Node) for x in (start, end, step)):
        # Whole numbers as they are, whatever the type: PyTorch counts the elements first.
        whole = not any(_is_float(x) for x in (start, end, step))
        inner = dt.int64 if whole else d
        r = g.op("Range", g.of(start, inner), g.of(end, inner), g.of(step, inner))
        return g.cast(r, inner, d)
    n = g.shape(node)[0]
    return g.const((np.arange(int(n)) * step + start).astype(d.np))


@translates("arange.default")
def arange(g: Builder, node: Node, end: Any, *rest: Any) -> str:
    return _range(g, node, 0, end, 1)


@translates("arange.start")
def arange_start(g: Builder, node: Node, start: Any, end: Any, *rest: Any) -> str:
    return _range(g, node, start, end, 1)


@translates("arange.start_step")
def arange_step(g: Builder, node: Node, start: Any, end: Any, step: Any = 1, *rest: Any) -> str:
    return _range(g, node, start, end, step)


@translates("linspace")
def linspace(g: Builder, node: Node, start: Any, end: Any, steps: Any, *rest: Any) -> str:
    d = result(g, node)
    if any(isinstance(x, Node) for x in (start, end, steps)):
        n = g.of(steps, dt.int64)
        places = g.cast(g.op("Range", g.const(0), n, g.const(1)), dt.int64, d)
        gaps = g.cast(g.op("Max", g.op("Sub", n, g.const(1)), g.const(1)), dt.int64, d)
        step = g.op("Div", g.op("Sub", g.of(end, d), g.of(start, d)), gaps)
        return g.op("Add", g.of(start, d), g.op("Mul", places, step))
    return g.const(np.linspace(start, end, int(steps)).astype(d.np))


@translates("eye")
def eye(g: Builder, node: Node, *rest: Any) -> str:
    shape = g.shape(node)
    d = result(g, node)
    if not any(type(n) is SymInt for n in shape):
        return g.const(np.eye(*(int(n) for n in shape), dtype=d.np))
    zeros = g.op("Expand", g.of(0, dt.float32), g.dims(shape))
    return g.cast(g.op("EyeLike", zeros), dt.float32, d)


def _random(*names: str) -> None:
    @translates(*names)
    def translate(g: Builder, node: Node, *rest: Any) -> str:
        raise Untranslatable("it draws random numbers; call model.eval(), or give them as an input")


_random(
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli",
    "normal", "bernoulli_", "uniform_", "normal_", "exponential_", "multinomial", "poisson",
)  # fmt: skip

__all__ = ["filled"]
