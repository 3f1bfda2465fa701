"""Negative log likelihood and cross entropy.

Source of the semantics:
https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.cross_entropy.html
Label smoothing: Szegedy and others, arXiv:1512.00567.
"""

from __future__ import annotations

from typing import Any

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import FLOATS, need
from torchlab._core.ops._loss_types import same_type
from torchlab._core.ops.kernels import MEAN, NONE, SUM, constant, reduction_number


def _check(a: Any, target: Any, weight: Any) -> None:
    n = a.ndim
    if n == 0 or n > 2 and a.shape[0] != target.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({a.shape[0] if n else 0}) to match target batch_size "
            f"({target.shape[0] if target.ndim else 0})."
        )
    wanted = (*a.shape[:1], *a.shape[2:]) if n > 1 else ()
    if target.shape != wanted:
        if n == 2 and target.ndim == 1:
            raise ValueError(
                f"Expected input batch_size ({a.shape[0]}) to match target batch_size "
                f"({target.shape[0]})."
            )
        if n <= 2 and target.ndim > 1:
            raise RuntimeError(
                "0D or 1D target tensor expected, multi-target not supported, got "
                f"{list(target.shape)}"
            )
        raise RuntimeError(
            f"nll_loss: input and target sizes don't match: input {list(a.shape)}, target "
            f"{list(target.shape)}"
        )
    if target.dtype.kind not in "iu" or target.dtype.itemsize != 8 and target.dtype.name != "uint8":
        raise RuntimeError(
            f"nll_loss: expected target of type Long (class indices), got {target.dtype.name}"
        )
    if weight is not None:
        classes = a.shape[1 if n > 1 else 0]
        if weight.shape != (classes,):
            raise RuntimeError(
                f"nll_loss: weight tensor should be defined either for all {classes} classes or "
                "no classes but got "
                f"weight tensor of shape: {list(weight.shape)}"
            )


def _select(xp: Any, a: Any, target: Any, ignore_index: int) -> tuple[Any, Any, Any]:
    """(index that picks a's entry of each target, targets made valid, mask of ignored ones or
    None).

    Raises IndexError for a target that is neither a class nor `ignore_index`.
    """
    classes = a.shape[1 if a.ndim > 1 else 0]
    ignored = None
    t = target
    if target.size:
        low, high = int(target.min()), int(target.max())
        if low < 0 or high >= classes or low <= ignore_index <= high:
            ignored = target == ignore_index
            t = xp.where(ignored, 0, target)
            bad = (t < 0) | (t >= classes)
            if bad.any():
                raise IndexError(f"Target {int(target[bad].ravel()[0])} is out of bounds.")
    if a.ndim == 1:
        return (t,), t, ignored
    if a.ndim == 2:
        return (xp.arange(a.shape[0]), t), t, ignored
    grid = xp.ogrid[tuple(slice(n) for n in target.shape)]
    return (grid[0], t, *grid[1:]), t, ignored


def _weights(xp: Any, a: Any, weight: Any, t: Any, ignored: Any) -> Any:
    """The weight of each target, or None if all are 1."""
    if weight is None:
        return None if ignored is None else (~ignored).astype(a.dtype)
    w = weight[t]
    return w if ignored is None else xp.where(ignored, w.dtype.type(0), w)


