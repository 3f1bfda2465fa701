"""What the families of reductions share: dims, meta rules, sums that are both exact and fast.

Note [Sums]. NumPy's own sum is pairwise along contiguous memory only: along other dimensions it
adds one row after the other to a single float32 accumulator, and 2²⁴ rows of 0.48 have the mean
0.4984. Here a sum is a product of BLAS with a vector of ones, over at most `BLOCK` terms at a time;
the blocks' sums are added in float64. A product with 1 is exact, so this is addition; BLAS keeps
several accumulators and streams memory in its order, which makes it faster than NumPy's reductions,
too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.registry import aten, vjp_helper

BLOCK = 256
FLOAT32, INT64 = np.dtype(np.float32), np.dtype(np.int64)
_DOUBLE = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}
_ONES: dict[Any, Any] = {}


ONES32: dict[int, Any] = {}  # the float32 ones among them, by length: small sums look here first


def row_major(r: Any) -> Any:
    """The result in row-major memory: NumPy's reductions keep the operand's order, PyTorch's do
    not. Dimensions of size 1 get the strides of that order, too."""
    if not r.flags.c_contiguous:
        return r.copy(order="C")
    return r.reshape(-1).reshape(r.shape) if r.ndim > 1 and 1 in r.shape else r


def ones(n: int, dtype: np.dtype) -> Any:
    """A constant vector of n ≤ BLOCK ones, kept."""
    found = _ONES.get((n, dtype))
    if found is None:
        found = _ONES[n, dtype] = np.ones(n, dtype)
        if dtype is FLOAT32 and n > 1:
            ONES32[n] = found
    return found


# ---- dims and types -----------------------------------------------------------------------------


def reduced_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """All dimensions for None or (), else wrapped and checked."""
    if type(dim) is int:
        if 0 <= dim < ndim:
            return (dim,)
        return (layout.wrap_dim(dim, ndim),)
    if dim is None or len(dim) == 0:
        return tuple(range(ndim))
    return layout.wrap_dims(dim, ndim)


def reduced_count(shape: Any, dim: Any) -> int:
    """How many elements come together in one."""
    n = 1
    if shape:
        for d in reduced_dims(dim, len(shape)):
            n *= shape[d]
    return n


def is_half(dtype: np.dtype) -> bool:
    """float16, bfloat16, float8: types whose arithmetic is done in float32."""
    return dtype.itemsize <= 2 and dtype.kind not in "iub"


def is_float(dtype: np.dtype) -> bool:
    """Floating point or complex."""
    return dtype.kind in "fc" or is_half(dtype)


def scalar_name(a: Any) -> str:
    """PyTorch's name of an array's type in errors: Float, Long."""
    return dt.from_numpy(a.dtype).scalar_name


def widened(a: Any) -> Any:
    """The array in the type that its arithmetic is done in."""
    return a.astype(FLOAT32) if is_half(a.dtype) else a


def integers_to_int64(a: Any, dtype: Any) -> np.dtype:
    """The result type of sums and products: `dtype`, int64 for integers and bools, else a's own."""
    if dtype is not None:
        return dtype.np
    return INT64 if a.dtype.kind in "iub" else a.dtype


def numpy_names(name: str, dim: Any, keepdim: bool, given: dict[str, Any]) -> tuple[Any, bool]:
    """PyTorch takes NumPy's `axis` and `keepdims` for `dim` and `keepdim`."""
    for key, value in given.items():
        if key == "axis":
            dim = value
        elif key == "keepdims":
            keepdim = value
        else:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    return dim, keepdim


def check_out(out: Any, *dtypes: Any) -> None:
    """Refuse `out` tensors of another type where PyTorch does not convert."""
    for t, dtype in zip(out if isinstance(out, (tuple, list)) else (out,), dtypes, strict=True):
        if t.dtype is not dtype:
            raise RuntimeError(
                f"Expected out tensor to have dtype {c_name(dtype)}, but got {c_name(t.dtype)} "
                "instead"
            )


def c_name(dtype: Any) -> str:
    """The type's name in PyTorch's C++: float, double, long int."""
    return {
        "float32": "float",
        "float64": "double",
        "int64": "long int",
        "int32": "int",
        "int16": "short int",
        "int8": "signed char",
        "uint8": "unsigned char",
        "float16": "c10::Half",
        "bfloat16": "c10::BFloat16",
        "complex64": "c10::complex<float>",
        "complex128": "c10::complex<double>",
    }.get(dtype.name, dtype.name)


