"""The kernels of the discrete Fourier transforms: complex to complex, real to complex, complex to
real, along any number of dimensions.

`normalization` is 0 (none), 1 (divided by the square root of the number of points) or 2 (divided by
it). The results' memory order is the one that PyTorch's transforms leave behind: the transformed
dimensions lie innermost.
Source of the semantics: https://docs.pytorch.org/docs/2.13/fft.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.layout import empty_like_strides
from torchlab._core.lazy import lazy
from torchlab._core.ops._places import elements, in_order, preserved

scipy_fft = lazy("scipy.fft")

_FORWARD = ("backward", "ortho", "forward")  # SciPy's names of 0, 1, 2
_INVERSE = ("forward", "ortho", "backward")


def _fft(xp: Any) -> Any:
    """SciPy's transforms compute float32 in float32; CuPy's do as well."""
    return scipy_fft if xp is np else xp.fft


def _complex(d: np.dtype) -> np.dtype:
    return np.result_type(d, np.complex64)


def _real(d: np.dtype) -> np.dtype:
    return np.dtype(np.float64 if d.itemsize == 16 else np.float32)


def _strides(a: Any, shape: Any, dims: Any, last: int | None) -> tuple[int, ...]:
    """From outside to inside: the other dimensions as they lie in the operand, the transformed ones
    as they lie in it, and innermost the one that changes between real and complex."""
    steps = elements(a)
    inner = [d for d in dims if d != last]
    order = sorted((d for d in range(a.ndim) if d not in dims), key=lambda d: -steps[d])
    order += sorted(inner, key=lambda d: -steps[d])
    if last is not None:
        order.append(last)
    strides, step = [0] * a.ndim, 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def _check_points(a: Any, dims: Any) -> None:
    for d in dims:
        if a.shape[d] == 0:
            raise RuntimeError(
                f"Invalid number of data points (0) specified: dimension {d} of a tensor of shape"
                f" {list(a.shape)} cannot be transformed"
            )


def _c2c_meta(a: Any, dim: Any, normalization: int, forward: bool) -> Any:
    strides = _strides(a, a.shape, dim, None) if dim else empty_like_strides(a.shape, elements(a))
    return MetaArray(a.shape, a.dtype, strides)


@op(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    public=False,
    half=False,
    vjp={"self": "_fft_c2c(g, dim, normalization, not forward)"},
    grad_name="FftC2CBackward0",
    meta=_c2c_meta,
)
def fft_c2c(xp: Any, a: Any, dim: Any, normalization: int, forward: bool) -> Any:
    """Complex to complex."""
    if not dim:
        return preserved(xp, a)
    _check_points(a, dim)
    if a.size == 0:
        r = xp.empty(a.shape, a.dtype)
    elif forward:
        r = _fft(xp).fftn(a, axes=tuple(dim), norm=_FORWARD[normalization])
    else:
        r = _fft(xp).ifftn(a, axes=tuple(dim), norm=_INVERSE[normalization])
    return in_order(xp, r.astype(a.dtype, copy=False), _strides(a, a.shape, dim, None))


def _half_shape(a: Any, dim: Any, onesided: bool) -> tuple[int, ...]:
    shape = list(a.shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    return tuple(shape)


def _r2c_meta(a: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    shape = _half_shape(a, dim, onesided)
    return MetaArray(shape, _complex(a.dtype), _strides(a, shape, dim, dim[-1]))


@op(
    "_fft_r2c(Tensor self, SymInt[] dim, int normalization, bool onesided) -> Tensor",
    public=False,
    half=False,
    vjp={"self": "fft_r2c_backward(g, self.shape, dim, normalization, onesided)"},
    grad_name="FftR2CBackward0",
    meta=_r2c_meta,
)
def fft_r2c(xp: Any, a: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    """Real to complex: all points of the last of `dim`, or the half that is not redundant."""
    _check_points(a, dim)
    shape = _half_shape(a, dim, onesided)
    if a.size == 0:
        r = xp.empty(shape, _complex(a.dtype))
    else:
        f = _fft(xp).rfftn if onesided else _fft(xp).fftn
        r = f(a, axes=tuple(dim), norm=_FORWARD[normalization])
    r = r.astype(_complex(a.dtype), copy=False)
    return in_order(xp, r, _strides(a, shape, dim, dim[-1]))


@vjp_helper
def fft_r2c_backward(g: Any, shape: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    """The real part of the inverse transform; the points left out have no gradient."""
    if onesided:
        last = dim[-1]
        missing = shape[last] - g._a.shape[last]
        if missing:
            n = g._a.ndim
            g = aten.constant_pad_nd(g, (0, 0) * (n - 1 - last % n) + (0, missing), 0)
    return aten.real(aten._fft_c2c(g, dim, normalization, False))


def _whole_shape(a: Any, dim: Any, last_dim_size: int) -> tuple[int, ...]:
    shape = list(a.shape)
    shape[dim[-1]] = last_dim_size
    return tuple(shape)


def _c2r_meta(a: Any, dim: Any, normalization: int, last_dim_size: int) -> Any:
    shape = _whole_shape(a, dim, last_dim_size)
    return MetaArray(shape, _real(a.dtype), _strides(a, shape, dim, dim[-1]))


@op(
    "_fft_c2r(Tensor self, SymInt[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    public=False,
    half=False,
    vjp={"self": "fft_c2r_backward(g, dim, normalization)"},
    grad_name="FftC2RBackward0",
    meta=_c2r_meta,
)
def fft_c2r(xp: Any, a: Any, dim: Any, normalization: int, last_dim_size: int) -> Any:
    """The real signal of `last_dim_size` points of which `self` is the half that is kept."""
    if last_dim_size < 1:
        raise RuntimeError(f"Invalid number of data points ({last_dim_size}) specified")
    _check_points(a, dim)
    shape = _whole_shape(a, dim, last_dim_size)
    if a.size == 0:
        r = xp.empty(shape, _real(a.dtype))
    else:
        sizes = tuple(shape[d] for d in dim)
        r = _fft(xp).irfftn(a, s=sizes, axes=tuple(dim), norm=_INVERSE[normalization])
    r = r.astype(_real(a.dtype), copy=False)
    return in_order(xp, r, _strides(a, shape, dim, dim[-1]))


@vjp_helper
def fft_c2r_backward(g: Any, dim: Any, normalization: int) -> Any:
    """The forward transform, in which the points that stand for two count twice."""
    r = aten._fft_r2c(g, dim, normalization, True)
    last = dim[-1] % g._a.ndim
    n, kept = g._a.shape[last], r._a.shape[last]
    weights = np.ones(kept)
    weights[1 : 1 + n - kept] = 2
    twice = aten.to(aten.from_numpy(weights), dtype=g._k.dtype, device=g._k.device)
    return r * aten.reshape(twice, (kept,) + (1,) * (g._a.ndim - 1 - last))
