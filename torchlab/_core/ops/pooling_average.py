"""Average and power-average pooling in one, two or three dimensions.

Source: https://docs.pytorch.org/docs/2.13/nn.functional.html#pooling-functions
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._kinds import REAL, need
from torchlab._core.ops._windows import (
    check_pooled,
    padded_for,
    stride_or_kernel,
    window_counts,
    window_taps,
    window_tuple,
)
from torchlab._core.ops.kernels import as_format_of

_F = ("nn.functional",)


def _counts(
    spatial: Any, out: Any, kernel: Any, stride: Any, padding: Any, include: bool, dtype: Any
) -> Any:
    """The divisor of each window: how many elements it has, with or without padding."""
    r = np.ones((1,) * len(out), np.float64)
    for axis, (n, m, k, s, p) in enumerate(zip(spatial, out, kernel, stride, padding, strict=True)):
        start = np.arange(m) * s - p
        end = np.minimum(start + k, n + p)
        count = end - start if include else np.minimum(end, n) - np.maximum(start, 0)
        shape = [1] * len(out)
        shape[axis] = m
        r = r * count.reshape(shape)
    return r.astype(dtype)


def _divisor(
    spatial: Any,
    out: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    include: bool,
    override: Any,
    dtype: Any,
) -> Any:
    if override is not None:
        if override == 0:
            raise RuntimeError("divisor must be not zero")
        return dtype.type(override)
    return _counts(spatial, out, kernel, stride, padding, include, dtype)


def _avg_forward(
    xp: Any,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    include: bool,
    override: Any,
) -> Any:
    k = len(kernel)
    ones = (1,) * k
    out = window_counts(x.shape[-k:], kernel, stride, padding, ones, ceil_mode)
    padded = padded_for(xp, x, out, kernel, stride, padding, ones, 0)
    taps = window_taps(kernel, out, stride, ones)
    r = xp.array(padded[taps[0]], order="C")
    for tap in taps[1:]:
        r += padded[tap]
    divisor = xp.asarray(
        _divisor(x.shape[-k:], out, kernel, stride, padding, include, override, r.dtype)
    )
    if r.dtype.kind == "i":  # towards zero, as C divides
        return xp.sign(r) * xp.sign(divisor) * (xp.abs(r) // xp.abs(divisor))
    r /= divisor
    return r


def _check_dtype(name: str, x: Any) -> None:
    if x.dtype.kind in "iub" and x.dtype != np.int64:
        kind = dt.from_numpy(x.dtype).scalar_name
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")


def _avg_backward(
    xp: Any,
    g: Any,
    shape: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    include: bool,
    override: Any,
) -> Any:
    k = len(kernel)
    spatial, out, ones = shape[-k:], g.shape[-k:], (1,) * k
    g = g / xp.asarray(_divisor(spatial, out, kernel, stride, padding, include, override, g.dtype))
    reach = [
        max((m - 1) * s + w, p + n)
        for m, s, w, p, n in zip(out, stride, kernel, padding, spatial, strict=True)
    ]
    r = xp.zeros((*shape[:-k], *reach), g.dtype)
    for tap in window_taps(kernel, out, stride, ones):
        part = r[tap]
        part += g
    inner = (..., *(slice(p, p + n) for p, n in zip(padding, spatial, strict=True)))
    return xp.ascontiguousarray(r[inner])


def _declare_avg(n: int) -> None:
    geometry = (
        f"int[{n}] kernel_size, int[{n}] stride, int[{n}] padding, bool ceil_mode, "
        "bool count_include_pad, int? divisor_override"
    )

    def meta(
        x: Any,
        kernel: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        include: bool,
        override: Any,
    ) -> Any:
        check_pooled(f"avg_pool{n}d", x, n)
        return MetaArray(
            (
                *x.shape[:-n],
                *window_counts(x.shape[-n:], kernel, stride, padding, (1,) * n, ceil_mode),
            ),
            x.dtype,
        )

    def forward(
        xp: Any,
        x: Any,
        kernel: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        include: bool,
        override: Any,
    ) -> Any:
        """The mean of each window."""
        check_pooled(f"avg_pool{n}d", x, n)
        _check_dtype("avg_pool2d" if n == 2 else "avg_pool3d_out_frame", x)
        return as_format_of(
            xp, _avg_forward(xp, x, kernel, stride, padding, ceil_mode, include, override), x
        )

    def backward(
        xp: Any,
        g: Any,
        size: Any,
        kernel: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        include: bool,
        override: Any,
    ) -> Any:
        """The gradient of avg_pool's input, which has the shape `size`."""
        return _avg_backward(xp, g, tuple(size), kernel, stride, padding, include, override)

    rest = "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"
    op(
        f"_avg_pool{n}d(Tensor self, {geometry}) -> Tensor",
        public=False,
        meta=meta,
        grad_name=f"AvgPool{n}DBackward0",
        vjp={"self": f"_avg_pool{n}d_backward(g, self.shape, {rest})"},
    )(forward)
    op(
        f"_avg_pool{n}d_backward(Tensor grad_output, int[] size, {geometry}) -> Tensor",
        public=False,
        meta=lambda g, size, *_: MetaArray(size, g.dtype),
        vjp={"grad_output": f"_avg_pool{n}d(g, {rest})"},
    )(backward)


