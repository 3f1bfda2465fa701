"""Activations and softmax.

Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.translations._registry import translates
from torchlab.onnx.translations.pointwise import result


def _simple(name: str, kind: str, **attributes: Any) -> None:
    @translates(name)
    def translate(g: Builder, node: Node, x: Node) -> str:
        return g.op(kind, g.of(x, result(g, node)), **attributes)


_simple("relu", "Relu")
_simple("hardsigmoid", "HardSigmoid", alpha=1 / 6, beta=0.5)
_simple("hardswish", "HardSwish")
_simple("mish", "Mish")
_simple("softsign", "Softsign")


def between(g: Builder, x: Any, low: Any, high: Any, d: dt.dtype) -> str:
    """The value between two bounds."""
    return g.op("Clip", g.of(x, d), g.of(low, d), g.of(high, d))


@translates("relu6")
def relu6(g: Builder, node: Node, x: Node) -> str:
    return between(g, x, 0, 6, result(g, node))


@translates("hardtanh")
def hardtanh(g: Builder, node: Node, x: Node, low: Any = -1, high: Any = 1) -> str:
    return between(g, x, low, high, result(g, node))


@translates("silu")
def silu(g: Builder, node: Node, x: Node) -> str:
    a = g.of(x)
    return g.op("Mul", a, g.op("Sigmoid", a))


@translates("leaky_relu")
def leaky_relu(g: Builder, node: Node, x: Node, slope: float = 0.01) -> str:
    return g.op("LeakyRelu", g.of(x), alpha=float(slope))


@translates("elu")
def elu(
    g: Builder, node: Node, x: Node, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> str:
    d = result(g, node)
    a = g.of(x)
    inner = a if input_scale == 1 else g.op("Mul", a, g.of(input_scale, d))
    low = g.op("Mul", g.op("Sub", g.op("Exp", inner), g.of(1, d)), g.of(alpha, d))
    r = g.op("Where", g.op("Greater", a, g.of(0, d)), a, low)
    return r if scale == 1 else g.op("Mul", r, g.of(scale, d))


@translates("celu")
def celu(g: Builder, node: Node, x: Node, alpha: float = 1.0) -> str:
    return elu(g, node, x, alpha, 1, 1 / alpha)


@translates("selu")
def selu(g: Builder, node: Node, x: Node) -> str:
    return g.op("Selu", g.of(x))


@translates("gelu")
def gelu(g: Builder, node: Node, x: Node, approximate: str = "none") -> str:
    d = result(g, node)
    a = g.of(x)
    if g.opset >= 20:
        return g.op("Gelu", a, approximate=approximate)
    half = g.op("Mul", a, g.of(0.5, d))
    if approximate == "none":
        inner = g.op("Erf", g.op("Mul", a, g.of(math.sqrt(0.5), d)))
    else:
        cube = g.op("Mul", g.op("Mul", a, g.op("Mul", a, a)), g.of(0.044715, d))
        inner = g.op("Mul", g.op("Add", a, cube), g.of(math.sqrt(2 / math.pi), d))
        inner = g.op("Tanh", inner)
    return g.op("Mul", half, g.op("Add", inner, g.of(1, d)))


@translates("softplus")
def softplus(g: Builder, node: Node, x: Node, beta: Any = 1, threshold: Any = 20) -> str:
    d = result(g, node)
    a = g.of(x)
    scaled = a if beta == 1 else g.op("Mul", a, g.of(beta, d))
    r = g.op("Softplus", scaled)
    r = r if beta == 1 else g.op("Div", r, g.of(beta, d))
    return g.op("Where", g.op("Greater", scaled, g.of(threshold, d)), a, r)


@translates("log_sigmoid", "log_sigmoid_forward")
def log_sigmoid(g: Builder, node: Node, x: Node) -> str:
    return g.op("Neg", g.op("Softplus", g.op("Neg", g.of(x))))


@translates("hardshrink")
def hardshrink(g: Builder, node: Node, x: Node, lambd: Any = 0.5) -> str:
    return g.op("Shrink", g.of(x), bias=0.0, lambd=float(lambd))


@translates("softshrink")
def softshrink(g: Builder, node: Node, x: Node, lambd: Any = 0.5) -> str:
    return g.op("Shrink", g.of(x), bias=float(lambd), lambd=float(lambd))


@translates("threshold")
def threshold(g: Builder, node: Node, x: Node, limit: Any, value: Any) -> str:
    d = result(g, node)
    return g.op("Where", g.op("Greater", g.of(x), g.of(limit, d)), g.of(x), g.of(value, d))


@translates("prelu")
def prelu(g: Builder, node: Node, x: Node, weight: Node) -> str:
    w = g.of(weight)
    rank = g.rank(x)
    if g.rank(weight) == 1 and rank > 2:
        w = g.op("Reshape", w, g.const([-1] + [1] * (rank - 2)))
    return g.op("PRelu", g.of(x), w)


@translates("glu")
def glu(g: Builder, node: Node, x: Node, dim: int = -1) -> str:
    a, b = g.several("Split", g.of(x), outputs=2, axis=dim, num_outputs=2)
    return g.op("Mul", a, g.op("Sigmoid", b))


def _normalised(name: str, kind: str, *keys: str) -> None:
    @translates(*keys)
    def translate(g: Builder, node: Node, x: Node, dim: int, *rest: Any) -> str:
        d = result(g, node)
        if not g.rank(x):
            whole = g.op("Unsqueeze", g.of(x, d), g.const([0]))
            return g.op("Squeeze", g.op(kind, whole, axis=0), g.const([0]))
        return g.op(kind, g.of(x, d), axis=dim)


_normalised("softmax", "Softmax", "softmax.int", "_softmax")
_normalised("log_softmax", "LogSoftmax", "log_softmax.int", "_log_softmax")

__all__ = ["gelu", "silu"]
