"""Losses between an input and a target of the same shape. (Class indices: loss_nll.py.)

Each hot loss is one operator: its kernel computes and reduces without further calls. The rest is
Python over operators.
Source of the semantics: https://docs.pytorch.org/docs/2.13/nn.functional.html#loss-functions
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.duals import Dual
from torchlab._core.dispatch.levels import LEVELS
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import FLOATS, need
from torchlab._core.ops._loss_types import cast_back, differ, is_number, refuse, together
from torchlab._core.ops.kernels import MEAN, NONE, SUM, constant, np, reduction_number
from torchlab._core.settings import warn_user

_F = ("nn.functional",)


def _reduce(xp: Any, values: Any, reduction: int) -> Any:
    if reduction == NONE:
        return values
    r = xp.add.reduce(values.reshape(-1) if values.flags.c_contiguous else values, axis=None)
    if reduction == MEAN:
        r = r / values.dtype.type(values.size)
    return r if type(r) is np.ndarray else xp.asarray(r, values.dtype)


def _reduced(values: Any, reduction: int) -> Any:
    """The same of a tensor."""
    return (
        values
        if reduction == NONE
        else aten.mean(values)
        if reduction == MEAN
        else aten.sum(values)
    )


def _meta(a: Any, b: Any, *rest: Any) -> Any:
    reduction = next((r for r in rest if type(r) is int), MEAN)
    shape = layout.broadcast_shapes(a.shape, b.shape) if reduction == NONE else ()
    return MetaArray(shape, np.result_type(a.dtype, b.dtype))


def _meta_weighted(a: Any, b: Any, *rest: Any) -> Any:
    return MetaArray(a.shape if rest[-1] == NONE else (), a.dtype)


@vjp_helper
def spread(g: Any, self: Any, target: Any, reduction: int) -> Any:
    """The gradient of a loss's value for each element."""
    if reduction != MEAN:
        return g
    return g / max(layout.numel(layout.broadcast_shapes(self._a.shape, target._a.shape)), 1)


def _floating(name: str, a: Any) -> None:
    if a.dtype.kind not in "fcV":
        names = {
            "int64": "Long",
            "int32": "Int",
            "int16": "Short",
            "int8": "Char",
            "uint8": "Byte",
            "bool": "Bool",
        }
        raise NotImplementedError(
            f"\"{name}_cpu\" not implemented for '{names.get(a.dtype.name, a.dtype.name)}'"
        )


@vjp_helper
def mse_slope(g: Any, self: Any, target: Any, reduction: int) -> Any:
    """2 · (self − target) · g, over the number of elements for a mean."""
    factor = 2.0
    if reduction == MEAN:
        n = layout.numel(layout.broadcast_shapes(self._a.shape, target._a.shape))
        factor = 2.0 / n if n else math.nan
    return (self - target) * (g * factor)


@op(
    "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    public=False,
    meta=_meta,
    decompose=lambda a, b, reduction=1: _reduced((a - b) * (a - b), reduction),
    vjp={
        "self": "mse_slope(g, self, target, reduction)",
        "target": "-mse_slope(g, self, target, reduction)",
    },
    autocast="float32",
)
def mse_loss_op(xp: Any, a: Any, b: Any, reduction: int) -> Any:
    """(a − b)²."""
    _floating("mse", a)
    d = xp.asarray(a - b)
    d *= d
    return _reduce(xp, d, reduction)


@vjp_helper
def smooth_l1_slope(g: Any, self: Any, target: Any, reduction: int, beta: float) -> Any:
    d = self - target
    g = spread(g, self, target, reduction)
    if beta == 0:
        return g * aten.sign(d)
    return g * aten.clamp(d / beta, -1.0, 1.0)


@op(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
    public=False,
    meta=_meta,
    vjp={
        "self": "smooth_l1_slope(g, self, target, reduction, beta)",
        "target": "-smooth_l1_slope(g, self, target, reduction, beta)",
    },
    grad_name="SmoothL1LossBackward0",
    autocast="float32",
)
def smooth_l1_loss_op(xp: Any, a: Any, b: Any, reduction: int, beta: float) -> Any:
    """½ d² / beta where |d| < beta, else |d| − ½ beta."""
    _floating("smooth_l1", a)
    d = xp.abs(a - b)
    one = d.dtype.type
    if beta == 0:
        return _reduce(xp, xp.asarray(d), reduction)
    small = xp.multiply(d, d) * one(0.5 / beta)
    return _reduce(xp, xp.asarray(xp.where(d < beta, small, d - one(0.5 * beta))), reduction)


