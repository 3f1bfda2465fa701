"""Products of matrices, linear layers, attention.

Source: https://onnx.ai/onnx/operators/onnx__Gemm.html
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates
from torchlab.onnx.translations.pointwise import result


@translates("mm", "bmm", "matmul", "mv", "dot", "vdot")
def matmul(g: Builder, node: Node, x: Node, y: Node) -> str:
    return g.op("MatMul", g.of(x), g.of(y))


@translates("linear")
def linear(g: Builder, node: Node, x: Node, weight: Node, bias: Node | None = None) -> str:
    b = None if bias is None else g.of(bias)
    if g.rank(x) == 2:
        return g.op("Gemm", g.of(x), g.of(weight), b, transB=1)
    turned = g.op("Transpose", g.of(weight), perm=[1, 0])
    product = g.op("MatMul", g.of(x), turned)
    return product if b is None else g.op("Add", product, b)


def _scaled(g: Builder, a: str, factor: Any, d: dt.dtype) -> str:
    return a if factor == 1 else g.op("Mul", a, g.of(factor, d))


def _sum(g: Builder, x: Node, beta: Any, product: str, alpha: Any, d: dt.dtype) -> str:
    """beta · x + alpha · product; with beta = 0, x does not matter, be it NaN."""
    product = _scaled(g, product, alpha, d)
    if beta == 0:
        return product
    return g.op("Add", _scaled(g, g.of(x, d), beta, d), product)


@translates("addmm")
def addmm(g: Builder, node: Node, x: Node, a: Node, b: Node, beta: Any = 1, alpha: Any = 1) -> str:
    d = result(g, node)
    if d.is_floating_point and beta != 0:
        return g.op("Gemm", g.of(a), g.of(b), g.of(x), alpha=float(alpha), beta=float(beta))
    return added(g, node, x, a, b, beta, alpha)


@translates("baddbmm", "addmv")
def added(g: Builder, node: Node, x: Node, a: Node, b: Node, beta: Any = 1, alpha: Any = 1) -> str:
    d = result(g, node)
    return _sum(g, x, beta, g.op("MatMul", g.of(a), g.of(b)), alpha, d)


@translates("addr")
def addr(g: Builder, node: Node, x: Node, a: Node, b: Node, beta: Any = 1, alpha: Any = 1) -> str:
    d = result(g, node)
    return _sum(g, x, beta, outer(g, node, a, b), alpha, d)


@translates("addbmm")
def addbmm(g: Builder, node: Node, x: Node, a: Node, b: Node, beta: Any = 1, alpha: Any = 1) -> str:
    d = result(g, node)
    total = g.op("ReduceSum", g.op("MatMul", g.of(a), g.of(b)), g.const([0]), keepdims=0)
    return _sum(g, x, beta, total, alpha, d)


@translates("linalg_det", "det")
def det(g: Builder, node: Node, x: Node) -> str:
    return g.op("Det", g.of(x))


@translates("ger", "outer")
def outer(g: Builder, node: Node, x: Node, y: Node) -> str:
    d = result(g, node)
    column = g.op("Unsqueeze", g.of(x, d), g.const([1]))
    return g.op("Mul", column, g.op("Unsqueeze", g.of(y, d), g.const([0])))


@translates("_scaled_dot_product_attention")
def own_attention(
    g: Builder, node: Node, q: Node, k: Node, v: Node, mask: Node | None, causal: bool, scale: float
) -> Any:
    several = isinstance(node.meta["val"], (list, tuple))
    if several and any(g.uses(node, i) for i in range(1, len(node.meta["val"]))):
        raise Untranslatable("the statistics of an attention")
    made = attention(g, q, k, v, mask, causal, scale)
    return [made] * len(node.meta["val"]) if several else made


@translates("scaled_dot_product_attention")
def scaled_attention(
    g: Builder, node: Node, q: Node, k: Node, v: Node, mask: Node | None = None,
    dropout: float = 0.0, causal: bool = False, scale: float | None = None, gqa: bool = False,
) -> str:  # fmt: skip
    if dropout:
        raise Untranslatable("attention draws random numbers (dropout); call model.eval()")
    if gqa:
        raise Untranslatable("attention with groups of queries (enable_gqa)")
    return attention(g, q, k, v, mask, causal, scale)


def attention(
    g: Builder, q: Node, k: Node, v: Node, mask: Node | None, causal: bool, scale: float | None
) -> str:
    """softmax(q·kᵀ·scale + mask)·v."""
    d = g.dtype(q)
    if scale is None:
        scale = 1 / math.sqrt(g.known(q, -1, "the size of a head"))
    n = g.rank(k)
    perm = [*range(n - 2), n - 1, n - 2]
    scores = g.op("MatMul", g.of(q), g.op("Transpose", g.of(k), perm=perm))
    scores = g.op("Mul", scores, g.of(float(scale), d))
    low = g.of(float("-inf"), d)
    if causal:
        rows, columns = (
            g.op("Shape", g.of(t), start=g.rank(t) - 2, end=g.rank(t) - 1) for t in (q, k)
        )
        shape = g.op("Concat", rows, columns, axis=0)
        ones = g.op("Expand", g.of(1, dt.int32), shape)
        seen = g.cast(g.op("Trilu", ones, upper=0), dt.int32, dt.bool_)
        scores = g.op("Where", seen, scores, low)
    if mask is not None:
        if g.dtype(mask) is dt.bool_:
            scores = g.op("Where", g.of(mask), scores, low)
        else:
            scores = g.op("Add", scores, g.of(mask, d))
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), g.of(v))


__all__ = ["attention", "linear", "matmul"]