for _n in (2, 3):
    _declare_avg(_n)


def _avg_pool(
    n: int,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    include: bool,
    override: Any,
) -> Any:
    kernel = window_tuple(kernel, n, "kernel_size")
    stride = stride_or_kernel(stride, kernel)
    padding = window_tuple(padding, n, "padding")
    if n == 1:
        if x._a.ndim not in (2, 3):
            raise RuntimeError(f"Expected 2D or 3D input to avg_pool1d, but got {list(x._a.shape)}")
        need(REAL, "avg_pool2d", x._a)
        rows = aten.unsqueeze(x, -2)
        return aten.squeeze(
            aten._avg_pool2d(
                rows, (1, *kernel), (1, *stride), (0, *padding), ceil_mode, include, None
            ),
            -2,
        )
    need(REAL, "avg_pool2d" if n == 2 else "avg_pool3d_out_frame", x._a)
    return getattr(aten, f"_avg_pool{n}d")(
        x, kernel, stride, padding, bool(ceil_mode), include, override
    )


@face("avg_pool1d", method=False, spaces=("torch", "nn.functional"))
def avg_pool1d(
    self: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window of (N, C, L) or (C, L)."""
    return _avg_pool(1, self, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@face("avg_pool2d", method=False, spaces=_F, out=True)
def avg_pool2d(
    self: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    """The mean of each window of (N, C, H, W) or (C, H, W)."""
    return _avg_pool(
        2, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@face("avg_pool3d", method=False, spaces=_F, out=True, autocast="float32:cpu")
def avg_pool3d(
    self: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W)."""
    return _avg_pool(
        3, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _lp_pool(n: int, x: Any, p: float, kernel: Any, stride: Any, ceil_mode: bool) -> Any:
    size = math.prod(window_tuple(kernel, n, "kernel_size"))
    means = getattr(aten, f"avg_pool{n}d")(aten.pow(x, p), kernel, stride, 0, ceil_mode)
    return aten.pow(aten.sign(means) * aten.relu(aten.abs(means)) * size, 1.0 / p)


@face("lp_pool1d", method=False, spaces=_F)
def lp_pool1d(
    self: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """(Σ xᵖ)^(1/p) over windows."""
    return _lp_pool(1, self, norm_type, kernel_size, stride, ceil_mode)


@face("lp_pool2d", method=False, spaces=_F)
def lp_pool2d(
    self: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """(Σ xᵖ)^(1/p) over 2-d windows."""
    return _lp_pool(2, self, norm_type, kernel_size, stride, ceil_mode)


@face("lp_pool3d", method=False, spaces=_F)
def lp_pool3d(
    self: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """(Σ xᵖ)^(1/p) over 3-d windows."""
    return _lp_pool(3, self, norm_type, kernel_size, stride, ceil_mode)
