"""Max pooling in one, two or three dimensions.

Source: https://docs.pytorch.org/docs/2.13/nn.functional.html#pooling-functions
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.modes import grad_enabled
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import FLOATS, ORDERED, need
from torchlab._core.ops._pool_pairs import halved_gradient, halves
from torchlab._core.ops._windows import (
    check_pooled,
    lowest,
    padded_for,
    stride_or_kernel,
    window_counts,
    window_taps,
    window_tuple,
)
from torchlab._core.ops.kernels import as_format_of


def _max_values(
    xp: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Any:
    out = window_counts(x.shape[-len(kernel) :], kernel, stride, padding, dilation, ceil_mode)
    padded = padded_for(xp, x, out, kernel, stride, padding, dilation, lowest(x.dtype))
    taps = window_taps(kernel, out, stride, dilation)
    if len(taps) == 1:
        return padded[taps[0]].copy()
    r = xp.maximum(padded[taps[0]], padded[taps[1]], order="C")
    for tap in taps[2:]:
        xp.maximum(r, padded[tap], out=r)
    return r


def _max_indices(
    xp: Any, x: Any, y: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    """Where each maximum y was found: the first place in the window, as a flat index into the
    spatial
    dimensions (int64). NaN is found, too."""
    k = len(kernel)
    spatial, out = x.shape[-k:], y.shape[-k:]
    padded = padded_for(xp, x, out, kernel, stride, padding, dilation, lowest(x.dtype))
    which = xp.zeros(y.shape, np.int32)
    taps = window_taps(kernel, out, stride, dilation)
    nan = bool(xp.any(y != y))
    for i in range(len(taps) - 1, -1, -1):  # backwards: the first place wins
        v = padded[taps[i]]
        hit = v == y
        if nan:
            hit |= v != v
        which[hit] = i
    if x.dtype.kind != "i" and any(padding):
        _prefer_inside(xp, which, y, spatial, kernel, stride, padding, dilation)
    flat = xp.zeros(y.shape, np.int64)
    rest = which
    places = []
    for w in reversed(kernel):
        rest, t = np.divmod(rest, w)
        places.append(t)
    for axis, t in enumerate(reversed(places)):
        shape = [1] * k
        shape[axis] = out[axis]
        start = (xp.arange(out[axis]) * stride[axis] - padding[axis]).reshape(shape)
        flat = flat * spatial[axis] + (start + t * dilation[axis])
    return flat


def _prefer_inside(
    xp: Any, which: Any, y: Any, spatial: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> None:
    """A window of nothing but −inf: its first element that is no padding."""
    if not bool((y == -xp.inf).any()):
        return
    k = len(kernel)
    first = xp.zeros(y.shape[-k:], which.dtype)
    for axis in range(k):
        start = xp.arange(y.shape[y.ndim - k + axis]) * stride[axis] - padding[axis]
        t = xp.where(start < 0, -(start // dilation[axis]), 0)
        shape = [1] * k
        shape[axis] = -1
        first = first * kernel[axis] + t.reshape(shape).astype(which.dtype)
    empty = y == -xp.inf
    which[empty] = xp.broadcast_to(first, y.shape)[empty]


def _scatter(xp: Any, g: Any, indices: Any, spatial: Any) -> Any:
    """Gradients put (added) where the indices say: (…, *out) → (…, *spatial)."""
    k = len(spatial)
    lead = g.shape[: g.ndim - k]
    rows, size = layout.numel(lead), layout.numel(spatial)
    r = xp.zeros(rows * size, g.dtype)
    here = layout.numel(indices.shape[g.ndim - k :])
    flat = (indices.reshape(rows, here) + (xp.arange(rows) * size).reshape(-1, 1)).reshape(-1)
    xp.add.at(r, flat, g.reshape(-1))
    return r.reshape(*lead, *spatial)


def _max_backward(
    xp: Any, g: Any, x: Any, y: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    """The same without indices: each tap claims the windows whose maximum it is and no tap had
    before."""
    k = len(kernel)
    out = y.shape[-k:]
    nan = bool(xp.any(y != y))
    if xp is np and not nan and halves(x, kernel, stride, padding, dilation, y, g):
        return halved_gradient(g, x, y)
    padded = padded_for(xp, x, out, kernel, stride, padding, dilation, lowest(x.dtype))
    r = xp.zeros(padded.shape, g.dtype)
    free = xp.ones(y.shape, bool)
    lone = all(s >= d * (w - 1) + 1 for s, d, w in zip(stride, dilation, kernel, strict=True))
    for tap in window_taps(kernel, out, stride, dilation):
        v = padded[tap]
        hit = v == y
        if nan:
            hit |= v != v
        hit &= free
        free ^= hit
        if lone:  # windows do not overlap: each element belongs to one
            xp.copyto(r[tap], g, where=hit)
        else:
            part = r[tap]
            xp.add(part, g, out=part, where=hit)
    if padded is x:
        return r
    inner = (..., *(slice(p, p + n) for p, n in zip(padding, x.shape[-k:], strict=True)))
    return xp.ascontiguousarray(r[inner])


def _gather(xp: Any, g: Any, indices: Any, k: int) -> Any:
    lead = g.shape[: g.ndim - k]
    rows = layout.numel(lead)
    a = g.reshape(rows, layout.numel(g.shape[g.ndim - k :]))
    at = indices.reshape(rows, layout.numel(indices.shape[g.ndim - k :]))
    r = xp.take_along_axis(a, at, axis=1)
    return xp.ascontiguousarray(r).reshape(indices.shape)


def _declare_max(n: int) -> None:
    name = f"max_pool{n}d"
    geometry = f"int[{n}] kernel_size, int[{n}] stride, int[{n}] padding, int[{n}] dilation"

    def meta(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
        check_pooled(name, x, n)
        out = window_counts(x.shape[-n:], kernel, stride, padding, dilation, ceil_mode)
        return MetaArray((*x.shape[:-n], *out), x.dtype)

    def values(
        xp: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        """The largest element of each window."""
        check_pooled(name, x, n)
        return as_format_of(xp, _max_values(xp, x, kernel, stride, padding, dilation, ceil_mode), x)

    def with_indices(
        xp: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        """The largest element of each window, and where it is in the flattened spatial
        dimensions."""
        y = values(xp, x, kernel, stride, padding, dilation, ceil_mode)
        return y, as_format_of(xp, _max_indices(xp, x, y, kernel, stride, padding, dilation), x)

    def meta_indices(x: Any, *rest: Any) -> Any:
        y = meta(x, *rest)
        return y, MetaArray(y.shape, np.dtype(np.int64))

    grad_name = f"MaxPool{n}DWithIndicesBackward0"
    op(
        f"_max_pool{n}d(Tensor self, {geometry}, bool ceil_mode) -> Tensor",
        public=False,
        meta=meta,
        grad_name=grad_name,
        autocast="float32:cpu" if n == 3 else None,
        vjp={
            "self": (
                "max_pool_backward(g, self, result, kernel_size, stride, padding, dilation,"
                " ceil_mode)"
            )
        },
        spare=("result",),  # a ReLU in place behind the pooling is common
    )(values)
    op(
        f"max_pool{n}d_with_indices(Tensor self, {geometry}, bool ceil_mode) -> (Tensor, Tensor)",
        public=False,
        meta=meta_indices,
        grad_name=grad_name,
        vjp={"self": f"_max_unpool(g0, result1, self.shape[-{n}:])"},
    )(with_indices)


@vjp_helper
def max_pool_backward(
    g: Any,
    x: Any,
    y: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Any:
    """The gradient of max pooling; through indices where it will be differentiated again. `y`:
    the maxima, or None if they have been overwritten."""
    if y is None:
        again = getattr(aten, f"_max_pool{len(kernel)}d")
        y = again(aten.detach(x), kernel, stride, padding, dilation, ceil_mode)
    if not grad_enabled():
        return _max_pool_backward.call(g, x, y, kernel, stride, padding, dilation)
    indices = _max_pool_indices.call(
        aten.detach(x), aten.detach(y), kernel, stride, padding, dilation
    )
    return _max_unpool.call(g, indices, x._a.shape[-len(kernel) :])


@op(
    "_max_pool_backward(Tensor grad_output, Tensor self, Tensor result, int[] kernel_size, int[] "
    "stride, int[] padding, "
    "int[] dilation) -> Tensor",
    public=False,
    meta=lambda g, x, *rest: MetaArray(x.shape, x.dtype),
)
def _max_pool_backward(
    xp: Any, g: Any, x: Any, y: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    """Each window's gradient goes to its first maximum."""
    return _max_backward(xp, g, x, y, kernel, stride, padding, dilation)


