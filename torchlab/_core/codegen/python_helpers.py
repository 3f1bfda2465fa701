"""What generated NumPy code calls: every name in HELPERS is a global of a generated function."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.codegen.loop_ir import Shape
from torchlab._core.codegen.scalar_types import CATEGORY, COMPLEX, FLOATING, numpy_dtype
from torchlab._core.lazy import lazy

special = lazy("scipy.special")


class _Memory:
    """An array interface over part of another array's memory, which it keeps alive."""

    def __init__(self, owner: np.ndarray, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def strided(a: np.ndarray, shape: Shape, stride: Shape, offset: int) -> np.ndarray:
    """The elements `offset + i·stride` of the memory that starts at a's first element (in
    elements)."""
    size = a.itemsize
    interface = {
        "version": 3,
        "data": (a.__array_interface__["data"][0] + offset * size, not a.flags.writeable),
        "shape": tuple(shape),
        "strides": tuple(s * size for s in stride),
        "typestr": a.dtype.str if a.dtype.kind != "V" else f"|V{size}",
    }
    view = np.asarray(_Memory(a, interface))
    if view.dtype != a.dtype:
        view = view.view(a.dtype)
    return view


def array(value: Any, shape: Shape, dtype: Any, order: Any = None) -> np.ndarray:
    """`value` as an array of this shape and type, without gaps: its dims lie in memory in this
    order, slowest first (None: row-major). It is copied only where needed."""
    if order is not None:
        moved = np.broadcast_to(np.asarray(value), shape).transpose(order)
        return array(moved, moved.shape, dtype).transpose(np.argsort(order))
    value, dtype = np.asarray(value), np.dtype(dtype)
    if value.dtype != dtype:
        if value.dtype.kind == "f" and dtype.kind in "iu" and dtype.itemsize < 8:
            value = value.astype(np.int64)
        value = value.astype(dtype)
    return np.ascontiguousarray(np.broadcast_to(value, shape)).reshape(shape)


def index(shape: Shape, dim: int) -> np.ndarray:
    """Every element's position along `dim`, int64, broadcastable to `shape`."""
    return np.arange(shape[dim], dtype=np.int64).reshape(
        [-1 if d == dim else 1 for d in range(len(shape))]
    )


def _wide(dtype: Any) -> Any:
    dtype = np.dtype(dtype)
    category = CATEGORY[dtype.name]
    if category == COMPLEX:
        return np.complex128
    return np.float64 if category == FLOATING else np.int64


def reduce_sum(x: np.ndarray, dims: Shape, dtype: Any) -> np.ndarray:
    return np.sum(x.astype(dtype), dims, dtype=_wide(dtype)).astype(dtype)


def reduce_prod(x: np.ndarray, dims: Shape, dtype: Any) -> np.ndarray:
    return np.prod(x.astype(dtype), dims, dtype=_wide(dtype)).astype(dtype)


def reduce_mean(x: np.ndarray, dims: Shape, dtype: Any) -> np.ndarray:
    return np.mean(x.astype(dtype), dims, dtype=_wide(dtype)).astype(dtype)


def reduce_max(x: np.ndarray, dims: Shape, dtype: Any) -> np.ndarray:
    return np.max(_exact(x), dims).astype(dtype)


def reduce_min(x: np.ndarray, dims: Shape, dtype: Any) -> np.ndarray:
    return np.min(_exact(x), dims).astype(dtype)


def reduce_any(x: np.ndarray, dims: Shape, dtype: Any) -> np.ndarray:
    return np.any(x != 0, dims).astype(dtype)


def reduce_all(x: np.ndarray, dims: Shape, dtype: Any) -> np.ndarray:
    return np.all(x != 0, dims).astype(dtype)


def reduce_argmax(x: np.ndarray, dims: Shape, dtype: Any) -> np.ndarray:
    return np.argmax(_rows(x, dims), -1).astype(dtype)


def reduce_argmin(x: np.ndarray, dims: Shape, dtype: Any) -> np.ndarray:
    return np.argmin(_rows(x, dims), -1).astype(dtype)


def _exact(x: np.ndarray) -> np.ndarray:
    # float32 holds the 16-bit floats exactly, and NumPy's max and min know it
    return x.astype(np.float32) if x.dtype.name in ("bfloat16", "float16") else x


def _rows(x: np.ndarray, dims: Shape) -> np.ndarray:
    """`x` with the reduced dims last and as one."""
    kept = [d for d in range(x.ndim) if d not in dims]
    moved = _exact(x).transpose([*kept, *dims])
    return moved.reshape([x.shape[d] for d in kept] + [-1])


def _nonzero(b: Any) -> None:
    if np.asarray(b).dtype.kind in "iu" and not np.all(b):
        raise RuntimeError("ZeroDivisionError")


def floordiv(a: Any, b: Any) -> Any:
    _nonzero(b)
    return np.floor_divide(a, b)


def mod(a: Any, b: Any) -> Any:
    _nonzero(b)
    return np.remainder(a, b)


def sigmoid(x: Any) -> Any:
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, np.ones_like(x)) / (1 + z)


def rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def reciprocal(x: Any) -> Any:
    return 1 / x


def integer_pow(base: Any, exponent: Any) -> Any:
    """Integer powers; a negative exponent gives what integer division of 1 would."""
    base, exponent = np.asarray(base), np.asarray(exponent)
    odd = np.where(exponent % 2 != 0, -1, 1)
    inverse = np.where(base == 1, 1, np.where(base == -1, odd, 0))
    result = np.power(base, np.maximum(exponent, 0))
    return np.where(exponent < 0, inverse, result).astype(base.dtype)


def erf(x: Any) -> Any:
    return special.erf(x)


def erfc(x: Any) -> Any:
    return special.erfc(x)


def lgamma(x: Any) -> Any:
    # C's lgamma gives +inf at -inf too; SciPy gives -inf there
    return np.where(np.isneginf(x), -x, special.gammaln(x))


class _Types(dict[str, Any]):
    """HELPERS: bfloat16 needs `ml_dtypes`, which is imported when a kernel first names it."""

    def bind(self, source: str) -> dict[str, Any]:
        """The globals for `source`."""
        names = dict(self)
        if "bfloat16" in source:
            names["bfloat16"] = numpy_dtype("bfloat16")
        return names


_NUMPY = {
    name: getattr(np, name)
    for name in (
        "abs", "sign", "maximum", "minimum", "fmax", "fmin", "fmod", "square", "floor", "ceil", "trunc",
        "isnan", "isinf", "isfinite", "signbit", "logical_and", "logical_or", "logical_xor", "logical_not",
        "bitwise_not", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sin", "cos", "tan",
        "sinh", "cosh", "hypot", "copysign", "where", "inf", "nan",
    )
}  # fmt: skip
HELPERS = _Types(
    _NUMPY,
    round=np.rint, lshift=np.left_shift, rshift=np.right_shift, asin=np.arcsin, acos=np.arccos,
    atan=np.arctan, asinh=np.arcsinh, acosh=np.arccosh, atanh=np.arctanh, atan2=np.arctan2,
    pow=integer_pow, floordiv=floordiv, mod=mod, sigmoid=sigmoid, rsqrt=rsqrt, reciprocal=reciprocal,
    erf=erf, erfc=erfc, lgamma=lgamma, array=array, strided=strided, index=index,
    **{f"reduce_{k}": f for k, f in {
        "sum": reduce_sum, "prod": reduce_prod, "mean": reduce_mean, "max": reduce_max, "min": reduce_min,
        "any": reduce_any, "all": reduce_all, "argmax": reduce_argmax, "argmin": reduce_argmin,
    }.items()},
    **{t: np.dtype(t).type for t in CATEGORY if t != "bfloat16"},
)  # fmt: skip