def reduced_shape(a: Any, dim: Any, keepdim: bool) -> tuple[int, ...]:
    """The shape of a reduction's result; a tensor without dimensions keeps none."""
    if a.ndim == 0:
        reduced_dims(dim, 0)
        return ()
    return layout.reduction_shape(a.shape, reduced_dims(dim, a.ndim), keepdim)


def reduction_meta(result: Any = None) -> Any:
    """A meta rule: the reduced shape, row-major, in the type that `result(array, dtype)` tells."""

    def rule(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        made = result(a, dtype) if result else (dtype.np if dtype else a.dtype)
        return MetaArray(reduced_shape(a, dim, keepdim), made)

    return rule


def no_identity(name: str, shape: Any, dim: Any, *, full: str = "") -> None:
    """Refuse to reduce nothing with an operation that has no neutral element."""
    dims = reduced_dims(dim, len(shape)) if shape else ()
    if dim is None or (type(dim) is not int and len(dim) == 0):
        if 0 in shape:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
                f"{' ' if full else ''}{full}"
            )
        return
    for d in dims:
        if shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def lanes(a: Any, dim: int) -> tuple[Any, int]:
    """The array with at least one dimension, and the wrapped dim."""
    dim = layout.wrap_dim(dim, a.ndim)
    return (a.reshape(1), 0) if a.ndim == 0 else (a, dim)


@vjp_helper
def keep_reduced(g: Any, shape: Any, dim: Any, keepdim: bool) -> Any:
    """The tensor `g` of a reduction with the reduced dimensions put back, of size 1."""
    n = len(shape)
    if keepdim or n == 0:
        return g
    dims = reduced_dims(dim, n)
    if len(dims) == 1:
        return aten.unsqueeze(g, dims[0])
    return aten.view(g, tuple(1 if i in dims else s for i, s in enumerate(shape)))


@vjp_helper
def expand_reduced(g: Any, shape: Any, dim: Any, keepdim: bool) -> Any:
    """A reduction's gradient, repeated over what was reduced."""
    if g._a.ndim == 0:
        return aten.expand(g, tuple(shape))
    return aten.expand(keep_reduced(g, shape, dim, keepdim), tuple(shape))


def squeeze(r: Any, dim: int, keepdim: bool, ndim: int) -> Any:
    """A result computed with the reduced dimension kept, as the caller wants it."""
    if ndim == 0:
        return r.reshape(())
    return r if keepdim else r.reshape(r.shape[:dim] + r.shape[dim + 1 :])


# ---- sums: see Note [Sums] ----------------------------------------------------------------------


def accurate_sum(xp: Any, a: Any, dims: tuple[int, ...], keepdim: bool, dtype: np.dtype) -> Any:
    """The sum over `dims` (wrapped) in `dtype`; its error does not grow with the length."""
    if is_half(dtype):
        return accurate_sum(xp, a, dims, keepdim, FLOAT32).astype(dtype)
    if a.ndim == 0:
        one = (a.real if a.dtype.kind == "c" and dtype.kind != "c" else a).astype(dtype)
        return one + dtype.type(0) if dtype.kind in "fc" else one  # (0 + -0.0 is 0.0)
    if a.dtype != dtype:
        if dtype.kind in "iub" and a.dtype.kind in "iub":
            return row_major(xp.add.reduce(a, axis=dims, dtype=dtype, keepdims=keepdim))
        a = (a.real if a.dtype.kind == "c" and dtype.kind != "c" else a).astype(dtype)
    if dtype.kind not in "fc" or xp is not np:
        return row_major(xp.sum(a, axis=dims, keepdims=keepdim, dtype=dtype))
    if dtype.kind == "c":  # (1 + 0i) times infinity is no product with 1: the parts apart
        shape = layout.reduction_shape(a.shape, dims, keepdim)
        r = np.empty(shape, dtype)
        r.real = accurate_sum(xp, a.real, dims, keepdim, r.real.dtype)
        r.imag = accurate_sum(xp, a.imag, dims, keepdim, r.real.dtype)
        return r
    for d in dims:
        if a.shape[d] != 1:
            break
    else:  # the sum of one element begins with 0, too: 0 + -0.0 is 0.0
        r = row_major(a) + dtype.type(0)
        return r.reshape(layout.reduction_shape(a.shape, dims, keepdim))
    if len(dims) == a.ndim:
        r = _total(a)
        return r.reshape((1,) * a.ndim) if keepdim else r
    r = _over_dims(a, dims)
    return r.reshape([1 if i in dims else n for i, n in enumerate(a.shape)]) if keepdim else r


