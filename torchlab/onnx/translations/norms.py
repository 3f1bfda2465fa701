"""Normalisation.

Source: https://onnx.ai/onnx/operators/onnx__BatchNormalization.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab.fx.experimental._symbolic_numbers import SymInt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates
from torchlab.onnx.translations.reductions import reduce


def _vector(g: Builder, given: Node | None, n: int, value: float, d: dt.dtype) -> str:
    return g.of(given) if given is not None else g.const(np.full((n,), value, d.np))


@translates("batch_norm")
def batch_norm(
    g: Builder, node: Node, x: Node, weight: Node | None, bias: Node | None, mean: Node | None,
    var: Node | None, training: bool, momentum: float, eps: float, *rest: Any,
) -> str:  # fmt: skip
    if training or mean is None or var is None:
        if mean is None:  # instance_norm: each sample's own statistics
            return _own_statistics(g, x, weight, bias, eps)
        raise Untranslatable("batch_norm in training mode; call model.eval() before the export")
    n = g.known(x, 1, "the number of channels")
    d = g.dtype(x)
    return g.op(
        "BatchNormalization", g.of(x), _vector(g, weight, n, 1, d), _vector(g, bias, n, 0, d),
        g.of(mean), g.of(var), epsilon=float(eps),
    )  # fmt: skip


def _own_statistics(g: Builder, x: Node, weight: Node | None, bias: Node | None, eps: float) -> str:
    d = g.dtype(x)
    dims = [0, *range(2, g.rank(x))]
    r = standardised(g, g.of(x), dims, eps, d)
    return scaled(g, r, weight, bias, [1, -1] + [1] * (g.rank(x) - 2))


def standardised(g: Builder, a: str, dims: Sequence[int], eps: float, d: dt.dtype) -> str:
    """(a - mean) / sqrt(variance + eps) over dims."""
    away = g.op("Sub", a, reduce(g, "ReduceMean", a, dims, True))
    var = reduce(g, "ReduceMean", g.op("Mul", away, away), dims, True)
    return g.op("Div", away, g.op("Sqrt", g.op("Add", var, g.of(float(eps), d))))


def scaled(g: Builder, a: str, weight: Node | None, bias: Node | None, shape: Sequence[int]) -> str:
    """a · weight + bias, both laid out as `shape`."""
    if weight is not None:
        a = g.op("Mul", a, g.op("Reshape", g.of(weight), g.const(list(shape))))
    if bias is not None:
        a = g.op("Add", a, g.op("Reshape", g.of(bias), g.const(list(shape))))
    return a


@translates("layer_norm")
def layer_norm(
    g: Builder, node: Node, x: Node, shape: Sequence[int], weight: Node | None = None,
    bias: Node | None = None, eps: float = 1e-5, *rest: Any,
) -> str:  # fmt: skip
    d = g.dtype(x)
    sizes = [int(n) for n in shape]
    w = g.of(weight) if weight is not None else g.const(np.ones(sizes, d.np))
    b = None if bias is None else g.of(bias)
    return g.op("LayerNormalization", g.of(x), w, b, axis=-len(sizes), epsilon=float(eps))


@translates("native_layer_norm")
def native_layer_norm(
    g: Builder, node: Node, x: Node, shape: Sequence[int], weight: Node | None,
    bias: Node | None, eps: float,
) -> list[str]:  # fmt: skip
    made = layer_norm(g, node, x, shape, weight, bias, eps)
    if g.uses(node, 1) or g.uses(node, 2):
        raise Untranslatable("the statistics of a layer_norm")
    return [made, made, made]


@translates("rms_norm")
def rms_norm(
    g: Builder, node: Node, x: Node, shape: Sequence[int], weight: Node | None = None,
    eps: float | None = None,
) -> str:  # fmt: skip
    d = g.dtype(x)
    a = g.of(x)
    dims = list(range(-len(shape), 0))
    square = reduce(g, "ReduceMean", g.op("Mul", a, a), dims, True)
    small = float(np.finfo(d.np).eps) if eps is None else float(eps)
    r = g.op("Div", a, g.op("Sqrt", g.op("Add", square, g.of(small, d))))
    return r if weight is None else g.op("Mul", r, g.of(weight))


@translates("group_norm")
def group_norm(
    g: Builder, node: Node, x: Node, groups: int, weight: Node | None = None,
    bias: Node | None = None, eps: float = 1e-5, *rest: Any,
) -> str:  # fmt: skip
    d = g.dtype(x)
    sizes = g.shape(x)
    known = all(type(n) is not SymInt for n in sizes[1:])
    whole = g.const([-1, *(int(n) for n in sizes[1:])]) if known else g.op("Shape", g.of(x))
    grouped = g.op("Reshape", g.of(x), g.const([0, groups, -1]))
    r = g.op("Reshape", standardised(g, grouped, [-1], eps, d), whole)
    return scaled(g, r, weight, bias, [1, -1] + [1] * (g.rank(x) - 2))


__all__ = ["batch_norm", "layer_norm", "scaled", "standardised"]
