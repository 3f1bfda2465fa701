"""The cross entropy of a linear layer's results, whole or a few rows at a time.

With many classes the logits (N, classes) are the largest array of a training step. In chunks they
are never all there: forward keeps the losses alone, and backward computes each chunk's logits once
more. Where backward itself is recorded, it is made of simple operators, which can be
differentiated again.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.linear_cross_entropy.html
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.modes import grad_enabled
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops.kernels import MEAN, NONE, reduction_number
from torchlab._core.settings import warn_user


def _rows_of(target: Any, weight: Any, ignore: int, dtype: Any, xp: Any) -> tuple[Any, Any]:
    """Targets that can be used as indices, and the weight of each row: 0 where it is ignored."""
    counts = target != ignore
    safe = xp.where(counts, target, 0)
    scale = counts.astype(dtype)
    return safe, scale if weight is None else scale * weight[safe]


def _logits(xp: Any, x: Any, w: Any, bias: Any) -> Any:
    r = xp.matmul(x, w.T)
    if bias is not None:
        r += bias
    r -= xp.maximum.reduce(r, axis=1, keepdims=True)
    return r


def _check_targets(target: Any, ignore: int, classes: int) -> None:
    bad = (target != ignore) & ((target < 0) | (target >= classes))
    if bad.any():
        raise RuntimeError(
            f"linear_cross_entropy: index {int(target[bad][0])} is out of bounds for dimension 1 "
            f"with size {classes}"
        )


@op(
    "_linear_cross_entropy_rows(Tensor input, Tensor linear_weight, Tensor target, Tensor? "
    "linear_bias, Tensor? weight, int ignore_index, int chunk) -> Tensor",
    public=False,
    meta=lambda x, *rest: MetaArray((x.shape[0],), x.dtype),
    grad_name="LinearCrossEntropyBatchChunkedBackward",
    vjp={
        "input, linear_weight, linear_bias": (
            "linear_cross_entropy_vjp(g, input, linear_weight, target, linear_bias, weight, "
            "ignore_index, chunk, needs)"
        )
    },
)
def linear_cross_entropy_rows(
    xp: Any, x: Any, w: Any, target: Any, bias: Any, weight: Any, ignore: int, chunk: int
) -> Any:
    """The loss of each row, from `chunk` rows at a time: (N, in), (classes, in), (N) → (N)."""
    _check_targets(target, ignore, w.shape[0])
    safe, scale = _rows_of(target, weight, ignore, x.dtype, xp)
    r = xp.empty(x.shape[0], x.dtype)
    for i in range(0, x.shape[0], chunk):
        here = slice(i, i + chunk)
        logits = _logits(xp, x[here], w, bias)
        own = xp.take_along_axis(logits, safe[here, None], axis=1)[:, 0]
        r[here] = xp.log(xp.exp(logits).sum(axis=1)) - own
    return xp.where(scale == 0, r.dtype.type(0), r * scale)


@op(
    "_linear_cross_entropy_rows_backward(Tensor grad, Tensor input, Tensor linear_weight, Tensor "
    "target, Tensor? linear_bias, Tensor? weight, int ignore_index, int chunk) -> (Tensor, "
    "Tensor, Tensor)",
    public=False,
    meta=lambda g, x, w, *rest: (
        MetaArray(x.shape, x.dtype),
        MetaArray(w.shape, w.dtype),
        MetaArray((w.shape[0],), w.dtype),
    ),
)
def linear_cross_entropy_rows_backward(
    xp: Any, g: Any, x: Any, w: Any, target: Any, bias: Any, weight: Any, ignore: int, chunk: int
) -> Any:
    """The gradients of input, linear_weight and linear_bias."""
    safe, scale = _rows_of(target, weight, ignore, x.dtype, xp)
    scale = scale * g
    gx, gw = xp.empty(x.shape, x.dtype), xp.zeros(w.shape, w.dtype)
    gb = xp.zeros(w.shape[0], w.dtype)
    for i in range(0, x.shape[0], chunk):
        here = slice(i, i + chunk)
        p = _logits(xp, x[here], w, bias)
        xp.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        p[xp.arange(p.shape[0]), safe[here]] -= 1
        p *= scale[here, None]
        gx[here] = xp.matmul(p, w)
        gw += xp.matmul(p.T, x[here])
        gb += p.sum(axis=0)
    return gx, gw, gb


@vjp_helper
def linear_cross_entropy_vjp(
    g: Any,
    x: Any,
    w: Any,
    target: Any,
    bias: Any,
    weight: Any,
    ignore: int,
    chunk: int,
    needs: Any,
) -> Any:
    """The gradients that are needed."""
    if not grad_enabled():
        r = linear_cross_entropy_rows_backward.call(g, x, w, target, bias, weight, ignore, chunk)
        return tuple(v if k else None for v, k in zip(r, needs, strict=True))
    counts = target != ignore
    safe = aten.where(counts, target, 0)
    scale = aten.to(counts, g._k.dtype)
    if weight is not None:
        scale = scale * aten.index_select(weight, 0, safe)
    logits = aten.linear(x, w, bias)
    hit = aten.one_hot(safe, w._a.shape[0])
    p = (aten.softmax(logits, 1) - hit) * aten.unsqueeze(scale * g, 1)
    return (
        aten.mm(p, w) if needs[0] else None,
        aten.mm(aten.t(p), x) if needs[1] else None,
        aten.sum(p, 0) if needs[2] else None,
    )


def _check(x: Any, w: Any) -> None:
    if w._a.ndim < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {w._a.ndim}"
        )
    if x._a.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {x._a.ndim}")
    if x._a.shape[-1] != w._a.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{x._a.shape[-1]} and {w._a.shape[-1]}, respectively"
        )
    if w._a.ndim > 2 and x._a.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(w._a.shape)} requires "
            f"batched input, (N, {w._a.shape[-1]}), got unbatched input with shape "
            f"{tuple(x._a.shape)}"
        )


def _chunk(options: Any, rows: int, features: int, classes: int) -> int:
    """How many rows at a time: as asked for, or so few that a chunk's logits are at most the
    aspect ratio times as large as the whole input."""
    if options.batch_chunk_size is not None:
        return max(1, min(options.batch_chunk_size, rows))
    method = options.chunking_method
    if method is None:
        return max(rows, 1)
    ratio = 2.0 if method == "auto" else float(method.partition(":")[2])
    chunks = max(1, math.ceil(classes / max(ratio * features, 1)))
    return max(1, math.ceil(rows / chunks))


@face("linear_cross_entropy", method=False, spaces=("nn.functional",))
def linear_cross_entropy(
    self: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: Any = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:
    """cross_entropy(linear(input, linear_weight, linear_bias), target, …).

    input (in) or (N, in); linear_weight (classes, …, in) for losses of more dimensions, (N, …).
    options: a LinearCrossEntropyOptions lets the logits of a few rows at a time be computed.
    """
    _check(self, linear_weight)
    ws = linear_weight._a.shape
    if self._a.ndim == 2 and target._a.ndim and self._a.shape[0] != target._a.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({self._a.shape[0]}) to match target batch_size "
            f"({target._a.shape[0]})."
        )
    indices = not target._k.dtype.is_floating_point
    if options is not None and self._a.ndim == 1 and target._a.ndim == 0:
        loss = linear_cross_entropy.function(
            aten.unsqueeze(self, 0),
            linear_weight,
            aten.unsqueeze(target, 0),
            linear_bias=linear_bias,
            weight=weight,
            reduction=reduction,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            options=options,
        )
        return aten.squeeze(loss, 0) if reduction == "none" else loss
    if options is not None and self._a.ndim == 2:
        fits = len(ws) == 2 and indices and label_smoothing == 0
        if fits and target._k.dtype.name == "int64":
            return _in_chunks(
                self, linear_weight, target, linear_bias, weight, reduction, ignore_index, options
            )
        warn_user(
            "linear_cross_entropy: ``options`` ignored; the chunked path needs label_smoothing == "
            "0, targets that are class indices (int64), and linear_weight (classes, in). Got "
            f"label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
            f"linear_weight.shape={tuple(ws)}.",
        )
    flat = linear_weight if len(ws) == 2 else aten.reshape(linear_weight, (-1, ws[-1]))
    bias = linear_bias if linear_bias is None else aten.reshape(linear_bias, (-1,))
    logits = aten.linear(self, flat, bias)
    if len(ws) > 2:
        logits = aten.reshape(logits, (self._a.shape[0], *ws[:-1]))
    ignored = -100 if ignore_index is None else ignore_index
    number = reduction_number(reduction)
    return aten.cross_entropy_loss(logits, target, weight, number, ignored, label_smoothing)


def _in_chunks(
    x: Any,
    w: Any,
    target: Any,
    bias: Any,
    weight: Any,
    reduction: str,
    ignore_index: Any,
    options: Any,
) -> Any:
    number = reduction_number(reduction)
    ignored = -100 if ignore_index is None else ignore_index
    if x._a.shape[0] != target._a.shape[0] or target._a.ndim != 1:
        raise RuntimeError(
            f"linear_cross_entropy: expected one target for each of {x._a.shape[0]} rows, but got "
            f"target of size {list(target._a.shape)}"
        )
    if x._k.dtype is not w._k.dtype:
        raise RuntimeError(
            "linear_cross_entropy: expected input and linear_weight to have the same dtype, but "
            f"got: {x.dtype} != {w.dtype}"
        )
    chunk = _chunk(options, x._a.shape[0], *reversed(w._a.shape))
    rows = linear_cross_entropy_rows.call(x, w, target, bias, weight, ignored, chunk)
    if number == NONE:
        return rows
    total = aten.sum(rows)
    if number != MEAN:
        return total
    counts = target != ignored
    scale = aten.to(counts, x._k.dtype)
    if weight is not None:
        safe = aten.where(counts, target, 0)
        scale = scale * aten.index_select(aten.detach(weight), 0, safe)
    return total / aten.sum(scale)
