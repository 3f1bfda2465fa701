"""Layer, group and RMS normalization. (Batch and instance: batch_normalization.py.)

Forward and backward are kernels of their own. Where the tape records backward itself (double
backward), the gradient is made of simple operators instead: those can be differentiated again.
Source: arXiv:1607.06450 (layer), 1803.08494 (group), 1910.07467 (RMS).
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.modes import grad_enabled
from torchlab._core.dispatch.op import composite, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import FLOATS, NUMBERS, need, need_fitting
from torchlab._core.ops.kernels import (
    as_format_of,
    channel_grads_meta,
    moments,
    np,
    per_channel,
    row_dot,
    row_sum,
)

_BOTH = ("torch", "nn.functional")
_F = ("nn.functional",)


# ---- layer norm ---------------------------------------------------------------------------------


def _layer_shape(
    name: str, a: Any, normalized_shape: Any, weight: Any, bias: Any
) -> tuple[int, int]:
    """(rows, elements of a row), all shapes checked."""
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            "one element, but got "
            f"normalized_shape = {list(shape)}"
        )
    for what, t in (("weight", weight), ("bias", bias)):
        if t is not None and t.shape != shape:
            raise RuntimeError(
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of "
                f"shape {list(t.shape)} "
                f"and normalized_shape = {list(shape)}"
            )
    k = len(shape)
    if a.ndim < k or a.shape[a.ndim - k :] != shape:
        wanted = "".join(f", {n}" for n in shape)
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{wanted}], but "
            "got input of size"
            f"{list(a.shape)} ({name})"
        )
    return layout.numel(a.shape[: a.ndim - k]), layout.numel(shape)


def _statistics_shape(a: Any, normalized_shape: Any) -> tuple[int, ...]:
    k = len(normalized_shape)
    return (*a.shape[: a.ndim - k], *(1,) * k)


def _layer_meta(a: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    _layer_shape("layer_norm", a, normalized_shape, weight, bias)
    s = MetaArray(_statistics_shape(a, normalized_shape), a.dtype)
    return MetaArray(a.shape, a.dtype), s, s


def _layer_decomposed(x: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims = tuple(range(-len(normalized_shape), 0))
    mean = aten.mean(x, dims, True)
    centred = x - mean
    rstd = aten.rsqrt(aten.mean(centred * centred, dims, True) + eps)
    r = centred * rstd
    r = r if weight is None else r * weight
    return r if bias is None else r + bias, mean, rstd


@op(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float "
    "eps) -> "
    "(Tensor, Tensor, Tensor)",
    method=False,
    meta=_layer_meta,
    autocast="float32:accelerator",
    decompose=_layer_decomposed,
    vjp={
        "input, weight, bias": (
            "layer_norm_backward(g0, input, normalized_shape, result1, result2, weight, eps, needs)"
        )
    },
)
def native_layer_norm(
    xp: Any, x: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float
) -> Any:
    """(x − mean) / √(var + eps) · weight + bias over the last dimensions; also mean and 1 / √(var +
    eps)."""
    rows, m = _layer_shape("layer_norm", x, normalized_shape, weight, bias)
    shape = _statistics_shape(x, normalized_shape)
    if rows == 0 or m == 0:
        return xp.empty(x.shape, x.dtype), xp.empty(shape, x.dtype), xp.empty(shape, x.dtype)
    x2 = x.reshape(rows, m)
    mean = row_sum(xp, x2)
    mean /= x.dtype.type(m)
    r = xp.subtract(x2, mean, order="C")
    rstd = row_dot(xp, r, r)
    rstd /= x.dtype.type(m)
    rstd += x.dtype.type(eps)
    xp.sqrt(rstd, out=rstd)
    xp.reciprocal(rstd, out=rstd)
    r *= rstd
    r = r.reshape(x.shape)
    if weight is not None:
        r = xp.multiply(r, weight, out=r if weight.dtype == r.dtype else None)
    if bias is not None:
        r += bias
    return r, mean.ravel().reshape(shape), rstd.ravel().reshape(shape)


@vjp_helper
def layer_norm_backward(
    g: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, eps: float, needs: Any
) -> Any:
    """The gradients of x, weight and bias that are needed."""
    if g is None:
        return None, None, None
    if not grad_enabled():
        r = native_layer_norm_backward.call(g, x, shape, mean, rstd, weight, list(needs))
        return tuple(v if n else None for v, n in zip(r, needs))
    dims = tuple(range(-len(shape), 0))
    lead = tuple(range(x._a.ndim - len(shape)))
    centred = x - aten.mean(x, dims, True)
    rstd = aten.rsqrt(aten.mean(centred * centred, dims, True) + eps)
    normal = centred * rstd
    gw = g if weight is None else g * weight
    gx = (
        rstd * (gw - aten.mean(gw, dims, True) - normal * aten.mean(gw * normal, dims, True))
        if needs[0]
        else None
    )
    sums = (g * normal if needs[1] else None, g if needs[2] else None)
    return (gx, *(None if s is None else aten.sum(s, lead) if lead else s for s in sums))


def _layer_backward_meta(
    g: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, mask: Any
) -> Any:
    return tuple(
        MetaArray(s if k else (0,), x.dtype)
        for s, k in zip((x.shape, tuple(shape), tuple(shape)), mask)
    )


@op(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor "
    "mean, Tensor rstd, "
    "Tensor? weight, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    public=False,
    meta=_layer_backward_meta,
)
def native_layer_norm_backward(
    xp: Any, g: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, mask: Any
) -> Any:
    """The gradients of input, weight and bias; an empty array where the mask says no."""
    m = layout.numel(tuple(shape))
    rows = x.size // m if m else 0
    g2 = g.reshape(rows, m)
    normal = xp.subtract(x.reshape(rows, m), mean.reshape(rows, 1), order="C")
    rstd = rstd.reshape(rows, 1)
    normal *= rstd
    none = xp.empty(0, x.dtype)
    gx = none
    if mask[0]:
        one = x.dtype.type(m or 1)
        gw = g2 if weight is None else g2 * weight.reshape(1, m)
        gx = normal * (row_dot(xp, gw, normal) / -one)
        gx += gw
        gx -= row_sum(xp, gw) / one
        gx *= rstd
        gx = gx.reshape(x.shape)
    if mask[1]:
        normal *= g2
    gweight = _columns(xp, normal).reshape(tuple(shape)) if mask[1] else none
    gbias = _columns(xp, g2).reshape(tuple(shape)) if mask[2] else none
    return gx, gweight, gbias


def _columns(xp: Any, a: Any) -> Any:
    """The sum of each column: as a product with ones, which BLAS sums in blocks."""
    if a.size and a.dtype.kind == "f" and a.dtype.itemsize >= 4:
        return xp.ones(a.shape[0], a.dtype).dot(a)
    return xp.add.reduce(a, axis=0)


@composite(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor",
    spaces=_BOTH,
    method=False,
    autocast="float32:accelerator",
)
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float, cudnn_enable: bool
) -> Any:
    """(x − mean) / √(var + eps) · weight + bias over the last `len(normalized_shape)`
    dimensions."""
    need(FLOATS, "LayerNormKernelImpl", input._a)
    need_fitting(input, weight, bias)
    return native_layer_norm.call(input, normalized_shape, weight, bias, eps)[0]


@composite(
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
    "Tensor",
    spaces=_BOTH,
    method=False,
    autocast="float32:accelerator",
)
def rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: Any) -> Any:
    """x / √(mean(x²) + eps) · weight over the last dimensions; eps: by default the type's
    epsilon."""
    need(NUMBERS, "rms_norm", input._a)
    _layer_shape(
        "rms_norm", input._a, normalized_shape, None if weight is None else weight._a, None
    )
    dims = tuple(range(-len(normalized_shape), 0))
    half = input._k.dtype.itemsize <= 2
    x = aten.to(input, dt.float32) if half else input
    if eps is None:
        eps = float(np.finfo(x._k.np).eps)
    r = x * aten.rsqrt(aten.mean(aten.pow(x, 2), dims, True) + eps)
    r = aten.to(r, input._k.dtype) if half else r
    return r if weight is None else r * weight


# ---- group norm ---------------------------------------------------------------------------------


def _group_rows(x: Any, groups: int) -> Any:
    return x.reshape(x.shape[0] * groups, -1) if x.size else x.reshape(x.shape[0] * groups, 0)


def _group_meta(
    x: Any, weight: Any, bias: Any, n: int, c: int, hw: int, group: int, eps: float
) -> Any:
    s = MetaArray((n, group), x.dtype)
    return MetaArray(x.shape, x.dtype), s, s


@op(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt "
    "HxW, int group, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    method=False,
    meta=_group_meta,
    vjp={
        "input, weight, bias": (
            "group_norm_backward(g0, g1, g2, input, result1, result2, weight, group, eps, needs)"
        )
    },
)
def native_group_norm(
    xp: Any, x: Any, weight: Any, bias: Any, n: int, c: int, hw: int, group: int, eps: float
) -> Any:
    """Layer norm over groups of channels; also mean and 1 / √(var + eps), (N, groups) each."""
    if x.size == 0:
        return x.copy(), xp.zeros((n, group), x.dtype), xp.zeros((n, group), x.dtype)
    r, mean, var = moments(xp, _group_rows(x, group), 1)
    rstd = 1 / xp.sqrt(var + var.dtype.type(eps))
    r *= rstd
    r = r.reshape(x.shape)
    if weight is not None:
        r *= per_channel(weight, x.ndim)
    if bias is not None:
        r += per_channel(bias, x.ndim)
    return as_format_of(xp, r, x), mean.reshape(n, group), rstd.reshape(n, group)


@vjp_helper
def group_norm_backward(
    g: Any,
    g_mean: Any,
    g_rstd: Any,
    x: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    group: int,
    eps: float,
    needs: Any,
) -> Any:
    """The gradients of x, weight and bias that are needed, also from those of mean and rstd."""
    if g is None and g_mean is None and g_rstd is None:
        return None, None, None
    if g is not None and not grad_enabled() and g_mean is None and g_rstd is None:
        r = native_group_norm_backward.call(g, x, mean, rstd, weight, group, list(needs))
        return tuple(v if k else None for v, k in zip(r, needs))
    shape = x._a.shape
    n, c = shape[:2]
    rows = aten.reshape(x, (n * group, x._a.size // max(n * group, 1)))
    centred = rows - aten.mean(rows, 1, True)
    scale = aten.rsqrt(aten.mean(centred * centred, 1, True) + eps)
    normal = centred * scale
    parts = []
    if g is not None and needs[0]:
        gw = g if weight is None else g * aten.view(weight, (1, c, *(1,) * (len(shape) - 2)))
        gw = aten.reshape(gw, rows._a.shape)
        parts.append(
            scale * (gw - aten.mean(gw, 1, True) - normal * aten.mean(gw * normal, 1, True))
        )
    m = max(rows._a.shape[1], 1)
    if g_mean is not None and needs[0]:
        parts.append(aten.expand(aten.reshape(g_mean, (-1, 1)) / m, rows._a.shape))
    if g_rstd is not None and needs[0]:
        parts.append(aten.reshape(g_rstd, (-1, 1)) * (scale * scale * normal) / -m)
    gx = sum(parts[1:], parts[0]) if parts else None
    dims = (0, *range(2, len(shape)))
    return (
        None if gx is None else aten.reshape(gx, shape),
        aten.sum(g * aten.reshape(normal, shape), dims) if needs[1] and g is not None else None,
        aten.sum(g, dims) if needs[2] and g is not None else None,
    )


@op(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? "
    "weight, int group, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    public=False,
    meta=channel_grads_meta,
)
def native_group_norm_backward(
    xp: Any, g: Any, x: Any, mean: Any, rstd: Any, weight: Any, group: int, mask: Any
) -> Any:
    """The gradients of input, weight and bias."""
    none = xp.empty(0, x.dtype)
    rstd = rstd.reshape(-1, 1)
    normal = _group_rows(x, group) - mean.reshape(-1, 1)
    normal *= rstd
    gx = gweight = gbias = none
    if mask[0]:
        gw = _group_rows(g if weight is None else g * per_channel(weight, x.ndim), group)
        m = x.dtype.type(gw.shape[1] or 1)
        gx = gw - xp.add.reduce(gw, axis=1, keepdims=True) / m
        gx -= normal * (xp.add.reduce(gw * normal, axis=1, keepdims=True) / m)
        gx *= rstd
        gx = gx.reshape(x.shape)
    axes = (0, *range(2, x.ndim))
    if mask[1]:
        gweight = xp.add.reduce(g * normal.reshape(x.shape), axis=axes)
    if mask[2]:
        gbias = xp.add.reduce(g, axis=axes)
    return gx, gweight, gbias


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
    "eps=1e-05, "
    "bool cudnn_enabled=True) -> Tensor",
    spaces=_BOTH,
    method=False,
    autocast="float32:accelerator",
)
def group_norm(
    input: Any, num_groups: int, weight: Any, bias: Any, eps: float, cudnn_enabled: bool
) -> Any:
    """Normalizes each of `num_groups` groups of channels of each sample: input (N, C, …)."""
    shape = input._a.shape
    if len(shape) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
        )
    n, c = shape[:2]
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if c % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input "
            f"of shape {list(shape)} "
            f"and num_groups={num_groups}"
        )
    need(FLOATS, "GroupNormKernelImpl", input._a)
    need_fitting(input, weight, bias)
    for what, t in (("weight", weight), ("bias", bias)):
        if t is not None and t._a.shape != (c,):
            raise RuntimeError(
                f"Expected {what} to be a vector of size equal to the number of channels in "
                f"input, but got {what} of "
                f"shape {list(t._a.shape)} and input of shape {list(shape)}"
            )
    hw = layout.numel(shape[2:])
    return native_group_norm.call(input, weight, bias, n, c, hw, num_groups, eps)[0]