def _total(a: Any) -> Any:
    flat = a.reshape(-1) if a.flags.c_contiguous else _unrepeated(a)
    n = flat.size
    if n <= BLOCK:
        return flat.dot(ones(n, a.dtype))
    if n < 16 * BLOCK:
        return np.add.reduce(flat)  # pairwise
    whole = n - n % BLOCK
    r = np.add.reduce(flat[:whole].reshape(-1, BLOCK).dot(ones(BLOCK, a.dtype)))
    return r + np.add.reduce(flat[whole:])


def _unrepeated(a: Any) -> Any:
    """The elements in memory's order. What `expand` repeats comes once, multiplied."""
    factor = 1
    for d, step in enumerate(a.strides):
        if step == 0 and a.shape[d] > 1:
            factor *= a.shape[d]
            a = a[(slice(None),) * d + (slice(0, 1),)]
    flat = a.ravel(order="K")
    return flat * a.dtype.type(factor) if factor > 1 else flat


def _over_dims(a: Any, dims: tuple[int, ...]) -> Any:
    """The sum over some but not all dimensions, dropped."""
    if not a.flags.c_contiguous:
        return _over_strided(a, dims)
    first, last = min(dims), max(dims)
    shape = a.shape
    if last - first + 1 != len(dims):  # groups with others between: the last group first
        while last - 1 in dims:
            last -= 1
        r = _over_dims(a, tuple(d for d in dims if d >= last))
        return _over_dims(r, tuple(d for d in dims if d < last))
    outer, rows, inner = (
        layout.numel(s) for s in (shape[:first], shape[first : last + 1], shape[last + 1 :])
    )
    kept = shape[:first] + shape[last + 1 :]
    if outer == 0 or rows == 0 or inner == 0:
        return np.zeros(kept, a.dtype)
    if inner == 1:
        return _over_rows(a.reshape(outer, rows)).reshape(kept)
    return _over_columns(a.reshape(outer, rows, inner)).reshape(kept)


def _over_rows(a: Any) -> Any:
    """(n, k) → (n), the k terms contiguous."""
    n, k = a.shape
    if k <= BLOCK:
        return a.dot(ones(k, a.dtype))
    block = _divisor(k)
    if block < 32:
        return np.add.reduce(a, axis=1)  # pairwise
    return _over_rows(a.reshape(-1, block).dot(ones(block, a.dtype)).reshape(n, k // block))


@lru_cache
def _divisor(n: int) -> int:
    """The largest length up to BLOCK into which n can be cut evenly."""
    return next(d for d in range(BLOCK, 0, -1) if n % d == 0)


def _over_columns(a: Any) -> Any:
    """(n, k, m) → (n, m)."""
    n, k, m = a.shape
    if k <= BLOCK:
        one = ones(k, a.dtype)
        return one.dot(a.reshape(k, m)) if n == 1 else np.matmul(one, a)
    whole = k - k % BLOCK
    blocks = a[:, :whole].reshape(n, whole // BLOCK, BLOCK, m)
    r = np.add.reduce(np.matmul(ones(BLOCK, a.dtype), blocks), axis=1, dtype=_DOUBLE[a.dtype.kind])
    if whole < k:
        r += np.matmul(ones(k - whole, a.dtype), a[:, whole:])
    return r.astype(a.dtype)


def _over_strided(a: Any, dims: tuple[int, ...]) -> Any:
    """Not row-major: in memory's own order if it is dense, else from a copy."""
    factor = 1
    for d in dims:
        if a.strides[d] == 0 and a.shape[d] > 1:  # repeated by `expand`
            factor *= a.shape[d]
            a = a[(slice(None),) * d + (slice(0, 1),)]
    order = sorted(range(a.ndim), key=lambda d: (-a.strides[d], d))
    b = a.transpose(order)
    if not b.flags.c_contiguous:
        b = np.ascontiguousarray(b)
    r = _over_dims(b, tuple(sorted(order.index(d) for d in dims)))
    left = [d for d in order if d not in dims]
    r = row_major(r.transpose(sorted(range(len(left)), key=left.__getitem__)))
    return r * r.dtype.type(factor) if factor > 1 else r
