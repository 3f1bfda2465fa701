"""Whole slices of one dimension named by a vector of indices: index_select, index_add, index_copy,
index_fill, index_reduce.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.index_select.html and
its neighbours
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
from torchlab._core.ops._scatter import reduce_at
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
                f"{name}: index {int(bad[0])} is out of bounds for dimension {dim} with size {size}"
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
    tags=("out_apart", "out_same_dtype"),
    meta=_select_meta,
    vjp={"self": "index_select_backward(g, self.shape, dim, index)"},
)
def index_select(xp: Any, a: Any, dim: int, index: Any) -> Any:
    """The slices at `index` (a vector) of one dimension, copied."""
    index = _vector(index, "index_select")
    if a.ndim == 0:
        layout.wrap_dim(dim, 0)
        if index.size != 1:
            raise RuntimeError(
                f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)"
            )
        _index_range(index, 1)
        return a.copy()
    dim = layout.wrap_dim(dim, a.ndim)
    _index_range(index, a.shape[dim])
    r = a.take(index, axis=dim) if a.flags.c_contiguous else a[_places(a, dim, index).key]
    return r if r.flags.c_contiguous else r.copy(order="C")


def _index_range(index: Any, size: int) -> None:
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        bad = index[(index < 0) | (index >= size)][0]
        raise IndexError(
            f"index_select(): index out of range in self: {int(bad)} is not in [0, {size})"
        )


@vjp_helper
def index_select_backward(g: Any, shape: Any, dim: int, index: Any) -> Any:
    return aten.index_add(aten.new_zeros(g, tuple(shape)), dim, index, g)


def _same(a: Any, dim: int, index: Any, source: Any, name: str) -> tuple[Any, int, Any, Any]:
    """Checked and brought to at least one dimension: (a, dim, index, source)."""
    index = _vector(index, name)
    dim = layout.wrap_dim(dim, a.ndim)
    a, source = (x.reshape(1) if x.ndim == 0 else x for x in (a, source))
    if source.dtype != a.dtype:
        raise RuntimeError(
            f"{name}: self ({scalar_name(a)}) and source ({scalar_name(source)}) must have the "
            "same scalar type"
            " (self and source expected to have the same dtype)"
        )
    return a, dim, index, source


def _shapes(a: Any, dim: int, index: Any, source: Any, name: str) -> None:
    if source.ndim != a.ndim or any(
        i != dim and n != m for i, (n, m) in enumerate(zip(a.shape, source.shape, strict=True))
    ):
        raise RuntimeError(
            f"{name}: source tensor shape must match self tensor shape, excluding the specified "
            "dimension. Got "
            f"self.shape = {list(a.shape)} source.shape = {list(source.shape)}"
        )
    if source.shape[dim] != index.size:
        raise RuntimeError(
            f"{name}: Number of indices ({index.size}) should be equal to source.size(dim): "
            f"({source.shape[dim]}), for dim: {dim}"
        )


def _like(a: Any, *rest: Any) -> Any:
    return MetaArray(a.shape, a.dtype)


@op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    inplace=True,
    half=False,
    out=True,
    meta=_like,
    vjp={"self": "g", "source": "index_add_source(g, dim, index, alpha, source.shape)"},
    tags=("out_same_dtype",),
)
@written_row_major
def index_add(xp: Any, a: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> None:
    """self with `alpha · source` added to the slices at `index`; repeated indices add up."""
    a, dim, index, source = _same(a, dim, index, source, "index_add_()")
    _shapes(a, dim, index, source, "index_add_()")
    _bounds(index, a.shape[dim], dim, "index_add_()", RuntimeError)
    _places(a, dim, index).add(
        xp, a, source if alpha == 1 else source * number(alpha, source.dtype)
    )


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
        "source": "index_add_source(g, dim, index, 1, source.shape)",
    },
    autocast="promote:cpu",
    tags=("out_same_dtype",),
)
@written_row_major
def index_copy(xp: Any, a: Any, dim: int, index: Any, source: Any) -> None:
    """self with the slices at `index` replaced by those of `source`."""
    a, dim, index, source = _same(a, dim, index, source, "index_copy_()")
    if source.ndim == a.ndim and source.shape[dim] != index.size:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) "
            f"({source.shape[dim]})"
        )
    _shapes(a, dim, index, source, "index_copy_()")
    _bounds(index, a.shape[dim], dim, "index_copy_()", IndexError)
    a[_places(a, dim, index).key] = source


def _fill(xp: Any, a: Any, dim: int, index: Any, value: Any) -> None:
    index = _vector(index, "index_fill_")
    dim = layout.wrap_dim(dim, a.ndim)
    a = a.reshape(1) if a.ndim == 0 else a
    _bounds(index, a.shape[dim], dim, "index_fill_()", IndexError, -a.shape[dim])
    a[_places(a, dim, index).key] = value


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
    if isinstance(value, complex) and a.dtype.kind != "c":
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    _fill(xp, a, dim, index, number(value, a.dtype))


@op(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    inplace=True,
    half=False,
    public=False,
    meta=meta_like,
    grad_name="IndexFillBackward1",
    vjp={
        "self": "index_fill(g, dim, index, 0)",
        "value": "sum(index_select(g, dim, distinct(index, dim, self.shape)))",
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
    _fill(xp, a, dim, index, value.astype(a.dtype))


@vjp_helper
def distinct(index: Any, dim: int, shape: Any) -> Any:
    """Each index once, counted from the front."""
    size = shape[dim] if shape else 1
    a = aten.detach(index).cpu().numpy()
    return aten.to(aten.from_numpy(np.unique(a.reshape(-1) % max(size, 1))), device=index._k.device)


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
    half=True,
    out=True,
    meta=_like,
    vjp={
        "self, source": (
            "index_reduce_backward(g, self, dim, index, source, "
            "reduce, include_self, result, needs)"
        )
    },
    tags=("out_same_dtype",),
)
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
    flat, dim, index, source = _same(r, dim, index, source, "index_reduce_()")
    _shapes(flat, dim, index, source, "index_reduce_()")
    _bounds(index, flat.shape[dim], dim, "index_reduce_()", RuntimeError)
    reduce_at(xp, flat, _places(flat, dim, index).positions(xp), source, reduce, include_self)
    return r