@op(
    "_max_pool_indices(Tensor self, Tensor result, int[] kernel_size, int[] stride, int[] "
    "padding, int[] dilation) -> Tensor",
    public=False,
    meta=lambda x, y, *rest: MetaArray(y.shape, np.dtype(np.int64)),
)
def _max_pool_indices(
    xp: Any, x: Any, y: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    """The places of the maxima."""
    return _max_indices(xp, x, y, kernel, stride, padding, dilation)


@op(
    "_max_unpool(Tensor grad_output, Tensor indices, int[] size) -> Tensor",
    public=False,
    meta=lambda g, i, size: MetaArray((*g.shape[: g.ndim - len(size)], *size), g.dtype),
    vjp={"grad_output": "_max_pool_gather(g, indices, size)"},
)
def _max_unpool(xp: Any, g: Any, indices: Any, size: Any) -> Any:
    """Adds each element to its place in arrays of zeros with the spatial dimensions `size`."""
    return _scatter(xp, g, indices, tuple(size))


@op(
    "_max_pool_gather(Tensor self, Tensor indices, int[] size) -> Tensor",
    public=False,
    meta=lambda x, i, size: MetaArray(i.shape, x.dtype),
    vjp={"self": "_max_unpool(g, indices, size)"},
)
def _max_pool_gather(xp: Any, x: Any, indices: Any, size: Any) -> Any:
    """The elements at flat spatial indices."""
    return _gather(xp, x, indices, len(size))


for _n in (2, 3):
    _declare_max(_n)


@op(
    "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
    "stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    public=False,
    out=True,
    meta=lambda g, x, *rest: MetaArray(x.shape, g.dtype),
    vjp={
        "grad_output": "_max_pool_gather(g, indices, self.shape[-2:])",
        "self": "zeros_like(g)",
    },
)
def max_pool2d_with_indices_backward(
    xp: Any,
    g: Any,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Any,
) -> Any:
    """The gradient of max_pool2d's input: each window's goes to the place of its maximum."""
    return as_format_of(xp, _scatter(xp, g, indices, x.shape[-2:]), x)


def _max_pool(
    n: int,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: bool,
) -> Any:
    kernel = window_tuple(kernel, n, "kernel_size")
    stride = stride_or_kernel(stride, kernel)
    geometry = (
        kernel,
        stride,
        window_tuple(padding, n, "padding"),
        window_tuple(dilation, n, "dilation"),
        bool(ceil_mode),
    )
    if n == 1:
        if x._a.ndim not in (2, 3):
            raise RuntimeError(
                f"max_pool1d() Expected 2D or 3D input tensor, but got {list(x._a.shape)}"
            )
        lifted = [(1, *g) if i != 2 else (0, *g) for i, g in enumerate(geometry[:4])]
        rows = aten.unsqueeze(x, -2)
        if not indices:
            if not x._exotic:
                need(FLOATS, "max_pool1d_impl", x._a)
            return aten.squeeze(aten._max_pool2d(rows, *lifted, geometry[4]), -2)
        need(ORDERED, "max_pool2d", x._a)
        return tuple(
            aten.squeeze(r, -2) for r in aten.max_pool2d_with_indices(rows, *lifted, geometry[4])
        )
    need(ORDERED, f"max_pool{n}d", x._a)
    if indices:
        return tuple(getattr(aten, f"max_pool{n}d_with_indices")(x, *geometry))
    return getattr(aten, f"_max_pool{n}d")(x, *geometry)


@op(
    "max_unpool(Tensor self, Tensor indices, int[] size) -> Tensor",
    public=False,
    autocast="float32:cpu",
    meta=lambda x, i, size: MetaArray((*x.shape[: x.ndim - len(size)], *size), x.dtype),
    vjp={"self": "_max_pool_gather(g, indices, size)"},
)
def max_unpool(xp: Any, x: Any, indices: Any, size: Any) -> Any:
    """Puts each element where its index says; of several for one place, the last stays."""
    need(FLOATS, f"max_unpool{len(size)}d", x)
    size = tuple(size)
    if indices.shape != x.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) "
            "but got indices tensor "
            f"with shape: {list(indices.shape)}"
        )
    rows, room = layout.numel(x.shape[: x.ndim - len(size)]), layout.numel(size)
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= room):
        raise RuntimeError(
            f"max_unpool: found an invalid max index: {int(indices.max())} (output volumes are of "
            f"size {size})"
        )
    r = xp.zeros((rows, room), x.dtype)
    xp.put_along_axis(r, indices.reshape(rows, -1), x.reshape(rows, -1), axis=1)
    return as_format_of(xp, r.reshape(*x.shape[: x.ndim - len(size)], *size), x)


def _declare_faces(n: int) -> None:
    def max_pool(
        self: Any,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return _max_pool(n, self, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    max_pool.__name__ = max_pool.__qualname__ = name = f"max_pool{n}d"
    max_pool.__doc__ = (
        f"The largest element of each {n}-d window; also where it is, with return_indices."
    )
    face(name, method=False, spaces=("torch", "nn.functional"))(max_pool)


for _n in (1, 2, 3):
    _declare_faces(_n)


@face("max_pool1d_with_indices", method=False)
def torch_max_pool1d_with_indices(
    self: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """`max_pool1d` with the places of the maxima."""
    step = stride or None
    return _max_pool(1, self, kernel_size, step, padding, dilation, ceil_mode, True)


@face("max_pool1d_with_indices", method=False, spaces=("nn.functional",))
def max_pool1d_with_indices(
    self: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """`max_pool1d` with the places of the maxima."""
    return _max_pool(1, self, kernel_size, stride, padding, dilation, ceil_mode, True)
