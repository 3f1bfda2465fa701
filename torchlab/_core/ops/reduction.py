"""Sums, means and products over dimensions. (Order statistics: sorting.py.)

float32 sums are pairwise along every dimension or accumulated in float64: NumPy's own sum is
pairwise along the last dimension of contiguous memory only.
Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#reduction-ops
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper


def reduced_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """All dimensions for None or (), else wrapped and checked."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    return layout.wrap_dims((dim,) if isinstance(dim, int) else tuple(dim), ndim)


def sum_dtype(a: Any, dtype: Any) -> np.dtype:
    """Integers and bools are summed in int64."""
    if dtype is not None:
        return dtype.np
    return np.dtype(np.int64) if a.dtype.kind in "iub" else a.dtype


def accurate_sum(xp: Any, a: Any, axis: Any, keepdims: bool, dtype: np.dtype) -> Any:
    """A sum whose error does not grow with the length."""
    if a.dtype != dtype and dtype.kind in "fc":
        a = a.astype(dtype)
    if dtype.kind not in "fc" or a.ndim == 0:
        return xp.sum(a, axis=axis, keepdims=keepdims, dtype=dtype)
    wide = dtype in (np.dtype(np.float32), np.dtype(np.complex64))
    if axis is None or len(axis) == a.ndim:
        if a.flags.c_contiguous:
            r = xp.add.reduce(a.reshape(-1)) if xp is np else xp.sum(a)
            return r.reshape((1,) * a.ndim) if keepdims else r
    elif axis == (a.ndim - 1,) and a.flags.c_contiguous:
        return xp.add.reduce(a, axis=-1, keepdims=keepdims) if xp is np else xp.sum(a, axis=-1, keepdims=keepdims)
    if not wide:
        return xp.sum(a, axis=axis, keepdims=keepdims, dtype=dtype)
    if a.ndim == 2 and axis == (0,) and a.flags.c_contiguous and xp is np and a.shape[0] <= 256:
        return xp.add.reduce(a, axis=0, keepdims=keepdims)  # so few terms lose nothing
    # Columns: blocks of rows in float32, the blocks' sums in float64.
    if axis == (0,) and xp is np and a.shape[0] > 256 and a.flags.c_contiguous:
        n = a.shape[0] - a.shape[0] % 128
        blocks = a[:n].reshape((n // 128, 128, *a.shape[1:]))
        r = np.add.reduce(np.add.reduce(blocks, axis=1), axis=0, dtype=np.complex128 if dtype.kind == "c" else np.float64)
        r = r + np.add.reduce(a[n:], axis=0)
        r = r.astype(dtype)
        return r[None] if keepdims else r
    double = np.complex128 if dtype.kind == "c" else np.float64
    return xp.sum(a, axis=axis, keepdims=keepdims, dtype=double).astype(dtype)


def reduction_meta(result: Any = None) -> Any:
    """A meta rule: the reduced shape, row-major, in the type that `result(array, dtype)` tells."""

    def rule(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        dims = reduced_dims(dim, a.ndim)
        shape = layout.reduction_shape(a.shape, dims or None, keepdim) if a.ndim else ()
        return MetaArray(shape, result(a, dtype) if result else (dtype.np if dtype else a.dtype))

    return rule


@op("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", public=False, tags=("reduction",),
    vjp={"self": "cast_back(expand(g, self.shape), self.dtype, self.device)"}, grad_name="SumBackward0",
    meta=lambda a, dtype=None: MetaArray((), sum_dtype(a, dtype)))  # fmt: skip
def sum_all(xp: Any, a: Any, dtype: Any) -> Any:
    """The sum of all elements."""
    if dtype is None and a.dtype.kind == "f" and a.flags.c_contiguous and xp is np:
        return np.add.reduce(a, axis=None)
    return accurate_sum(xp, a, None, False, sum_dtype(a, dtype))


@op("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", public=False,
    vjp={"self": "cast_back(expand_reduced(g, self.shape, dim, keepdim), self.dtype, self.device)"},
    grad_name="SumBackward1", tags=("reduction",), meta=reduction_meta(sum_dtype))  # fmt: skip
def sum_dim(xp: Any, a: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The sum over dimensions."""
    dims = reduced_dims(dim, a.ndim)
    return accurate_sum(xp, a, dims, keepdim, sum_dtype(a, dtype))


@face("sum")
def sum(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:  # noqa: A001
    """The sum of all elements, or over `dim`."""
    if out is not None:
        return sum_dim.out(self, dim, keepdim, dtype, out=out)
    if dim is None and not keepdim:
        return sum_all.call(self, dtype=dtype)
    return sum_dim.call(self, dim, keepdim, dtype=dtype)




@vjp_helper
def expand_reduced(g: Any, shape: Any, dim: Any, keepdim: bool) -> Any:
    """A reduction's gradient, repeated over what was reduced."""
    n = len(shape)
    if not keepdim and n:
        dims = reduced_dims(dim, n)
        if len(dims) > 1 or len(dims) == n:
            g = aten.view(g, tuple(1 if i in dims else s for i, s in enumerate(shape)))
        else:
            g = aten.unsqueeze(g, dims[0])
    return aten.expand(g, tuple(shape))


def _count(shape: Any, dim: Any) -> int:
    n = 1
    for d in reduced_dims(dim, len(shape)):
        n *= shape[d]
    return n


@vjp_helper
def mean_backward(g: Any, shape: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    n = _count(shape, dim)
    g = expand_reduced(g, shape, dim, keepdim) if shape else g
    return aten.to(g / n, dtype=dtype)


def mean_dtype(a: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype.np
    if a.dtype.kind in "iub":
        name = "Bool" if a.dtype.kind == "b" else dt.from_numpy(a.dtype).scalar_name
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {name}"
        )
    return a.dtype


def _mean(xp: Any, a: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    d = mean_dtype(a, dtype)
    dims = reduced_dims(dim, a.ndim)
    n = _count(a.shape, dim)
    r = accurate_sum(xp, a, dims, keepdim, d)
    return r / r.dtype.type(n)


@op("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", public=False, tags=("reduction",), grad_name="MeanBackward0",
    vjp={"self": "mean_backward(g, self.shape, None, False, self.dtype)"},
    meta=lambda a, dtype=None: MetaArray((), mean_dtype(a, dtype)))  # fmt: skip
def mean_all(xp: Any, a: Any, dtype: Any) -> Any:
    """The mean of all elements."""
    if dtype is None and a.dtype.kind == "f" and a.flags.c_contiguous and xp is np and a.size:
        return np.add.reduce(a, axis=None) / a.dtype.type(a.size)
    return _mean(xp, a, None, False, dtype)


@op("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", public=False,
    vjp={"self": "mean_backward(g, self.shape, dim, keepdim, self.dtype)"}, grad_name="MeanBackward1", tags=("reduction",),
    out=True, meta=reduction_meta(mean_dtype))  # fmt: skip
def mean_dim(xp: Any, a: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The mean over dimensions."""
    return _mean(xp, a, dim, keepdim, dtype)


@face("mean")
def mean(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """The mean of all elements, or over `dim`; integers need `dtype=`."""
    if out is not None:
        return mean_dim.out(self, dim, keepdim, dtype, out=out)
    if dim is None and not keepdim:
        return mean_all.call(self, dtype=dtype)
    return mean_dim.call(self, dim, keepdim, dtype=dtype)