def _nll(xp: Any, a: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    _check(a, target, weight)
    where, t, ignored = _select(xp, a, target, ignore_index)
    picked, zero = a[where], a.dtype.type(0)
    w = _weights(xp, a, weight, t, ignored)
    if w is not None:
        picked = picked * w
    if reduction == NONE and a.ndim > 1:
        each = -picked
        return (each if ignored is None else xp.where(ignored, zero, each)), xp.asarray(zero)
    if ignored is not None:
        picked = xp.where(ignored, zero, picked)  # an ignored −inf or NaN counts as 0
    total = a.dtype.type(picked.size) if w is None else xp.add.reduce(w, axis=None)
    s = zero - xp.add.reduce(picked, axis=None)  # taken from 0: a loss of nothing is no -0
    if reduction == NONE:  # of a single sample
        return xp.asarray(s, a.dtype), xp.asarray(zero)
    return xp.asarray(s / total if reduction == MEAN else s, a.dtype), xp.asarray(total, a.dtype)


def _nll_meta(a: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    _check(a, target, weight)
    return MetaArray(target.shape if reduction == NONE else (), a.dtype), MetaArray((), a.dtype)


def _nll_backward(
    xp: Any,
    g: Any,
    a: Any,
    target: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    total_weight: Any,
) -> Any:
    where, t, ignored = _select(xp, a, target, ignore_index)
    w = _weights(xp, a, weight, t, ignored)
    if reduction == MEAN:
        g = g / total_weight
    r = xp.zeros(a.shape, a.dtype)
    value = -g if w is None else -(g * w)
    r[where] = value if ignored is None else xp.where(ignored, a.dtype.type(0), value)
    return r


def _grad_like_input(g: Any, a: Any, *rest: Any) -> Any:
    return MetaArray(a.shape, a.dtype)


@vjp_helper
def nll_double_backward(
    g: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total: Any
) -> Any:
    """The gradient of nll_loss_backward's grad_output: the same loss of g."""
    forward = aten.nll_loss_forward if g._a.ndim < 3 else aten.nll_loss2d_forward
    if reduction == MEAN:
        return forward(g, target, weight, SUM, ignore_index)[0] / total
    return forward(g, target, weight, reduction, ignore_index)[0]


def _declare(suffix: str, grad_name: str) -> tuple[Any, Any]:
    backward = op(
        f"nll_loss{suffix}_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? "
        "weight, int reduction, "
        "int ignore_index, Tensor total_weight) -> Tensor",
        public=False,
        meta=_grad_like_input,
        vjp={
            "grad_output": (
                "nll_double_backward(g, target, weight, reduction, ignore_index, total_weight)"
            )
        },
    )(_nll_backward)
    forward = op(
        f"nll_loss{suffix}_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int "
        "ignore_index) -> "
        "(Tensor output, Tensor total_weight)",
        public=False,
        meta=_nll_meta,
        grad_name=grad_name,
        vjp={
            "self": (
                f"nll_loss{suffix}_backward(g0, self, target, weight, reduction, "
                "ignore_index, result1)"
            )
        },
    )(_nll)
    return forward, backward


nll_loss_forward, nll_loss_backward = _declare("", "NllLossBackward0")
nll_loss2d_forward, nll_loss2d_backward = _declare("2d", "NllLoss2DBackward0")


@composite(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
    "ignore_index=-100) -> Tensor",
    public=False,
)
def nll_loss_nd(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """Minus the weighted mean (or sum, or each) of self's entries at the targets."""
    constant("nll_loss_forward", weight=weight)
    need(FLOATS, "nll_loss_out_frame", self._a)
    same_type(weight, self)
    forward = nll_loss_forward if self._a.ndim < 3 else nll_loss2d_forward
    return forward.call(self, target, weight, reduction, ignore_index)[0]


@face("nll_loss", method=False, spaces=("nn.functional",), autocast="float32")
def nll_loss(
    self: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Negative log likelihood of log probabilities (N, C, …) and class indices (N, …).

    Raises IndexError for a target outside [0, C) that is not `ignore_index`.
    """
    return nll_loss_nd.call(
        self, target, weight, reduction_number(reduction, size_average, reduce), ignore_index
    )


# ---- cross entropy ------------------------------------------------------------------------------


def _smoothed(
    logp: Any,
    target: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    smoothing: float,
    dim: int,
) -> Any:
    """(1 − s) · nll + s / C · mean of −log p over the classes."""
    classes = logp._a.shape[dim]
    nll = nll_loss_nd.call(logp, target, weight, reduction, ignore_index)
    shape = [1] * logp._a.ndim
    shape[dim] = classes
    weighted = logp if weight is None else logp * aten.view(weight, shape)
    smooth = -aten.sum(weighted, dim)
    ignored = aten.eq(target, ignore_index)
    smooth = aten.masked_fill(smooth, ignored, 0.0)
    if reduction == MEAN:
        if weight is None:
            total = aten.sum(aten.to(aten.logical_not(ignored), logp._k.dtype))
        else:
            safe = aten.masked_fill(target, ignored, 0)
            picked = aten.embedding(aten.view(weight, (-1, 1)), safe)
            total = aten.sum(aten.masked_fill(aten.squeeze(picked, -1), ignored, 0.0))
        smooth = aten.sum(smooth) / total
    elif reduction == SUM:
        smooth = aten.sum(smooth)
    return nll * (1 - smoothing) + smooth * (smoothing / classes)


def _probabilities(
    logp: Any, target: Any, weight: Any, reduction: int, smoothing: float, dim: int
) -> Any:
    """−Σ target · log p for targets that are probabilities."""
    shape = logp._a.shape
    classes = shape[dim]
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    if weight is not None:
        view = [1] * logp._a.ndim
        view[dim] = classes
        logp = logp * aten.view(weight, view)
    if reduction == NONE:
        return -aten.sum(logp * target, dim)
    total = -aten.sum(logp * target)
    if reduction == SUM:
        return total
    return total / (layout.numel(shape) // classes if classes else 0)


@composite(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
    "ignore_index=-100, "
    "float label_smoothing=0.0) -> Tensor",
    public=False,
    autocast="float32:cpu",
)
def cross_entropy_loss(
    self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, label_smoothing: float
) -> Any:
    """nll_loss of log_softmax, with smoothed labels or probabilities as targets if asked for."""
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    n = self._a.ndim
    if n == 0:
        raise RuntimeError(
            "cross_entropy: the input must have at least one dimension (the classes)"
        )
    dim = 0 if n == 1 else 1
    soft = self._a.shape == target._a.shape and target._k.dtype.is_floating_point
    if self._a.shape == target._a.shape and not soft and n > 1:
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got"
            f" {target._k.dtype.scalar_name}"
        )
    if not soft and target._k.dtype.is_floating_point:
        raise RuntimeError(
            f"expected scalar type Long but found {target._k.dtype.scalar_name}: targets must be "
            "class "
            "indices, or probabilities of the input's shape"
        )
    if soft and ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if weight is not None and weight._a.shape != (self._a.shape[dim],):
        raise RuntimeError(
            "cross_entropy: weight tensor should be defined either for all "
            f"{self._a.shape[dim]} classes or no classes but got weight tensor of shape: "
            f"{list(weight._a.shape)}"
        )
    logp = aten._log_softmax(self, dim)
    if soft:
        return _probabilities(logp, target, weight, reduction, label_smoothing, dim)
    if label_smoothing > 0:
        return _smoothed(logp, target, weight, reduction, ignore_index, label_smoothing, dim)
    return nll_loss_nd.call(logp, target, weight, reduction, ignore_index)


@face("cross_entropy", method=False, spaces=("nn.functional",))
def cross_entropy(
    self: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Cross entropy of logits (N, C, …) and class indices (N, …) or probabilities (N, C, …)."""
    number = reduction_number(reduction, size_average, reduce)
    return cross_entropy_loss.call(self, target, weight, number, ignore_index, label_smoothing)
