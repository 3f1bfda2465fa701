"""Margin losses.

Source of the semantics: https://docs.pytorch.org/docs/2.13/nn.functional.html#loss-functions
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.arguments import check_tensor
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._kinds import need
from torchlab._core.ops._loss_types import cast_back, is_number, refuse, same_type
from torchlab._core.ops.kernels import MEAN, NONE, constant, reduction_number

_F = ("nn.functional",)


def _reduced(values: Any, reduction: int) -> Any:
    return (
        values
        if reduction == NONE
        else aten.mean(values)
        if reduction == MEAN
        else aten.sum(values)
    )


@face("hinge_embedding_loss", spaces=_F, method=False, autocast="float32")
def hinge_embedding_loss(
    self: Any,
    target: Any,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: Any = "mean",
) -> Any:
    """x where the target is 1, max(0, margin − x) where it is −1."""
    number = (
        reduction if type(reduction) is int else reduction_number(reduction, size_average, reduce)
    )
    zeros = aten.zeros_like(self)
    away = aten.clamp(margin - self, min=0)
    if not is_number(self):
        away = aten.to(away, self._k.dtype)
    far = aten.where(target != 1, away, zeros)
    near = aten.where(target != -1, self, zeros)
    return _reduced(far + near, number)


@face("margin_ranking_loss", spaces=_F, method=False, autocast="float32")
def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: Any = "mean",
) -> Any:
    """max(0, −target · (input1 − input2) + margin)."""
    number = (
        reduction if type(reduction) is int else reduction_number(reduction, size_average, reduce)
    )
    if not input1._a.ndim == input2._a.ndim == target._a.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            "input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return _reduced(aten.clamp(-target * (input1 - input2) + float(margin), min=0), number)


@face("soft_margin_loss", spaces=_F, method=False, autocast="float32")
def soft_margin_loss(
    self: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """log(1 + exp(−target · input))."""
    constant("soft_margin_loss", target=target)
    if not is_number(self):
        cast_back(None, self, target)
    exponent = target * self
    if exponent._k.dtype.is_complex:  # for which there is no log_sigmoid
        each = aten.log(aten.exp(-exponent) + 1)
    else:
        each = -aten.log_sigmoid(exponent)
    r = _reduced(each, reduction_number(reduction, size_average, reduce))
    return cast_back(r, self)


@face("multilabel_soft_margin_loss", spaces=_F, method=False)
def multilabel_soft_margin_loss(
    self: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The mean over classes of binary cross entropies of logits."""
    loss = -(target * aten.log_sigmoid(self) + (1 - target) * aten.log_sigmoid(-self))
    loss = loss if weight is None else loss * weight
    return _reduced(aten.mean(loss, -1), reduction_number(reduction, size_average, reduce))


