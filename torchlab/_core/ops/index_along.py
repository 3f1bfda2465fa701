"""Whole slices of one dimension named by a vector of indices: index_select, index_add, index_copy,
index_fill, index_reduce.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.index_select.html and
its neighbours
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._places import (
    Places,
    scalar_name,
    written,
    written_row_major,
)
from torchlab._core.ops._reduce import row_major
from torchlab._core.ops._scatter import half_in_float32, reduce_at
from torchlab._core.ops.kernels import meta_like, number


def _vector(index: Any, name: str) -> Any:
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got shape {list(index.shape)}"
        )
    if index.dtype.kind != "i" or index.dtype.itemsize < 4:
        raise RuntimeError(
            f"{name}(): Expected dtype int32 or int64 for index, but got {scalar_name(index)}"
        )
    return index.reshape(-1)


def _bounds(
    index: Any, size: int, dim: int, name: str, error: type[Exception], low: int = 0
) -> None:
    if index.size:
        bad = index[(index < low) | (index >= size)]
        if bad.size:
            raise error(
                f"{name}(): index out of range in self: {int(bad[0])} is out of bounds for"
                f" dimension {dim} with size {size}"
            )


def _within_memory(a: Any, dim: int, index: Any) -> None:
    """RuntimeError where there is nothing along the dimension, nor memory that its first slice
    could be in: PyTorch takes the tensor for one that repeats this slice before it looks at the
    index."""
    if a.shape[dim] or not index.size or type(a) is not np.ndarray:
        return
    owner = a
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    start = a.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    steps = zip(range(a.ndim), a.shape, a.strides, strict=True)
    reach = start + sum((n - 1) * step for d, n, step in steps if d != dim) + a.itemsize
    if reach > owner.nbytes:
        shape = [index.size if d == dim else n for d, n in enumerate(a.shape)]
        raise RuntimeError(
            f"setStorage: sizes {shape} with one slice for all of dimension {dim} need {reach}"
            f" bytes, which is out of bounds for storage of size {owner.nbytes}"
        )


def _places(a: Any, dim: int, index: Any) -> Places:
    return Places(a.shape, [index if d == dim else None for d in range(a.ndim)])


def _select_meta(a: Any, dim: int, index: Any) -> Any:
    if a.ndim == 0:
        return MetaArray((), a.dtype)
    dim = layout.wrap_dim(dim, a.ndim)
    n = index.shape[0] if index.ndim else 1
    return MetaArray((*a.shape[:dim], n, *a.shape[dim + 1 :]), a.dtype)


@op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    half=False,
    out=True,
    tags=("out_apart", "out_same_dtype", "out_type_first"),
    meta=_select_meta,
    vjp={"self": "index_select_backward(g, self.shape, dim, index)"},
)
def index_select(xp: Any, a: Any, dim: int, index: Any) -> Any:
    """The slices at `index` (a vector) of one dimension, copied."""
    dim = layout.wrap_dim(dim, a.ndim)
    index = _vector(index, "index_select")
    if a.ndim == 0:
        if index.size != 1:
            raise RuntimeError(
                f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)"
            )
        _bounds(index, 1, 0, "index_select", IndexError)
        return a.copy()
    if a.size == 0 and index.size and a.shape[dim] == 0 and a.ndim > 1:
        raise RuntimeError(
            f"index_select(): self indexing axis dim should be positive, but dimension {dim} of"
            f" {list(a.shape)} is empty"
        )
    error = RuntimeError if a.ndim > 1 and (dim == 1 or not a.size) else IndexError  # as PyTorch
    _bounds(index, a.shape[dim], dim, "index_select", error)
    r = a.take(index, axis=dim) if a.flags.c_contiguous else a[_places(a, dim, index).key]
    return row_major(r)


@vjp_helper
def index_select_backward(g: Any, shape: Any, dim: int, index: Any) -> Any:
    return aten.index_add(aten.new_zeros(g, tuple(shape)), dim, index, g)


def _added(a: Any, dim: int, index: Any, source: Any, name: str) -> tuple[Any, int, Any, Any]:
    """Checked and brought to at least one dimension: (a, dim, index, source)."""
    dim = layout.wrap_dim(dim, a.ndim)
    index = _vector(index, name)
    _same_dtype(a, source, name)
    if dim and dim >= source.ndim:
        raise RuntimeError(
            f"{name}(): Indexing dim {dim} is out of bounds of the source tensor with dim"
            f" {source.ndim}"
        )
    count = source.shape[dim] if source.ndim else 1
    if index.size != count:
        error = RuntimeError if source.ndim else IndexError
        raise error(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): "
            f"({count}), for dim: {dim}"
        )
    if source.ndim != a.ndim or _rest(a, dim) != _rest(source, dim):
        raise RuntimeError(
            f"{name}(): source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {list(a.shape)} source.shape = {list(source.shape)}"
        )
    a, source = (x.reshape(1) if x.ndim == 0 else x for x in (a, source))
    return a, dim, index, source


def _rest(a: Any, dim: int) -> Any:
    """The shape of a slice."""
    return a.shape[:dim] + a.shape[dim + 1 :]


def _same_dtype(a: Any, source: Any, name: str) -> None:
    if source.dtype != a.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_name(a)}) and source ({scalar_name(source)}) must have the "
            "same scalar type (self and source expected to have the same dtype)"
        )


def _like(a: Any, *rest: Any) -> Any:
    return MetaArray(a.shape, a.dtype)


@op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    inplace=True,
    half=False,
    out=True,
    meta=_like,
    vjp={
        "self": "g",
        "source": "kept(index_add_source(g, dim, index, conj_of(alpha), source.shape), source)",
    },
    tags=("out_same_dtype", "out_type_first"),
)
@written_row_major
def index_add(xp: Any, a: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> None:
    """self with `alpha · source` added to the slices at `index`; repeated indices add up."""
    a, dim, index, source = _added(a, dim, index, source, "index_add_")
    if a.ndim == 1 and alpha != 1:
        number(alpha, source.dtype)  # refused before the indices are looked at
    if a.ndim > 1 and not (a.size and index.size):
        return
    outer = alpha == 1 and a.ndim > 1 and dim in (0, a.ndim - 1)  # PyTorch scatters there
    _bounds(index, a.shape[dim], dim, "index_add_", RuntimeError if outer else IndexError)
    if alpha != 1 or a.dtype.kind == "c" and not outer:  # (complex: as in `add`)
        source = source * number(alpha, source.dtype)
    _places(a, dim, index).add(xp, a, source)


@vjp_helper
def index_add_source(g: Any, dim: int, index: Any, alpha: Any, shape: Any) -> Any:
    r = aten.reshape(aten.index_select(g, dim, index), tuple(shape))
    return r if alpha == 1 else r * alpha


@op(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    inplace=True,
    half=False,
    out=True,
    meta=_like,
    vjp={
        "self": "index_fill(g, dim, index, 0)",
        "source": "kept(index_copy_source(g, dim, index, source.shape), source)",
    },
    autocast="promote:cpu",
    tags=("out_same_dtype", "out_type_first"),
)
@written_row_major
def index_copy(xp: Any, a: Any, dim: int, index: Any, source: Any) -> None:
    """self with the slices at `index` replaced by those of `source`."""
    dim = layout.wrap_dim(dim, a.ndim)
    if index.ndim > 1:
        raise IndexError(
            f"index_copy_(): Index should have dimension 1 or 0, but got shape {list(index.shape)}"
        )
    if source.ndim == 0 and index.size != 1:
        raise IndexError(
            "index_copy_(): When source is scalar, index should have one element, but got"
            f" {index.size}"
        )
    if a.ndim and source.ndim and a.ndim != source.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must"
            f" match, but got shapes {list(source.shape)} and {list(a.shape)}"
        )
    if index.dtype != np.int64:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {scalar_name(index)}"
        )
    _same_dtype(a, source, "index_copy_")
    if _rest(a, dim) != _rest(source, dim):
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes, but dimension"
            f" {dim} apart they are {list(source.shape)} and {list(a.shape)}"
        )
    a, source, index = (x.reshape(1) if x.ndim == 0 else x for x in (a, source, index))
    if source.shape[dim] != index.size:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) "
            f"({source.shape[dim]})"
        )
    if 0 not in _rest(a, dim):
        _within_memory(a, dim, index)
        _bounds(index, a.shape[dim], dim, "index_copy_", IndexError)
        a[_places(a, dim, index).key] = source


@vjp_helper
def index_copy_source(g: Any, dim: int, index: Any, shape: Any) -> Any:
    r = aten.index_select(g, dim, index)
    return aten.reshape(r, tuple(shape)) if shape else r  # of one element: the engine sums


def _fill(xp: Any, a: Any, dim: int, index: Any, value: Any) -> None:
    if index.dtype != np.int64:
        raise IndexError(
            f"index_fill_(): Expected dtype int64 for index, but got {scalar_name(index)}"
        )
    if isinstance(value, complex) and a.dtype.kind != "c":
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    dim = layout.wrap_dim(dim, a.ndim)
    if index.ndim > 1:
        raise RuntimeError(
            f"index_fill_(): Index has to be a vector/scalar, but got shape {list(index.shape)}"
        )
    filler = number(value, a.dtype)
    a, index = (x.reshape(1) if x.ndim == 0 else x for x in (a, index))
    if 0 not in _rest(a, dim):  # a slice without elements is nowhere: PyTorch does not look
        _within_memory(a, dim, index)
        _bounds(index, a.shape[dim], dim, "index_fill_", IndexError, -a.shape[dim])
        a[_places(a, dim, index).key] = filler


@op(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace=True,
    half=False,
    public=False,
    meta=meta_like,
    grad_name="IndexFillBackward0",
    vjp={"self": "index_fill(g, dim, index, 0)"},
)
@written
def index_fill_scalar(xp: Any, a: Any, dim: int, index: Any, value: Any) -> None:
    """self with the slices at `index` set to a number."""
    _fill(xp, a, dim, index, value)


@op(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    inplace=True,
    half=False,
    public=False,
    meta=meta_like,
    grad_name="IndexFillBackward1",
    vjp={
        "self": "index_fill(g, dim, index, 0)",
        "value": "sum_of_filled(g, dim, index)",
    },
)
@written
def index_fill_tensor(xp: Any, a: Any, dim: int, index: Any, value: Any) -> None:
    """self with the slices at `index` set to a tensor without dimensions."""
    if value.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    _fill(xp, a, dim, index, value.item())


@vjp_helper
def sum_of_filled(g: Any, dim: int, index: Any) -> Any:
    """The sum of what lies at the slices `index`, each once."""
    others = aten.index_fill(aten.to(aten.ones_like(g), dt.bool_), dim, index, 0)
    return aten.sum(aten.masked_fill(g, others, 0))


@face("index_fill")
def index_fill(self: Any, dim: int, index: Any, value: Any) -> Any:
    """self with the slices at `index` of one dimension set to `value` (a number or a 0-d
    tensor).
    """
    return (index_fill_tensor if hasattr(value, "_k") else index_fill_scalar).call(
        self, dim, index, value
    )


@face("index_fill_", spaces=())
def index_fill_(self: Any, dim: int, index: Any, value: Any) -> Any:
    """In-place version of `index_fill`."""
    return (index_fill_tensor if hasattr(value, "_k") else index_fill_scalar).inplace(
        self, dim, index, value
    )


@op(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
    "include_self=True) -> Tensor",
    inplace=True,
    half=False,
    out=True,
    meta=_like,
    vjp={
        "self, source": (
            "index_reduce_backward(g, self, dim, index, source, "
            "reduce, include_self, result, needs)"
        )
    },
    tags=("out_same_dtype", "out_type_first", "real_gradient"),
)
@half_in_float32
def index_reduce(
    xp: Any, a: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True
) -> Any:
    """self combined with the slices of `source` at `index`: prod, mean, amax or amin."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    r = a.copy(order="C")
    flat, dim, index, source = _added(r, dim, index, source, "index_reduce_")
    if a.dtype.kind in "bc":  # with more dimensions PyTorch goes slice by slice
        lacking = "" if a.ndim > 1 else "index_func_"
        if lacking == "" and index.size and a.dtype.kind == "c" and reduce in ("amax", "amin"):
            lacking = "maximum_cpu" if reduce == "amax" else "minimum_cpu"
        if not include_self:
            lacking = "index_reduce_func_exclude_input_init"
        if lacking:
            raise NotImplementedError(f"\"{lacking}\" not implemented for '{scalar_name(a)}'")
    _bounds(index, flat.shape[dim], dim, "index_reduce_", IndexError)
    reduce_at(xp, flat, _places(flat, dim, index).positions(xp), source, reduce, include_self)
    return r
