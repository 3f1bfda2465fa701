"""Batch and instance normalization: arXiv:1502.03167, arXiv:1607.08022.

As in normalization.py, forward and backward are kernels of their own, and double backward goes
through simple operators.
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.modes import grad_enabled
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import FLOATS, need, need_fitting
from torchlab._core.ops.kernels import channel_grads_meta, moments, per_channel


def _batch_axes(ndim: int) -> tuple[int, ...]:
    return (0, *range(2, ndim))


def _in_order(xp: Any, r: Any, x: Any) -> Any:
    """The result r row-major, unless x is in channels-last order (then r is, too)."""
    if (
        r.flags.c_contiguous
        or x.ndim == 4
        and layout.is_channels_last(x.shape, tuple(s // x.itemsize for s in x.strides))
    ):
        return r
    return xp.ascontiguousarray(r)


def _batch_meta(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    s = MetaArray((x.shape[1],), x.dtype)
    return MetaArray(x.shape, x.dtype), s, s, s


@op(
    "_batch_norm_training(Tensor input, Tensor? weight, Tensor? bias, float eps) -> (Tensor "
    "output, Tensor mean, "
    "Tensor rstd, Tensor var)",
    public=False,
    meta=_batch_meta,
    grad_name="NativeBatchNormBackward0",
    vjp={
        "input, weight, bias": (
            "batch_norm_backward(g0, input, result1, result2, weight, eps, needs)"
        )
    },
)
def _batch_norm_training(xp: Any, x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Normalized by the batch's own statistics; also mean, 1 / √(var + eps) and the biased
    variance."""
    c = x.shape[1]
    if x.size == 0:
        return x.copy(), xp.zeros(c, x.dtype), xp.zeros(c, x.dtype), xp.zeros(c, x.dtype)
    axes = _batch_axes(x.ndim)
    r, mean, var = moments(xp, x, axes)
    rstd = 1 / xp.sqrt(var + var.dtype.type(eps))
    r *= rstd if weight is None else rstd * per_channel(weight, x.ndim)
    if bias is not None:
        r += per_channel(bias, x.ndim)
    return _in_order(xp, r, x), mean.reshape(c), rstd.reshape(c), var.reshape(c)


@vjp_helper
def batch_norm_backward(
    g: Any, x: Any, mean: Any, rstd: Any, weight: Any, eps: float, needs: Any
) -> Any:
    """The gradients of x, weight and bias in training."""
    if g is None:
        return None, None, None
    if not grad_enabled():
        r = _batch_norm_backward.call(g, x, mean, rstd, weight, list(needs))
        return tuple(v if k else None for v, k in zip(r, needs))
    shape = x._a.shape
    dims = _batch_axes(len(shape))
    channel = (1, shape[1], *(1,) * (len(shape) - 2))
    centred = x - aten.mean(x, dims, True)
    scale = aten.rsqrt(aten.mean(centred * centred, dims, True) + eps)
    normal = centred * scale
    gw = g if weight is None else g * aten.view(weight, channel)
    gx = scale * (gw - aten.mean(gw, dims, True) - normal * aten.mean(gw * normal, dims, True))
    return (
        gx if needs[0] else None,
        aten.sum(g * normal, dims) if needs[1] else None,
        aten.sum(g, dims) if needs[2] else None,
    )


