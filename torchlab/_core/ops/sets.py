"""Distinct elements, places in sorted sequences, counts, membership.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.unique.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._reduce import INT64, is_float, scalar_name
from torchlab._core.tensor import Tensor

# ---- distinct elements --------------------------------------------------------------------------


@op(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
    "-> (Tensor, Tensor, Tensor)",
    public=False,
    vjp={"self": "no_derivative('_unique2', g0)"},
    grad_name="Unique2",
)
def unique_all(xp: Any, a: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    """(distinct elements in ascending order, where each element is among them, counts). NaN equals
    nothing."""
    if a.dtype.kind == "c":
        raise NotImplementedError(f"\"unique\" not implemented for '{scalar_name(a)}'")
    values, inverse, counts = np.unique(
        a.reshape(-1), return_inverse=True, return_counts=True, equal_nan=False
    )
    return (
        values,
        inverse.reshape(a.shape).astype(INT64, copy=False),
        counts.astype(INT64, copy=False),
    )


@op(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
    "return_counts=False) -> (Tensor, Tensor, Tensor)",
    public=False,
    vjp={"self": "no_derivative('unique_dim', g0)"},
)
def unique_dim(
    xp: Any, a: Any, dim: int, sorted: bool, return_inverse: bool, return_counts: bool
) -> Any:
    """As `_unique2`, of the slices along a dimension, in lexicographic order."""
    if a.dtype.kind == "c":
        raise NotImplementedError(f"\"unique_dim\" not implemented for '{scalar_name(a)}'")
    dim = layout.wrap_dim(dim, a.ndim)
    if 0 in a.shape:
        _check_empty(a, dim, "unique")
        return a.copy(), np.empty(0, INT64), np.empty(0, INT64)
    rows = np.moveaxis(a, dim, 0).reshape(a.shape[dim], -1) if a.ndim else a.reshape(1, 1)
    by_size = np.lexsort(rows.T[::-1])
    groups = _groups(rows[by_size])
    inverse = np.empty(len(by_size), INT64)
    inverse[by_size] = groups
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    return (
        _slices(a, rows, by_size[first], dim),
        inverse,
        np.bincount(groups).astype(INT64, copy=False),
    )


def _groups(rows: Any) -> Any:
    """The number of each row's group, where equal neighbours are one group."""
    new = np.zeros(len(rows), INT64)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return np.cumsum(new)


def _slices(a: Any, rows: Any, chosen: Any, dim: int) -> Any:
    """The chosen rows as slices of `a`: in memory one after the other, whatever `dim`."""
    if a.ndim == 0:
        return a.copy()
    return np.moveaxis(
        rows[chosen].reshape(len(chosen), *a.shape[:dim], *a.shape[dim + 1 :]), 0, dim
    )


def _check_empty(a: Any, dim: int, name: str) -> None:
    if a.shape[dim] != 0:
        raise RuntimeError(
            f"There are 0 sized dimensions, and they aren't selected, so {name} cannot be applied"
        )
    if a.shape.count(0) != 1:
        raise RuntimeError(
            "Number of zero sized dimensions is more than one, so unique cannot be applied "
        )


def _wanted(found: Any, inverse: bool, counts: bool) -> Any:
    parts = [found[0], *([found[1]] if inverse else []), *([found[2]] if counts else [])]
    return tuple(parts) if len(parts) > 1 else parts[0]


