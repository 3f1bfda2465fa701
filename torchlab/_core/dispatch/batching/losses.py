"""Batching rules of losses: element by element, then the reduction over what the function sees."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.batching.calls import Call, padded, rule
from torchlab._core.dispatch.registry import aten

_NONE, _MEAN = 0, 1


def _reduced(values: Any, reduction: int) -> Any:
    if reduction == _NONE:
        return values
    return aten.mean(values) if reduction == _MEAN else aten.sum(values)


@rule(
    "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
)  # fmt: skip
def elementwise(c: Call) -> Any:
    names = c.tensors()
    rank = max(c.rank(n) for n in names)
    parts = {n: padded(c.front(n), rank) if c.has(n) else c.front(n) for n in names}
    shapes = {c.shape(n) for n in ("self", "target")}
    if len(shapes) > 1 and c.op.name.startswith("binary"):
        return c.loop()  # refused
    if not (c.has("self") and c.has("target")):  # the operator may want equal shapes
        parts |= {n: c.full(n) for n in ("self", "target")} if len(shapes) == 1 else {}
    return _reduced(c.run(**parts, reduction=_NONE), c.raw("reduction"))


def _channels_last_index(c: Call) -> tuple[Any, Any]:
    """(whether each target counts, the weight of its class)."""
    target, weight = c.raw("target"), c.raw("weight")
    counts = aten.ne(target, c.raw("ignore_index"))
    if weight is None:
        return counts, aten.to(counts, c.raw("self")._k.dtype)
    at = aten.where(counts, target, 0)
    picked = aten.reshape(aten.gather(weight, 0, aten.reshape(at, (-1,))), tuple(at._a.shape))
    return counts, aten.mul(picked, aten.to(counts, picked._k.dtype))


def _folded(c: Call, **more: Any) -> Any:
    """Without reduction, (N, C, …) and (N, …) with all elements in N."""
    merge = c.rank("self") > c.rank("target") > 0
    x, y = c.full("self"), c.full("target")
    if merge:
        x, y = aten.flatten(x, 0, 1), aten.flatten(y, 0, 1)
        more = {n: aten.flatten(t, 0, 1) for n, t in more.items()}
    made = c.call(self=x, target=y, reduction=_NONE, **more)
    made = made[0] if type(made) is not type(x) else made
    return c.wrap(aten.unflatten(made, 0, (c.n, -1)) if merge else made)


@rule("nll_loss_forward", "nll_loss2d_forward")
def nll(c: Call) -> Any:
    if c.has("weight") or c.n == 0 or c.raw("self")._a.size == 0:
        return c.loop()
    values = _folded(c)
    if c.raw("reduction") == _NONE:
        return values, aten.sum(aten.mul(values, 0))
    _, weights = _channels_last_index(c)
    total = aten.sum(weights)
    summed = aten.sum(values)
    mean = c.raw("reduction") == _MEAN
    return (aten.div(summed, total) if mean else summed), total


@rule("nll_loss_backward", "nll_loss2d_backward")
def nll_backward(c: Call) -> Any:
    if c.has("weight") or c.n == 0 or c.raw("self")._a.size == 0:
        return c.loop()
    g = c.raw("grad_output")
    if c.raw("reduction") == _MEAN:
        g = aten.div(g, c.raw("total_weight"))
    if c.raw("reduction") != _NONE:
        g = aten.expand(g, tuple(c.raw("target")._a.shape))
    given = Call(c.op, tuple(
        g if n == "grad_output" else c.args[i] for n, i in c.names.items()
    ), c.level)  # fmt: skip
    own = given.raw("total_weight")
    one = aten.select(given.full("total_weight"), 0, 0) if given.has("total_weight") else own
    merge = c.rank("self") > c.rank("target") > 0
    parts = {n: given.full(n) for n in ("grad_output", "self", "target")}
    if merge:
        parts = {n: aten.flatten(x, 0, 1) for n, x in parts.items()}
    made = given.call(**parts, reduction=_NONE, total_weight=one)
    return c.wrap(aten.unflatten(made, 0, (c.n, -1)) if merge else made)