@face("multi_margin_loss", spaces=_F, method=False, autocast="float32")
def multi_margin_loss(
    self: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Σ max(0, margin − x[y] + x[i])ᵖ over the other classes i, over the number of classes."""
    number = reduction_number(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    shape = self._a.shape
    if len(shape) > 2 or 0 in shape[1:] or shape == (0,):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(shape)}"
        )
    if weight is not None and weight._a.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    if self._k.device.type == "cpu" and self._k.dtype.name not in ("float32", "float64"):
        refuse("multi_margin_loss_cpu_kernel", self)
    same_type(weight, self)
    x = self if len(shape) == 2 else aten.reshape(self, (1, -1))
    if target._a.size != x._a.shape[0] or target._a.ndim > 1:
        raise RuntimeError(
            f"inconsistent target size, expected {x._a.shape[0]} but got {list(target._a.shape)}"
        )
    y = aten.reshape(target, (-1,))
    classes = x._a.shape[1]
    right = aten.gather(x, 1, aten.unsqueeze(y, 1))
    loss = aten.clamp(margin - right + x, min=0)
    loss = loss if p == 1 else loss * loss
    if weight is not None:
        loss = loss * aten.unsqueeze(aten.index_select(weight, 0, y), 1)
    other = aten.unsqueeze(y, 1) != aten.arange(classes, device=self._k.device)
    loss = aten.sum(aten.where(other, loss, 0), 1) / classes
    return _reduced(aten.reshape(loss, target._a.shape), number)


@face("triplet_margin_loss", spaces=_F, method=False, autocast="float32")
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: Any = "mean",
) -> Any:
    """max(0, d(anchor, positive) − d(anchor, negative) + margin)."""
    for i, (name, t) in enumerate([("anchor", anchor), ("positive", positive)], 1):
        check_tensor("triplet_margin_loss", name, t, i)
    check_tensor("triplet_margin_loss", "negative", negative, 3)
    number = (
        reduction if type(reduction) is int else reduction_number(reduction, size_average, reduce)
    )
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    near = aten.pairwise_distance(anchor, positive, p, eps)
    far = aten.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = aten.minimum(far, aten.pairwise_distance(positive, negative, p, eps))
    return _reduced(aten.clamp(margin + near - far, min=0), number)


@face("cosine_embedding_loss", spaces=_F, method=False, autocast="float32")
def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: Any = "mean",
) -> Any:
    """1 − cos where the target is 1, max(0, cos − margin) where it is −1."""
    number = (
        reduction if type(reduction) is int else reduction_number(reduction, size_average, reduce)
    )
    dim = target._a.ndim
    eps = 1e-12
    dot = aten.sum(input1 * input2, dim)
    cos = dot / aten.sqrt(
        (aten.sum(input1 * input1, dim) + eps) * (aten.sum(input2 * input2, dim) + eps)
    )
    zeros = aten.zeros_like(cos)
    loss = aten.where(target == 1, 1 - cos, zeros) + aten.where(
        target == -1, aten.clamp(cos - margin, min=0), zeros
    )
    return _reduced(loss, number)


@face("triplet_margin_with_distance_loss", spaces=_F, method=False)
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """`triplet_margin_loss` with any distance; by default the Euclidean one."""
    number = reduction_number(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = anchor._a.ndim, positive._a.ndim, negative._a.ndim
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            "dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance = distance_function or aten.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = aten.minimum(far, distance(positive, negative))
    return _reduced(aten.clamp(margin + near - far, min=0), number)


@face("multilabel_margin_loss", spaces=_F, method=False, autocast="float32")
def multilabel_margin_loss(
    self: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """Σ max(0, 1 − (x[y] − x[i])) over the target classes y (listed up to the first −1) and the
    others
    i, over the number of classes."""
    number = reduction_number(reduction, size_average, reduce)
    shape = self._a.shape
    if len(shape) > 2 or 0 in shape[1:] or shape == (0,):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(shape)}"
        )
    need("f", "multilabel_margin_loss_forward_out_frame", self._a)
    if target._a.shape != shape and (len(shape) == 2 or target._a.size != self._a.size):
        raise RuntimeError(
            f"inconsistent target size: {list(target._a.shape)} for input of size: {list(shape)}"
        )
    x = self if len(shape) == 2 else aten.reshape(self, (1, -1))
    y = aten.reshape(target, x._a.shape)
    classes = x._a.shape[1]
    listed = aten.cumsum(aten.to(y < 0, y._k.dtype), 1) == 0
    safe = aten.masked_fill(y, aten.logical_not(listed), 0)
    count = aten.scatter_add(aten.zeros_like(y), 1, safe, aten.to(listed, y._k.dtype))
    others = aten.unsqueeze(count == 0, 1)  # (N, 1, C)
    right = aten.unsqueeze(aten.gather(x, 1, safe), 2)  # (N, C, 1)
    loss = aten.clamp(1 - right + aten.unsqueeze(x, 1), min=0)
    loss = aten.where(aten.logical_and(aten.unsqueeze(listed, 2), others), loss, 0)
    loss = aten.sum(loss, (1, 2)) / classes
    return _reduced(aten.reshape(loss, shape[:-1]), number)