@op(
    "_batch_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? "
    "weight, bool[3] output_mask) -> "
    "(Tensor, Tensor, Tensor)",
    public=False,
    meta=channel_grads_meta,
)
def _batch_norm_backward(
    xp: Any, g: Any, x: Any, mean: Any, rstd: Any, weight: Any, mask: Any
) -> Any:
    """The gradients of input, weight and bias; all are made of two sums for each channel."""
    n = x.ndim
    axes = _batch_axes(n)
    m = x.dtype.type(x.size // x.shape[1] if x.size else 1)
    normal = x - per_channel(mean, n)
    normal *= per_channel(rstd, n)
    gbias = xp.add.reduce(g, axis=axes)
    gweight = xp.add.reduce(g * normal, axis=axes)
    gx = xp.empty(0, x.dtype)
    if mask[0]:
        scale = rstd if weight is None else rstd * weight
        normal *= per_channel(gweight / m, n)
        gx = g - normal
        gx -= per_channel(gbias / m, n)
        gx *= per_channel(scale, n)
    return _in_order(xp, gx, x), gweight, gbias


@op(
    "_batch_norm_eval(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
    "running_var, float eps) -> "
    "Tensor",
    public=False,
    meta=lambda x, *rest: MetaArray(x.shape, x.dtype),
    grad_name="NativeBatchNormBackward0",
    vjp={
        "input, weight, bias": (
            "batch_norm_eval_backward(g, input, weight, running_mean, running_var, eps, needs)"
        )
    },
)
def _batch_norm_eval(
    xp: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float
) -> Any:
    """Normalized by running statistics."""
    scale = 1 / xp.sqrt(var + var.dtype.type(eps))
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias
    r = x * per_channel(scale.astype(x.dtype, copy=False), x.ndim)
    r += per_channel(shift, x.ndim)
    return _in_order(xp, r, x)


@vjp_helper
def batch_norm_eval_backward(
    g: Any, x: Any, weight: Any, mean: Any, var: Any, eps: float, needs: Any
) -> Any:
    """The gradients of x, weight and bias in evaluation: the statistics are constants."""
    n = x._a.ndim
    channel = (1, x._a.shape[1], *(1,) * (n - 2))
    rstd = aten.view(aten.rsqrt(var + eps), channel)
    dims = _batch_axes(n)
    scale = rstd if weight is None else rstd * aten.view(weight, channel)
    return (
        g * scale if needs[0] else None,
        aten.sum(g * ((x - aten.view(mean, channel)) * rstd), dims) if needs[1] else None,
        aten.sum(g, dims) if needs[2] else None,
    )


def _check_channels(x: Any, **vectors: Any) -> None:
    for name, t in vectors.items():
        if t is not None and t._a.shape != (x._a.shape[1],):
            raise RuntimeError(f"{name} should contain {x._a.shape[1]} elements not {t._a.size}")


@composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
    "running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    method=False,
)
def batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """Normalizes each channel: input (N, C, …). In training, the running statistics move by
    `momentum`
    towards the batch's (the variance unbiased); an empty batch leaves them alone."""
    if input._a.size == 0:
        r = aten.clone(input) if weight is None else input * aten.select(weight, 0, 0)
        return r if bias is None else r + aten.select(bias, 0, 0)
    if input._a.ndim < 2:
        raise RuntimeError(
            f"batch_norm: expected at least 2 dimensions (N, C, …), got {list(input._a.shape)}"
        )
    _check_channels(
        input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    need(FLOATS, "batch_norm", input._a)
    need_fitting(input, weight, bias, running_mean, running_var)
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("running_mean must be defined in evaluation mode")
        return _batch_norm_eval.call(input, weight, bias, running_mean, running_var, eps)
    r, mean, _, var = _batch_norm_training.call(input, weight, bias, eps)
    n = input._a.size // input._a.shape[1]
    _move(running_mean, mean, momentum)
    if running_var is not None:
        _move(running_var, aten.detach(var) * (n / (n - 1) if n > 1 else math.nan), momentum)
    return r


def _native(
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """(output, mean, 1 / √(var + eps)) as PyTorch's native operators give them: in evaluation
    the statistics are empty."""
    if x._a.ndim < 2:
        raise RuntimeError(
            f"batch_norm: expected at least 2 dimensions (N, C, …), got {list(x._a.shape)}"
        )
    _check_channels(x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("running_mean must be defined in evaluation mode")
        r = _batch_norm_eval.call(x, weight, bias, running_mean, running_var, eps)
        none = aten.new_empty(aten.detach(x), (0,))
        return r, none, aten.clone(none)
    r, mean, rstd, var = _batch_norm_training.call(x, weight, bias, eps)
    n = x._a.size // max(x._a.shape[1], 1)
    if n:
        _move(running_mean, mean, momentum)
        if running_var is not None:
            _move(running_var, aten.detach(var) * (n / (n - 1) if n > 1 else math.nan), momentum)
    return r, mean, rstd


@composite(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
    "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    method=False,
    out=True,
)
def native_batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """`batch_norm`, and the mean and 1 / √(var + eps) it used in training."""
    return _native(input, weight, bias, running_mean, running_var, training, momentum, eps)


@face("_native_batch_norm_legit", method=False)
def native_batch_norm_legit(
    self: Any, weight: Any, bias: Any, *rest: Any, out: Any = None, **options: Any
) -> Any:
    """`native_batch_norm` with running statistics, or (without them) by the batch's own."""
    names = ("training", "momentum", "eps")
    stats = [options.pop(k, None) for k in ("running_mean", "running_var")]
    values = list(rest)
    if len(values) + len(options) > len(names):
        stats = [values.pop(0) if s is None else s for s in stats]
    given = dict(zip(names, values)) | options
    if given.keys() != set(names):
        raise TypeError(
            "_native_batch_norm_legit() takes (input, weight, bias, running_mean, running_var, "
            "training, momentum, eps) or the same without running statistics"
        )
    if out is not None:
        return native_batch_norm.out(self, weight, bias, *stats, **given, out=out)
    return _native(self, weight, bias, *stats, **given)


@composite(
    "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
    "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
    public=False,
)
def batch_norm_with_update(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    momentum: float,
    eps: float,
) -> Any:
    """`native_batch_norm` in training, and a reserve that is empty here."""
    r = _native(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*r, aten.new_empty(aten.detach(input), (0,), dtype=dt.uint8))


@composite(
    "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
    "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    method=False,
    out=True,
)
def native_batch_norm_legit_no_training(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    momentum: float,
    eps: float,
) -> Any:
    """`native_batch_norm` in evaluation."""
    return _native(input, weight, bias, running_mean, running_var, False, momentum, eps)


def _move(running: Any, new: Any, momentum: float) -> None:
    """running ← (1 − momentum) · running + momentum · new, outside the tape."""
    if running is not None:
        target = aten.detach(running)
        aten.add_(aten.mul_(target, 1 - momentum), aten.detach(new), alpha=momentum)


@face("instance_norm", method=False, spaces=("torch",))
def instance_norm(
    self: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """Batch norm of each sample by itself: input (N, C, …)."""
    shape = self._a.shape
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, c = shape[:2]

    def repeated(t: Any) -> Any:
        return None if t is None else aten.reshape(aten.expand(t, (n, c)), (n * c,))

    mean, var = (
        None if t is None else aten.clone(repeated(aten.detach(t)))
        for t in (running_mean, running_var)
    )
    rows = aten.reshape(self, (1, n * c, *shape[2:]))
    r = aten.batch_norm(
        rows, repeated(weight), repeated(bias), mean, var, use_input_stats, momentum, eps, False
    )
    if use_input_stats and n:
        for running, moved in ((running_mean, mean), (running_var, var)):
            if running is not None:
                aten.copy_(aten.detach(running), aten.mean(aten.view(moved, (n, c)), 0))
    return aten.view(r, shape)