@vjp_helper
def huber_slope(g: Any, self: Any, target: Any, reduction: int, delta: float) -> Any:
    return spread(g, self, target, reduction) * aten.clamp(self - target, -delta, delta)


@op(
    "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
    public=False,
    meta=_meta,
    vjp={
        "self": "huber_slope(g, self, target, reduction, delta)",
        "target": "-huber_slope(g, self, target, reduction, delta)",
    },
    autocast="float32",
)
def huber_loss_op(xp: Any, a: Any, b: Any, reduction: int, delta: float) -> Any:
    """½ d² where |d| ≤ delta, else delta · (|d| − ½ delta)."""
    _floating("huber", a)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    d = xp.abs(a - b)
    one = d.dtype.type
    return _reduce(
        xp,
        xp.asarray(xp.where(d <= delta, d * d * one(0.5), one(delta) * (d - one(0.5 * delta)))),
        reduction,
    )


@vjp_helper
def bce_slope(g: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    r = (
        spread(g, self, target, reduction)
        * (self - target)
        / aten.clamp((1 - self) * self, min=1e-12)
    )
    return r if weight is None else r * weight


@vjp_helper
def bce_target_slope(g: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    r = spread(g, self, target, reduction) * (aten.log1p(-self) - aten.log(self))
    return r if weight is None else r * weight


@op(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> "
    "Tensor",
    public=False,
    meta=_meta_weighted,
    vjp={
        "self": "bce_slope(g, self, target, weight, reduction)",
        "target": "bce_target_slope(g, self, target, weight, reduction)",
    },
    autocast="float32:cpu banned:accelerator",
)
def binary_cross_entropy_op(xp: Any, p: Any, y: Any, weight: Any, reduction: int) -> Any:
    """−w · (y · log p + (1 − y) · log(1 − p)), logarithms not below −100."""
    _floating("binary_cross_entropy", p)
    if p.size and not (bool((p >= 0).all()) and bool((p <= 1).all())):
        raise RuntimeError("all elements of input should be between 0 and 1")
    if y.size and not (bool((y >= 0).all()) and bool((y <= 1).all())):
        raise RuntimeError("all elements of target should be between 0 and 1")
    low = p.dtype.type(-100)
    r = (y - 1) * xp.maximum(xp.log1p(-p), low) - y * xp.maximum(xp.log(p), low)
    return _reduce(xp, xp.asarray(r if weight is None else r * weight), reduction)


@vjp_helper
def logits_slope(
    g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    s = aten.sigmoid(self)
    if pos_weight is None:
        r = s - target
    else:
        t = pos_weight * target
        r = (t + 1 - target) * s - t
    r = r * spread(g, self, target, reduction)
    return r if weight is None else r * weight


@vjp_helper
def logits_target_slope(
    g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    g = spread(g, self, target, reduction)
    if pos_weight is None:
        r = -self * g
    else:
        r = (aten.log_sigmoid(-self) - pos_weight * aten.log_sigmoid(self)) * g
    return r if weight is None else r * weight


@op(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
    "pos_weight=None, "
    "int reduction=1) -> Tensor",
    public=False,
    meta=_meta_weighted,
    vjp={
        "self": "logits_slope(g, self, target, weight, pos_weight, reduction)",
        "target": "logits_target_slope(g, self, target, weight, pos_weight, reduction)",
    },
    autocast="float32",
)
def binary_cross_entropy_with_logits_op(
    xp: Any, x: Any, y: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    """The same of p = sigmoid(x), without overflow."""
    softplus = xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(-x, x.dtype.type(0))  # −log sigmoid(x)
    if pos_weight is not None:
        softplus = softplus * ((pos_weight - 1) * y + 1)
    r = (1 - y) * x + softplus
    return _reduce(xp, xp.asarray(r if weight is None else r * weight), reduction)


# ---- public -------------------------------------------------------------------------------------


def _same_size(name: str, self: Any, target: Any) -> tuple[Any, Any]:
    """Both expanded to a common shape; another size than the target's is told."""
    if self._a.shape == target._a.shape:
        return self, target
    warn_user(
        f"Using a target size ({target.shape}) that is different to the input size "
        f"({self.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
    )
    shape = layout.broadcast_shapes(self._a.shape, target._a.shape)
    pair = [t if t._a.shape == shape else aten.expand(t, shape) for t in (self, target)]
    return pair[0], pair[1]


def _weighted(values: Any, weight: Any, reduction: str) -> Any:
    """A loss with a weight for each element: the mean divides by the weights' sum."""
    if weight._a.shape != values._a.shape:
        raise ValueError("Inputs and weights must have the same size.")
    values = values * weight
    if reduction == "mean":
        return aten.sum(values) / aten.sum(weight)
    return _reduced(values, reduction_number(reduction))


@face("mse_loss", method=False, spaces=_F)
def mse_loss(
    self: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """The mean (sum, or each) of (input − target)²."""
    number = reduction_number(reduction, size_average, reduce)
    self, target = together("mse_cpu", *_same_size("mse_loss", self, target))
    if weight is not None:
        return _weighted(mse_loss_op.call(self, target, NONE), weight, reduction)
    return mse_loss_op.call(self, target, number)


@face("l1_loss", method=False, spaces=_F, autocast="float32")
def l1_loss(
    self: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """The mean (sum, or each) of |input − target|."""
    number = reduction_number(reduction, size_average, reduce)
    self, target = _same_size("l1_loss", self, target)
    values = aten.abs(self - target)
    return _reduced(values, number) if weight is None else _weighted(values, weight, reduction)


@face("smooth_l1_loss", method=False, spaces=_F)
def smooth_l1_loss(
    self: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """½ d² / beta where |d| < beta, else |d| − ½ beta (arXiv:1504.08083)."""
    number = reduction_number(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    self, target = together("smooth_l1_cpu", *_same_size("smooth_l1_loss", self, target))
    return smooth_l1_loss_op.call(self, target, number, beta)


@face("huber_loss", method=False, spaces=_F)
def huber_loss(
    self: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """½ d² where |d| ≤ delta, else delta · (|d| − ½ delta)."""
    number = reduction_number(reduction)
    a, b = together("huber_cpu", *_same_size("huber_loss", self, target))
    r = huber_loss_op.call(a, b, NONE if weight is not None else number, delta)
    if differ(self, target):
        r = cast_back(r, self, a)
    return r if weight is None else _weighted(r, weight, reduction)


@face("binary_cross_entropy", method=False, spaces=_F)
def binary_cross_entropy(
    self: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Of probabilities in [0, 1] and targets of the same shape."""
    number = reduction_number(reduction, size_average, reduce)
    if self._a.shape != target._a.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({self.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = aten.expand(weight, layout.broadcast_shapes(weight._a.shape, target._a.shape))
    if differ(self, target):
        raise RuntimeError(
            f"Found dtype {target._k.dtype.scalar_name} but expected {self._k.dtype.scalar_name}:"
            " binary_cross_entropy needs a target of the input's type, target.to(input.dtype)"
        )
    need(FLOATS, "binary_cross_entropy", self._a)
    constant("binary_cross_entropy", weight=weight)
    return binary_cross_entropy_op.call(self, target, weight, number)


def _is_differentiated(weight: Any) -> bool:
    """Whether a function transform takes the derivative by a weight, which no tape does."""
    if weight is None:
        return False
    return isinstance(weight, Dual) or bool(LEVELS.reverse and weight.requires_grad)


def _of_logits(self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    """binary_cross_entropy_with_logits made of operators with derivatives by everything."""
    below = -aten.log_sigmoid(self)
    if pos_weight is not None:
        below = below * ((pos_weight - 1) * target + 1)
    r = (1 - target) * self + below
    return _reduced(r if weight is None else r * weight, reduction)


@face("binary_cross_entropy_with_logits", spaces=_F, method=False)
def binary_cross_entropy_with_logits(
    self: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: Any = "mean",
    pos_weight: Any = None,
) -> Any:
    """Of logits and targets of the same shape, without overflow."""
    number = (
        reduction if type(reduction) is int else reduction_number(reduction, size_average, reduce)
    )
    if self._a.shape != target._a.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({self.shape})"
        )
    if _is_differentiated(weight) or _is_differentiated(pos_weight):
        return _of_logits(self, target, weight, pos_weight, number)
    constant("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    if not is_number(self) or self._k.dtype.is_complex:
        refuse("log_sigmoid_cpu", self)
    run = binary_cross_entropy_with_logits_op.call
    parts = [x for x in (weight, pos_weight) if x is not None]
    if differ(self, target) or any(differ(self, x) for x in parts):
        # As if written into 1 - target: of the target's type, whatever the weights are of.
        a, b = together("log_sigmoid_cpu", self, target)
        weight, pos_weight = (
            None if x is None else aten.to(x, a._k.dtype) for x in (weight, pos_weight)
        )
        return cast_back(run(a, b, weight, pos_weight, number), target, self)
    return run(self, target, weight, pos_weight, number)


@face("binary_cross_entropy_with_logits", method=False)
def numbered_binary_cross_entropy_with_logits(
    self: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 0
) -> Any:
    """`nn.functional.binary_cross_entropy_with_logits` with the reduction as a number."""
    body = binary_cross_entropy_with_logits.body
    return body(self, target, weight, reduction=reduction, pos_weight=pos_weight)


def _entropy(p: Any) -> Any:
    """p · log p, 0 where p is 0."""
    return p * aten.log(aten.masked_fill(p, aten.eq(p, 0), 1))


@face("kl_div", spaces=_F, method=False, autocast="float32")
def kl_div(
    self: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: Any = "mean",
    log_target: bool = False,
) -> Any:
    """target · (log target − input): the Kullback–Leibler divergence of log probabilities
    `input`."""
    if reduction == "mean":
        warn_user(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size. 'batchmean' "
            "divides only by the batch size, and aligns with the KL div math definition.",
        )
    if not (is_number(self) and is_number(target)):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if self._k.dtype.is_complex or target._k.dtype.is_complex:
        raise RuntimeError("kl_div: Complex inputs not supported.")
    batchmean = reduction == "batchmean"
    number = (
        SUM
        if batchmean
        else (
            reduction
            if type(reduction) is int
            else reduction_number(reduction, size_average, reduce)
        )
    )
    values = aten.exp(target) * (target - self) if log_target else _entropy(target) - target * self
    total = _reduced(values, number)
    return total / self._a.shape[0] if batchmean and self._a.ndim else total


@face("poisson_nll_loss", spaces=_F, method=False, autocast="float32")
def poisson_nll_loss(
    self: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """exp(x) − y·x (or x − y·log x); `full` adds Stirling's approximation of log y!."""
    number = (
        reduction if type(reduction) is int else reduction_number(reduction, size_average, reduce)
    )
    loss = aten.exp(self) - target * self if log_input else self - target * aten.log(self + eps)
    if full:
        stirling = target * aten.log(target) - target + 0.5 * aten.log(2 * math.pi * target)
        loss = loss + aten.to(aten.masked_fill(stirling, target <= 1, 0), loss._k.dtype)
    return _reduced(loss, number)


def _shares_one_dimension(shape: tuple[int, ...], var: tuple[int, ...]) -> bool:
    """Whether the variances have size 1 in one dimension and the values' size in all others."""
    if len(shape) != len(var):
        return False
    shared = [v for n, v in zip(shape, var, strict=True) if n != v]
    return shared == [1]


@face("gaussian_nll_loss", spaces=_F, method=False)
def gaussian_nll_loss(
    self: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """½ (log max(var, eps) + (input − target)² / max(var, eps)), `full`: + ½ log 2π."""
    number = reduction_number(reduction)
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * aten.ones_like(self)
    elif type(var._a) is not MetaArray and bool((var._a < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var._a.shape != self._a.shape:
        if self._a.shape[:-1] == var._a.shape:
            var = aten.unsqueeze(var, -1)
        elif not _shares_one_dimension(self._a.shape, var._a.shape):
            raise ValueError("var is of incorrect size")
    if not is_number(var):
        raise RuntimeError(
            "result type Float can't be cast to the desired output type"
            f" {var._k.dtype.scalar_name}: gaussian_nll_loss limits var from below"
        )
    # The limit is no part of the gradient, as in PyTorch.
    limited = var + aten.detach(aten.clamp(var, min=eps) - var)
    loss = 0.5 * (aten.log(limited) + (self - target) ** 2 / limited)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, number)
