"""Softmax and its logarithm.

The largest entry is subtracted first, so nothing overflows. Rows in memory order are for generated
kernels, everything else for NumPy, with few temporaries.
Source of the semantics:
https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.softmax.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._rows import rowwise
from torchlab._core.ops.kernels import row_dot, row_sum

_NAMES = {
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
}


def _check(name: str, a: Any, dim: int) -> int:
    dim = layout.wrap_dim(dim, a.ndim, name)
    if a.dtype.kind in "iubc" and a.size:
        raise NotImplementedError(
            f'"{name}_lastdim_kernel_impl" not implemented for '
            f"'{_NAMES.get(a.dtype.name, a.dtype.name)}'"
        )
    return dim


def _like(a: Any, *rest: Any) -> Any:
    return MetaArray(a.shape, a.dtype)


@rowwise("softmax")
def softmax_array(xp: Any, a: Any, d: int) -> Any:
    """exp(a − max) / Σ exp(a − max) along axis d, as a fresh array."""
    if a.size == 0 or a.ndim == 0:
        return xp.exp(a - a)
    r = xp.subtract(a, xp.maximum.reduce(a, d, None, None, True), order="C")
    xp.exp(r, out=r)
    r /= _sum(xp, r, d)
    return r


def _sum(xp: Any, a: Any, d: int) -> Any:
    return row_sum(xp, a) if d == a.ndim - 1 else xp.add.reduce(a, axis=d, keepdims=True)


def _softmax_decomposed(self: Any, dim: int) -> Any:
    e = aten.exp(self - aten.amax(self, dim, True))
    return e / aten.sum(e, dim, True)


@op(
    "_softmax(Tensor self, int dim) -> Tensor",
    public=False,
    meta=_like,
    decompose=_softmax_decomposed,
    vjp={"self": "_softmax_backward(g, result, dim)"},
    tags=("real_gradient",),
)
@rowwise("softmax")
def _softmax(xp: Any, a: Any, dim: int) -> Any:
    """exp(x) / Σ exp(x) along `dim`."""
    d = _check("softmax", a, dim)
    return softmax_array(xp, a, d) if a.size else a.copy()


@op(
    "_softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
    public=False,
    meta=_like,
    decompose=lambda g, y, dim: y * (g - aten.sum(g * y, dim, True)),
    vjp={
        "grad_output": "_softmax_backward(g, output, dim)",
        "output": (
            "g * grad_output - g * (grad_output * output).sum(dim, True) - grad_output * (g "
            "* output).sum(dim, True)"
        ),
    },
)
@rowwise("softmax_backward")
def _softmax_backward(xp: Any, g: Any, y: Any, dim: int) -> Any:
    """y · (g − Σ g·y)."""
    if y.ndim == 0:
        return g * y - g * y
    d = dim % y.ndim
    total = row_dot(xp, g, y) if d == y.ndim - 1 else xp.add.reduce(g * y, axis=d, keepdims=True)
    r = xp.subtract(g, total, order="C")
    r *= y
    return r


def _log_softmax_decomposed(self: Any, dim: int) -> Any:
    shifted = self - aten.amax(self, dim, True)
    return shifted - aten.log(aten.sum(aten.exp(shifted), dim, True))


@op(
    "_log_softmax(Tensor self, int dim) -> Tensor",
    public=False,
    meta=_like,
    decompose=_log_softmax_decomposed,
    vjp={"self": "_log_softmax_backward(g, result, dim)"},
    tags=("real_gradient",),
)
@rowwise("log_softmax")
def _log_softmax(xp: Any, a: Any, dim: int) -> Any:
    """x − log Σ exp(x) along `dim`."""
    d = _check("log_softmax", a, dim)
    if a.size == 0 or a.ndim == 0:
        return a - a if a.size else a.copy()
    r = xp.subtract(a, xp.maximum.reduce(a, d, None, None, True), order="C")
    r -= xp.log(_sum(xp, xp.exp(r), d))
    return r


@op(
    "_log_softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
    public=False,
    meta=_like,
    decompose=lambda g, y, dim: g - aten.exp(y) * aten.sum(g, dim, True),
    vjp={
        "grad_output": "g - (g * exp(output)).sum(dim, True)",
        "output": "-g * exp(output) * grad_output.sum(dim, True)",
    },
)
@rowwise("log_softmax_backward")
def _log_softmax_backward(xp: Any, g: Any, y: Any, dim: int) -> Any:
    """g − exp(y) · Σ g."""
    r = xp.exp(y, order="C")
    if type(r) is not np.ndarray and xp is np:
        r = np.asarray(r)
    r *= _sum(xp, g, dim % y.ndim) if y.ndim else g
    return xp.subtract(g, r, out=r)


@composite(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) "
    "-> Tensor",
    method=False,
    out=True,
)
def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """The gradient of softmax's input, in the input's type."""
    return _in_dtype(_softmax_backward.call(grad_output, output, dim), input_dtype)


@composite(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
    "input_dtype) -> Tensor",
    method=False,
    out=True,
)
def _log_softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """The gradient of log_softmax's input, in the input's type."""
    return _in_dtype(_log_softmax_backward.call(grad_output, output, dim), input_dtype)


def _in_dtype(r: Any, dtype: Any) -> Any:
    return r if r._k.dtype is dtype else aten.to(r, dtype)


# Rows that are masked out entirely give zeros: attention needs that.


@op(
    "_safe_softmax(Tensor self, int dim) -> Tensor",
    public=False,
    meta=_like,
    grad_name="SafeSoftmaxBackward0",
    vjp={"self": "_softmax_backward(g, result, dim)"},
    tags=("real_gradient",),
)
def _safe_softmax(xp: Any, a: Any, dim: int) -> Any:
    """softmax, but zeros for a row of −inf."""
    d = _check("softmax", a, dim)
    r = softmax_array(xp, a, d)
    if a.size and a.ndim:
        masked = xp.maximum.reduce(a, axis=d, keepdims=True) == -xp.inf
        if masked.any():
            xp.copyto(r, 0, where=masked)
    return r


# ---- public -------------------------------------------------------------------------------------


@composite(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    public=False,
    tags=("out_unrecorded", "out_same_dtype"),
    autocast="float32:accelerator",
)
def softmax_int(self: Any, dim: int, dtype: Any) -> Any:
    """exp(x) / Σ exp(x) along `dim`, computed in `dtype` if given."""
    return _softmax.call(self if dtype is None else aten.to(self, dtype), dim)


@composite(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    public=False,
    tags=("out_unrecorded", "out_same_dtype"),
    autocast="float32:accelerator",
)
def log_softmax_int(self: Any, dim: int, dtype: Any) -> Any:
    """x − log Σ exp(x) along `dim`, computed in `dtype` if given."""
    return _log_softmax.call(self if dtype is None else aten.to(self, dtype), dim)


@face("softmax", spaces=("torch", "special"))
def softmax(self: Any, dim: int, dtype: Any = None, *, out: Any = None) -> Any:
    """exp(x) / Σ exp(x) along `dim`, computed in `dtype` if given."""
    if out is not None:
        return softmax_int.out(self, dim, dtype, out=out)
    if dtype is None:
        return _softmax.call(self, dim)
    return softmax_int.call(self, dim, dtype)


@face("log_softmax", spaces=("torch", "special"))
def log_softmax(self: Any, dim: int, dtype: Any = None, *, out: Any = None) -> Any:
    """x − log Σ exp(x) along `dim`, computed in `dtype` if given."""
    if out is not None:
        return log_softmax_int.out(self, dim, dtype, out=out)
    return log_softmax_int.call(self, dim, dtype)
