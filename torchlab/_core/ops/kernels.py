"""Small pieces that several families' kernels share: arrays in, arrays out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.compute import scalar_array
from torchlab._core.dtype import from_numpy
from torchlab._core.lazy import lazy
from torchlab._core.settings import warn_user
from torchlab._core.tape import NOGRAD, TLS

_sums = lazy("torchlab._core.codegen.sums")


def fast(ufunc: Any, of_complex: Any = None) -> Any:
    """Mark a kernel: for contiguous operands and default values, `ufunc` alone gives its result;
    for complex numbers `of_complex`, if it is given."""

    def mark(kernel: Any) -> Any:
        kernel.fast_ufunc = ufunc
        kernel.fast_complex = of_complex
        return kernel

    return mark


def exact(kernel: Any) -> Any:
    """Mark a kernel that moves or compares values: 16-bit floats need no wider arithmetic."""
    kernel.exact = True
    return kernel


def axes(dim: Any) -> Any:
    """A `dim` argument as NumPy's axis: None, an int, or a tuple."""
    return dim if dim is None or type(dim) is int else tuple(dim)


def into(result: Any, out: Any) -> Any:
    """Hand a finished result over, through `out` if there is one."""
    if out is None:
        return result
    out[...] = result
    return out


def number(value: Any, dtype: np.dtype) -> Any:
    """A number argument (alpha, value …) in an array's type, converted and refused as PyTorch does:
    negative ones wrap around in unsigned types, what does not fit raises RuntimeError."""
    if type(value) is float and dtype.char in "fd" and -3e38 < value < 3e38:
        return dtype.type(value)
    return scalar_array(value, from_numpy(dtype))


def limit(ufunc: Any, a: Any, bound: Any, out: Any = None) -> Any:
    """ufunc(a, bound) for the maximum or minimum; of two zeros the one of `a` stays, as in PyTorch.
    NumPy gives the second one, but of float16 the first."""
    if bound.ndim or a.dtype == np.float16:
        return ufunc(a, bound, out=out)
    return ufunc(bound, a, out=out)


def multiply_add(xp: Any, a: Any, b: Any, c: Any, out: Any = None) -> Any:
    """a + b · c. In float32 and float64 it is rounded once, as processors' fused multiply-add does,
    with which PyTorch computes it: in float64 the product of two float32 is exact. (The sum is
    rounded to 53 bits and then to 24, which differs in about one of 10^8 elements. For float64
    x86's numbers of 64 bits make it one of 1000; where there are none it is rounded twice.)"""
    wide = _WIDER.get(a.dtype)
    if wide is None or b.dtype != a.dtype:
        return xp.add(a, b * c, out=out)
    if xp is np and a.size >= _LONG[a.dtype]:
        r = _long_sum(a, b, c, out)
        if r is not None:
            return r
    elif xp is not np and wide is np.longdouble:
        wide = a.dtype
    terms = xp.multiply(b, c, dtype=wide)
    if out is None:
        return xp.add(terms, a).astype(a.dtype, copy=False)
    return xp.add(terms, a, out=out, casting="same_kind")


def negative(xp: Any, a: Any, out: Any = None) -> Any:
    """−a. NumPy 2.4 reads the wrong elements where it writes into a strided array and the input's
    step is four elements of 32 bits or eight of 64."""
    if out is None or out.flags.c_contiguous:
        return xp.negative(a, out=out)
    out[...] = xp.negative(a)
    return out


_WIDER = {np.dtype("float32"): np.float64, np.dtype("float64"): np.longdouble}
# From here on a compiled kernel pays for itself.
_LONG = {np.dtype("float32"): 1 << 15, np.dtype("float64"): 1 << 12}


def _long_sum(a: Any, b: Any, c: Any, out: Any) -> Any:
    """multiply_add of row-major arrays, compiled; None where they are not, or nothing compiles."""
    c = np.asarray(c, a.dtype)
    arrays = (a, b) if c.size == 1 else (a, b, c)
    arrays = arrays if out is None else (*arrays, out)
    if not all(x.shape == a.shape and x.flags.c_contiguous for x in arrays):
        return None
    if out is not None and (out.dtype != a.dtype or _overlaps(out, arrays[:-1])):
        return None
    kernel = _sums.kernel()
    if kernel is None:
        return None
    r = np.empty_like(a) if out is None else out
    kernel(r, a, b, c)
    return r


def _overlaps(out: Any, operands: Any) -> bool:
    """Whether `out` begins at another place of an operand's memory than the operand does."""
    start, end = out.ctypes.data, out.ctypes.data + out.nbytes
    return any(
        x.ctypes.data != start and x.ctypes.data < end and start < x.ctypes.data + x.nbytes
        for x in operands
    )


def before_ints(a: Any, to: np.dtype) -> Any:
    """Floats, ready for NumPy's conversion to integers. C leaves values outside the range open;
    NumPy does what PyTorch does but for one pair, where PyTorch goes through int64."""
    return a.astype(np.int64) if a.dtype == np.float64 and to == np.uint8 else a


def is_int(a: Any) -> bool:
    return a.dtype.kind in "iu"