@face("unique")
def unique(
    self: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """The distinct elements, or slices along `dim`, in ascending order; with `return_inverse` also
    where each element is among them, with `return_counts` how often each occurs."""
    if dim is None:
        found = unique_all.call(self, sorted, return_inverse, return_counts)
    else:
        found = unique_dim.call(self, dim, sorted, return_inverse, return_counts)
    return _wanted(found, return_inverse, return_counts)


@op(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
    "dim=None) -> (Tensor, Tensor, Tensor)",
    public=False,
    vjp={"self": "no_derivative('unique_consecutive', g0)"},
)
def unique_runs(xp: Any, a: Any, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    """The first of every run of equal elements or slices, the run of each, and the lengths."""
    if a.dtype.kind == "c":
        raise NotImplementedError(f"\"unique\" not implemented for '{scalar_name(a)}'")
    if dim is not None and a.ndim:
        d = layout.wrap_dim(dim, a.ndim)
        if 0 in a.shape:
            _check_empty(a, d, "unique")
            return a.copy(), np.empty(0, INT64), np.empty(0, INT64)
        rows = np.moveaxis(a, d, 0).reshape(a.shape[d], -1)
    else:
        rows = a.reshape(-1, 1)
    groups = _groups(rows)
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    if dim is None or not a.ndim:
        values, inverse = a.reshape(-1)[first], groups.reshape(a.shape)
    else:
        values, inverse = _slices(a, rows, first, d), groups
    return values, inverse, np.bincount(groups).astype(INT64, copy=False)


@face("unique_consecutive")
def unique_consecutive(
    self: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The first of every run of equal elements, or of equal slices along `dim`."""
    return _wanted(
        unique_runs.call(self, return_inverse, return_counts, dim), return_inverse, return_counts
    )


# ---- places in sorted sequences -----------------------------------------------------------------


@op(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
    "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    public=False,
    method=False,
    meta=lambda s, a, out_int32=False, right=False, side=None, sorter=None: MetaArray(
        a.shape, _int(out_int32)
    ),
)
def search(
    xp: Any, bounds: Any, a: Any, out_int32: bool, right: bool, side: Any, sorter: Any
) -> Any:
    """Where the elements would be inserted to keep the sequence sorted."""
    right = _side(right, side)
    _check_search(bounds, a, sorter)
    if sorter is not None:
        bounds = np.take_along_axis(bounds, sorter, -1)
    n = bounds.shape[-1]
    common = np.result_type(bounds.dtype, a.dtype)
    bounds, a = bounds.astype(common, copy=False), a.astype(common, copy=False)
    nan = common.kind == "f" and (np.isnan(bounds).any() or np.isnan(a).any())
    if bounds.ndim == 1 and not nan:
        return np.asarray(np.searchsorted(bounds, a, side="right" if right else "left")).astype(
            _int(out_int32)
        )
    return _bisect(bounds, a, right, n).astype(_int(out_int32))


def _bisect(bounds: Any, a: Any, right: bool, n: int) -> Any:
    """PyTorch's bisection in all rows at once: also with NaN it gives the same."""
    low, high = np.zeros(a.shape, INT64), np.full(a.shape, n, INT64)
    for _ in range(n.bit_length()):
        middle = (low + high) // 2
        at = np.minimum(middle, max(n - 1, 0))
        value = bounds[at] if bounds.ndim == 1 else np.take_along_axis(bounds, at, -1)
        go = (low < high) & ~(value > a if right else value >= a)
        low, high = np.where(go, middle + 1, low), np.where(go | (low >= high), high, middle)
    return low


def _int(small: bool) -> np.dtype:
    return np.dtype(np.int32) if small else INT64


def _side(right: bool, side: Any) -> bool:
    if side is None:
        return right
    if side not in ("left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    return side == "right"


def _check_search(bounds: Any, a: Any, sorter: Any) -> None:
    if bounds.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
            "dimension"
        )
    if bounds.ndim != 1 and a.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
            "dimension is 1, but we got "
            f"boundaries tensor dim({bounds.ndim}) and input value's dim(0) numel(1)"
        )
    if bounds.ndim != 1 and (bounds.ndim != a.ndim or bounds.shape[:-1] != a.shape[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries "
            "tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(bounds.shape)} and input "
            f"value tensor {list(a.shape)}"
        )
    if sorter is not None:
        if sorter.shape != bounds.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got "
                "boundary tensor "
                f"{list(bounds.shape)} and got sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype != INT64:
            raise RuntimeError(
                "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
                f"{scalar_name(sorter)}"
            )
        if sorter.size and (sorter.min() < 0 or sorter.max() >= bounds.shape[-1]):
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
    if np.result_type(bounds, a).kind in "bc" and a.size:
        raise NotImplementedError(
            f"\"searchsorted_out_cpu\" not implemented for '{scalar_name(a)}'"
        )


def _as_tensor(x: Any, like: Any) -> Any:
    if isinstance(x, (int, float, np.number)):
        dtype = like.dtype if isinstance(x, (int, np.integer)) else None
        return aten.scalar_tensor(x, dtype=dtype, device=like.device)
    return x


@face("searchsorted", method=False)
def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
    out: Any = None,
) -> Any:
    """Where the elements of `input` would be inserted to keep the innermost dimension of
    `sorted_sequence` sorted: before equal elements, or behind them (`right`, `side="right"`)."""
    _check_int32(out, out_int32, "searchsorted")
    x = _as_tensor(input, sorted_sequence)
    if out is not None:
        return search.out(sorted_sequence, x, out_int32, right, side, sorter, out=out)
    return search.function(
        sorted_sequence, x, out_int32=out_int32, right=right, side=side, sorter=sorter
    )


@face("bucketize", method=False)
def bucketize(
    input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Any:
    """The number of the interval between sorted `boundaries` (a vector) that each element is in."""
    if boundaries._a.ndim != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries._a.ndim})"
        )
    _check_int32(out, out_int32, "bucketize")
    x = _as_tensor(input, boundaries)
    if out is not None:
        return search.out(boundaries, x, out_int32, right, None, None, out=out)
    return search.function(boundaries, x, out_int32=out_int32, right=right)


