"""Losses and distances.

Source: https://onnx.ai/onnx/operators/onnx__NegativeLogLikelihoodLoss.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates
from torchlab.onnx.translations.pointwise import result


def reduced(g: Builder, a: str, reduction: int) -> str:
    """The loss of a batch."""
    if reduction == 0:
        return a
    return g.op("ReduceMean" if reduction == 1 else "ReduceSum", a, keepdims=0)


@translates("mse_loss")
def mse_loss(g: Builder, node: Node, x: Node, y: Node, reduction: int = 1) -> str:
    d = result(g, node)
    e = g.op("Sub", g.of(x, d), g.of(y, d))
    return reduced(g, g.op("Mul", e, e), reduction)


@translates("l1_loss")
def l1_loss(g: Builder, node: Node, x: Node, y: Node, reduction: int = 1) -> str:
    d = result(g, node)
    return reduced(g, g.op("Abs", g.op("Sub", g.of(x, d), g.of(y, d))), reduction)


def _bent(name: str, scaled: bool) -> None:
    @translates(name)
    def translate(
        g: Builder, node: Node, x: Node, y: Node, reduction: int = 1, bend: float = 1.0
    ) -> str:
        """½ d² / bend up to `bend`, |d| - bend / 2 beyond (`scaled`: times `bend`)."""
        d = result(g, node)
        away = g.op("Abs", g.op("Sub", g.of(x, d), g.of(y, d)))
        if bend == 0:
            return reduced(g, away, reduction)
        near = g.op("Mul", g.op("Mul", away, away), g.of(0.5 / bend, d))
        far = g.op("Sub", away, g.of(0.5 * bend, d))
        e = g.op("Where", g.op("Less", away, g.of(bend, d)), near, far)
        return reduced(g, g.op("Mul", e, g.of(bend, d)) if scaled else e, reduction)


_bent("smooth_l1_loss", False)
_bent("huber_loss", True)


@translates("binary_cross_entropy")
def bce(
    g: Builder, node: Node, x: Node, y: Node, weight: Node | None = None, reduction: int = 1
) -> str:
    d = result(g, node)
    a, t, one = g.of(x, d), g.of(y, d), g.of(1, d)
    low = g.of(-100.0, d)
    hit = g.op("Mul", t, g.op("Max", g.op("Log", a), low))
    other = g.op("Max", g.op("Log", g.op("Sub", one, a)), low)
    e = g.op("Neg", g.op("Add", hit, g.op("Mul", g.op("Sub", one, t), other)))
    if weight is not None:
        e = g.op("Mul", e, g.of(weight, d))
    return reduced(g, e, reduction)


@translates("binary_cross_entropy_with_logits")
def bce_with_logits(
    g: Builder, node: Node, x: Node, y: Node, weight: Node | None = None,
    pos_weight: Node | None = None, reduction: int = 1,
) -> str:  # fmt: skip
    d = result(g, node)
    a, t = g.of(x, d), g.of(y, d)
    one = g.of(1, d)
    miss = g.op("Softplus", g.op("Neg", a))
    if pos_weight is not None:
        extra = g.op("Mul", g.op("Sub", g.of(pos_weight, d), one), t)
        miss = g.op("Mul", miss, g.op("Add", extra, one))
    e = g.op("Add", g.op("Mul", g.op("Sub", one, t), a), miss)
    if weight is not None:
        e = g.op("Mul", e, g.of(weight, d))
    return reduced(g, e, reduction)


def _nll(
    g: Builder, logs: str, d: dt.dtype, target: Node, weight: Node | None, reduction: int,
    ignore: int,
) -> str:  # fmt: skip
    """-log p of the target's class, in dim 1 (of one sample: 0), weighted; `ignore` counts not."""
    t = g.of(target, dt.int64)
    counts = g.op("Not", g.op("Equal", t, g.const(ignore)))
    t = g.op("Where", counts, t, g.const(0))
    axis = 1 if g.rank(target) else 0
    at = g.op("Unsqueeze", t, g.const([axis]))
    e = g.op("Neg", g.op("Squeeze", g.op("GatherElements", logs, at, axis=axis), g.const([axis])))
    share = g.cast(counts, dt.bool_, d)
    if weight is not None:
        share = g.op("Mul", share, g.op("Gather", g.of(weight, d), t, axis=0))
    e = g.op("Mul", g.op("Where", counts, e, g.of(0, d)), share)
    if reduction == 0:
        return e
    total = g.op("ReduceSum", e, keepdims=0)
    return total if reduction == 2 else g.op("Div", total, g.op("ReduceSum", share, keepdims=0))


@translates("nll_loss", "nll_loss_nd", "nll_loss2d")
def nll_loss(
    g: Builder, node: Node, x: Node, target: Node, weight: Node | None = None, reduction: int = 1,
    ignore: int = -100,
) -> str:  # fmt: skip
    return _nll(g, g.of(x), g.dtype(x), target, weight, reduction, ignore)


@translates("cross_entropy_loss")
def cross_entropy(
    g: Builder, node: Node, x: Node, target: Node, weight: Node | None = None, reduction: int = 1,
    ignore: int = -100, smoothing: float = 0.0,
) -> str:  # fmt: skip
    if smoothing or g.dtype(target).is_floating_point:
        raise Untranslatable("cross_entropy with smoothed labels or probabilities as targets")
    logs = g.op("LogSoftmax", g.of(x), axis=min(1, g.rank(x) - 1))
    return _nll(g, logs, g.dtype(x), target, weight, reduction, ignore)


@translates("cdist", "_cdist_forward")
def cdist(g: Builder, node: Node, x: Node, y: Node, p: float = 2.0, *rest: Any) -> str:
    d = result(g, node)
    a = g.op("Unsqueeze", g.of(x, d), g.const([-2]))
    b = g.op("Unsqueeze", g.of(y, d), g.const([-3]))
    away = g.op("Sub", a, b)
    if p not in (1.0, 2.0):
        raise Untranslatable(f"cdist with p={p}")
    return g.op("ReduceL2" if p == 2.0 else "ReduceL1", away, g.const([-1]), keepdims=0)


__all__ = ["cdist", "cross_entropy", "mse_loss"]