def meta_like(a: Any, *rest: Any) -> MetaArray:
    """The meta rule of a copy of `a` that keeps its order of dimensions in memory."""
    strides = tuple(x // a.itemsize for x in a.strides)
    return MetaArray(a.shape, a.dtype, layout.empty_like_strides(a.shape, strides))


def suggests_channels_last(x: Any) -> bool:
    """Whether results should follow x (N, C, H, W) into channels-last memory order."""
    if x.ndim != 4 or x.strides[3] < x.strides[1] or not x.size:
        return False
    strides = tuple(s // x.itemsize for s in x.strides)
    return layout.suggest_memory_format(x.shape, strides) == "channels_last"


def as_format_of(xp: Any, r: Any, *operands: Any) -> Any:
    """The result r (N, C, H, W) in channels-last memory order if an operand has it, else as it
    is."""
    if r.ndim != 4 or not any(suggests_channels_last(x) for x in operands):
        return r
    rows = r.transpose(0, 2, 3, 1)
    if 1 in r.shape:  # to NumPy such an array may be in order already, whatever its strides
        rows = rows.copy()
    return xp.ascontiguousarray(rows).transpose(0, 3, 1, 2)


# ---- rows: the last axis of contiguous memory ---------------------------------------------------

_ONES: dict[Any, Any] = {}


def row_sum(xp: Any, a: Any) -> Any:
    """The sum of each row, kept as a column. BLAS's product with ones is faster than NumPy's
    sum, and as exact for rows of at most 4096."""
    n = a.shape[-1]
    char = a.dtype.char
    if xp is np and char in "fd" and 0 < n <= 4096 and a.flags.c_contiguous:
        ones = _ONES.get((n, char))
        if ones is None:
            ones = _ONES[n, char] = np.ones(n, a.dtype)
        if a.ndim == 2:
            return a.dot(ones)[:, None]
        return a.reshape(-1, n).dot(ones).reshape(*a.shape[:-1], 1)
    return xp.add.reduce(a, axis=-1, keepdims=True)


def row_dot(xp: Any, a: Any, b: Any) -> Any:
    """The inner product of each row of a with b's, kept as a column."""
    if xp is np and a.shape[-1] <= 4096 and a.dtype.kind == "f":
        return np.vecdot(a, b).reshape(*a.shape[:-1], 1)
    return xp.add.reduce(a * b, axis=-1, keepdims=True)


# ---- normalization ------------------------------------------------------------------------------


def moments(xp: Any, rows: Any, axis: Any) -> tuple[Any, Any, Any]:
    """(x − mean, mean, biased variance) along `axis`, dimensions kept: two passes, so no
    cancellation."""
    n = rows.dtype.type(math.prod(rows.shape[i] for i in ((axis,) if type(axis) is int else axis)))
    mean = xp.add.reduce(rows, axis=axis, keepdims=True)
    mean /= n
    centred = rows - mean
    var = xp.add.reduce(centred * centred, axis=axis, keepdims=True)
    var /= n
    return centred, mean, var


def per_channel(t: Any, ndim: int) -> Any:
    """A vector of channels as (1, C, 1, …)."""
    return t.reshape(1, -1, *(1,) * (ndim - 2))


def channel_grads_meta(g: Any, x: Any, *rest: Any) -> Any:
    """The meta rule of gradients (input, weight, bias); the last argument says which are wanted."""
    c = (x.shape[1],)
    return tuple(MetaArray(s if k else (0,), x.dtype) for s, k in zip((x.shape, c, c), rest[-1]))


# ---- losses -------------------------------------------------------------------------------------


def constant(op: str, **arguments: Any) -> None:
    """Refuse arguments that want a gradient where the operator has none for them."""
    for name, t in arguments.items():
        if t is not None and t.requires_grad and (not NOGRAD or TLS.grad):
            raise RuntimeError(
                f"The function '{op}' is not differentiable with respect to argument '{name}'. "
                "This input cannot have requires_grad True."
            )


NONE, MEAN, SUM = 0, 1, 2  # PyTorch's numbers of the losses' reductions
REDUCTIONS = {"none": NONE, "mean": MEAN, "sum": SUM}


def reduction_name(reduction: str, size_average: Any, reduce: Any) -> str:
    """The reduction of a loss, on which the former arguments size_average and reduce decide where
    they are given. Warns of these."""
    if size_average is None and reduce is None:
        return reduction
    average = True if size_average is None else size_average
    chosen = "none" if reduce is False else "mean" if average else "sum"
    warn_user(
        f"size_average and reduce args will be deprecated, please use reduction='{chosen}' instead."
    )
    return chosen


def reduction_number(reduction: Any, size_average: Any = None, reduce: Any = None) -> int:
    """PyTorch's number of a loss's reduction; the two deprecated flags still win."""
    if size_average is not None or reduce is not None:
        reduction = reduction_name(reduction, size_average, reduce)
    try:
        return REDUCTIONS[reduction]
    except KeyError:
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


__all__ = [
    "MEAN",
    "NONE",
    "SUM",
    "as_format_of",
    "axes",
    "channel_grads_meta",
    "constant",
    "exact",
    "fast",
    "into",
    "is_int",
    "limit",
    "moments",
    "np",
    "per_channel",
    "reduction_name",
    "reduction_number",
    "row_dot",
    "row_sum",
]


def copy_into(target: Any, source: Any) -> None:
    """target ← source, of one shape and type. A large transpose goes in tiles that fit the cache:
    NumPy walks the memory of one of the two with a stride, which takes three times as long."""
    if target.size < 1 << 16 or target.ndim < 2 or source.strides[-1] == source.itemsize:
        target[...] = source
        return
    along = next((d for d in range(source.ndim - 1) if source.strides[d] == source.itemsize), None)
    if along is None or not target.flags.c_contiguous:
        target[...] = source
        return
    lead = (slice(None),) * along
    for i in range(0, source.shape[along], 256):
        for j in range(0, source.shape[-1], 32):
            tile = (*lead, slice(i, i + 256), ..., slice(j, j + 32))
            target[tile] = source[tile]