def _check_int32(out: Any, out_int32: bool, name: str) -> None:
    if out is not None and out._a.dtype != _int(out_int32):
        raise RuntimeError(
            f"torch.{name}(): output tensor's dtype is wrong, it can only be Int(int32) or "
            "Long(int64) depending on "
            "whether out_int32 flag is True, but we got output tensor's dtype "
            f"{scalar_name(out._a)} and out_int32 flag "
            f"is {out_int32}"
        )


# ---- counts -------------------------------------------------------------------------------------


@op("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", half=False)
def bincount(xp: Any, a: Any, weights: Any, minlength: int) -> Any:
    """How often each number 0, 1, … occurs, or the sum of its weights."""
    if is_float(a.dtype) or a.dtype.kind == "b":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{scalar_name(a)}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if a.ndim != 1 or (a.size and a.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return xp.bincount(a, minlength=minlength).astype(INT64, copy=False)
    if weights.shape != a.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if a.size == 0:
        return xp.zeros(minlength, INT64)
    made = weights.dtype if weights.dtype == np.float32 else np.dtype(np.float64)
    return xp.bincount(a, weights=weights.astype(np.float64), minlength=minlength).astype(
        made, copy=False
    )


# ---- membership ---------------------------------------------------------------------------------


@op(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool"
    " invert=False) -> Tensor",
    public=False,
    half=False,
    meta=lambda a, b, assume_unique=False, invert=False: MetaArray(a.shape, np.dtype(bool)),
)
def isin_tensors(xp: Any, a: Any, b: Any, assume_unique: bool, invert: bool) -> Any:
    """Whether each element of `a` equals one of `b`'s. NaN equals nothing."""
    for x in (a, b):
        if x.dtype.kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {scalar_name(x)}")
    common = dt.promote_types(dt.from_numpy(a.dtype), dt.from_numpy(b.dtype)).np
    if common.itemsize == 2 and common.kind not in "iu":
        common = np.dtype(np.float32)  # holds all 16-bit numbers
    return xp.isin(a.astype(common, copy=False), b.astype(common, copy=False), invert=invert)


def _isin(
    elements: Any = None,
    test_elements: Any = None,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Any = None,
    element: Any = None,
    test_element: Any = None,
) -> Any:
    """Whether each element is among the test elements; one of both may be a number."""
    a = elements if elements is not None else element
    b = test_elements if test_elements is not None else test_element
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        raise TypeError(
            "isin() received an invalid combination of arguments: elements or test_elements must be"
            f" a Tensor, but got {type(a).__name__} and {type(b).__name__}"
        )
    a, b = (
        x if isinstance(x, Tensor) else aten.scalar_tensor(x, dtype=_number_type(x, like))
        for x, like in ((a, b), (b, a))
    )
    if out is not None:
        if out._k.dtype is not dt.bool_:
            raise RuntimeError(
                f"isin: Expected out tensor to have dtype bool, but got {out.dtype} instead"
            )
        return isin_tensors.out(a, b, assume_unique, invert, out=out)
    return isin_tensors.function(a, b, assume_unique=assume_unique, invert=invert)


face("isin", method=False)(_isin)


def _number_type(x: Any, like: Any) -> dt.dtype:
    return dt.combine(like._k.dtype, None, dt.of_scalar(x))
