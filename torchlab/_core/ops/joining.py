"""Joining and splitting: cat, stack and their shorthands, tensor_split, meshgrid and products.

Source of the semantics:
https://docs.pytorch.org/docs/2.13/torch.html#indexing-slicing-joining-mutating-ops
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.factories import fresh
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import alias, aten, vjp_helper
from torchlab._core.dispatch.stacks import STACKS
from torchlab._core.lazy import lazy
from torchlab._core.ops._places import elements, in_order
from torchlab._core.settings import warn_user
from torchlab._core.tensor import Tensor

_stacking = lazy("torchlab._core.codegen.stacking")
STACKS.compiled = lambda: _stacking.stack_rows()


def _common(arrays: Any) -> np.dtype:
    """The promoted type of all arrays."""
    first = arrays[0].dtype
    if all(a.dtype == first for a in arrays):
        return first
    d = dt.from_numpy(first)
    for a in arrays[1:]:
        d = dt.promote_types(d, dt.from_numpy(a.dtype))
    return d.np


def _format(arrays: Any, shape: Any) -> Any:
    """Channels last if every array is, else row-major."""
    if len(shape) in (4, 5) and all(
        a.ndim == len(shape)
        and layout.suggest_memory_format(a.shape, elements(a)).startswith("channels")
        for a in arrays
    ):
        return layout.channels_last_strides(shape)
    return None


def _cat_meta(arrays: Any, dim: int = 0) -> Any:
    shape = layout.cat_shape([a.shape for a in arrays], dim, "cat")
    return MetaArray(shape, _common(arrays), _format(arrays, shape))


@op(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    half=False,
    out=True,
    tags=("out_apart",),
    method=False,
    meta=_cat_meta,
    vjp={"tensors": "cat_backward(g, tensors.shapes, tensors.dtypes, dim)"},
    autocast="promote:cpu",
)
def cat(xp: Any, arrays: Any, dim: int) -> Any:
    """The tensors one after the other along `dim`; types are promoted, empty vectors passed
    over.
    """
    if xp is np and arrays:
        dtype = arrays[0].dtype
        for a in arrays:
            if a.dtype is not dtype or not a.flags.c_contiguous:
                break
        else:
            try:
                r = np.concatenate(arrays, dim)
                if r.flags.c_contiguous and (r.ndim < 4 or _format(arrays, r.shape) is None):
                    return r
            except (ValueError, IndexError):
                pass  # below is said why
    shape = layout.cat_shape([a.shape for a in arrays], dim, "torch.cat")
    dtype = _common(arrays)
    kept = [a for a in arrays if a.shape != (0,)]
    if not kept or len(shape) == 0:
        return xp.empty(shape, dtype)
    dim = layout.wrap_dim(dim, len(shape))
    if len(shape) in (4, 5) and (strides := _format(arrays, shape)) is not None:
        return in_order(xp, xp.concatenate(kept, axis=dim).astype(dtype, copy=False), strides)
    if all(a.dtype == dtype for a in kept):
        r = xp.concatenate(kept, axis=dim)
        return r if r.flags.c_contiguous else r.copy(order="C")
    r = xp.empty(shape, dtype)
    at = 0
    for a in kept:
        r[(*(slice(None),) * dim, slice(at, at + a.shape[dim]))] = a
        at += a.shape[dim]
    return r


@vjp_helper
def cat_backward(g: Any, shapes: Any, dtypes: Any, dim: int) -> Any:
    """Each tensor's part of g."""
    dim = layout.wrap_dim(dim, g._a.ndim)
    parts, at = [], 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        if shape == (0,) and g._a.ndim != 1:
            parts.append(aten.zeros((0,), dtype=g._k.dtype, device=g._k.device))
            continue
        part = aten.narrow(g, dim, at, shape[dim])
        parts.append(part if dtype is g._k.dtype else _real_part(part, dtype))
        at += shape[dim]
    return parts


def _real_part(g: Any, dtype: Any) -> Any:
    """What a tensor of `dtype` gets of a gradient. The engine converts to the type of a tensor that
    wants gradients; a hook of the node sees those of the others (of truth values, too) as they
    are."""
    return aten.real(g) if g._k.dtype.is_complex and not dtype.is_complex else g


alias("concat", "cat")
alias("concatenate", "cat")


def _stacked_strides(arrays: Any, dim: int, shape: tuple[int, ...]) -> Any:
    """The strides of the stack if those of `cat` along `dim` are channels_last: PyTorch stacks by
    that and a split of the dimension, save along a new last one. None: contiguous."""
    own = arrays[0].shape
    if len(own) not in (4, 5) or dim == len(own):
        return None
    joined = (*own[:dim], own[dim] * len(arrays), *own[dim + 1 :])
    strides = _format(arrays, joined)
    return None if strides is None else layout.view_strides(joined, strides, shape)


def _stack_meta(arrays: Any, dim: int = 0) -> Any:
    shape = arrays[0].shape
    dim = layout.wrap_dim(dim, len(shape) + 1)
    made = (*shape[:dim], len(arrays), *shape[dim:])
    return MetaArray(made, _common(arrays), _stacked_strides(arrays, dim, made))


@op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    half=False,
    out=True,
    method=False,
    meta=_stack_meta,
    inline=(
        "dim == 0 and 0 < (a := arrays[0]).size < 4096 and a.ndim < 4",
        "STACKS.fill(np.empty((len(arrays),) + a.shape, a.dtype), arrays)",
        "k",
    ),
    vjp={"tensors": "stack_backward(g, tensors.dtypes, dim)"},
    autocast="promote:cpu",
)
def stack(xp: Any, arrays: Any, dim: int) -> Any:
    """Tensors of one shape along a new dimension."""
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = arrays[0].shape
    dim = layout.wrap_dim(dim, len(shape) + 1)
    for i, a in enumerate(arrays):
        if a.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 "
                f"and {list(a.shape)} at entry {i}"
            )
    dtype = _common(arrays)
    r = xp.empty((*shape[:dim], len(arrays), *shape[dim:]), dtype)
    if (strides := _stacked_strides(arrays, dim, r.shape)) is not None:
        r = in_order(xp, r, strides)
    lead = (slice(None),) * dim
    for i, a in enumerate(arrays):
        r[(*lead, i)] = a
    return r


@vjp_helper
def stack_backward(g: Any, dtypes: Any, dim: int) -> Any:
    """Each tensor's part of g: a view of its own, so that it may be written to."""
    parts = [aten.select(g, dim, i) for i in range(len(dtypes))]
    return [p if d is p._k.dtype else _real_part(p, d) for p, d in zip(parts, dtypes, strict=True)]


# ---- shorthands ---------------------------------------------------------------------------------


def _many(tensors: Any) -> Any:
    """`f(a, b)` and `f([a, b])`."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def _checked(tensors: Any, name: str) -> list[Any]:
    if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return list(tensors)


@face("atleast_1d", method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Views with at least one dimension."""
    return _at_least(tensors, _one)


@face("atleast_2d", method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Views with at least two dimensions: new ones in front."""
    return _at_least(tensors, _two)


@face("atleast_3d", method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Views with at least three dimensions."""
    return _at_least(tensors, _three)


def _at_least(tensors: Any, f: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return f(tensors[0])
    return tuple(f(t) for t in _many(tensors))


def _one(t: Any) -> Any:
    return t if t._a.ndim else aten.reshape(t, (1,))


def _two(t: Any) -> Any:
    if not t._a.ndim:
        return aten.reshape(t, (1, 1))
    return t if t._a.ndim > 1 else aten.unsqueeze(t, 0)


def _three(t: Any) -> Any:
    if not t._a.ndim:
        return aten.reshape(t, (1, 1, 1))
    return t if t._a.ndim > 2 else aten.unsqueeze(_two(t), -1)


@face("hstack", method=False)
def hstack(tensors: Any, *, out: Any = None) -> Any:
    """Side by side: along dimension 1 (0 for vectors)."""
    parts = [_one(t) for t in _checked(tensors, "hstack")]
    return _out(parts, 0 if parts[0]._a.ndim == 1 else 1, out)


@face("vstack", method=False)
def vstack(tensors: Any, *, out: Any = None) -> Any:
    """On top of each other: along dimension 0, vectors as rows."""
    return _out([_two(t) for t in _checked(tensors, "vstack")], 0, out)


@face("dstack", method=False)
def dstack(tensors: Any, *, out: Any = None) -> Any:
    """Behind each other: along dimension 2."""
    return _out([_three(t) for t in _checked(tensors, "dstack")], 2, out)


@face("column_stack", method=False)
def column_stack(tensors: Any, *, out: Any = None) -> Any:
    """Vectors as columns, matrices side by side."""
    parts = [
        t if t._a.ndim > 1 else aten.reshape(t, (-1, 1)) for t in _checked(tensors, "column_stack")
    ]
    return _out(parts, 1, out)


alias("row_stack", "vstack")


def _out(parts: Any, dim: int, out: Any) -> Any:
    return aten.cat(parts, dim) if out is None else aten.cat(parts, dim, out=out)


# ---- splitting ----------------------------------------------------------------------------------


def _cuts(self: Any, sections: Any, dim: int) -> Any:
    n = self._a.shape[dim]
    if isinstance(sections, Tensor):
        if sections._a.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor, but got a tensor with {sections._a.ndim} dims"
            )
        sections = sections.tolist()  # type: ignore[attr-defined]
    if isinstance(sections, int):
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        small, more = divmod(n, sections)
        ends = list(itertools.accumulate([small + 1] * more + [small] * (sections - more)))
        return list(zip([0, *ends[:-1]], ends, strict=True))
    return list(zip([None, *sections], [*sections, None], strict=True))


@face("tensor_split")
def tensor_split(
    self: Any,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    indices: Any = None,
    sections: Any = None,
    tensor_indices_or_sections: Any = None,
) -> Any:
    """Views of nearly equal parts along a dimension, or of the parts between indices."""
    ways = (indices_or_sections, indices, sections, tensor_indices_or_sections)
    given = next((x for x in ways if x is not None), None)
    if given is None:
        raise TypeError("tensor_split() missing 1 required argument: 'indices' or 'sections'")
    if self._a.ndim == 0:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    dim = layout.wrap_dim(dim, self._a.ndim)
    return tuple(aten.slice(self, dim, i, j, 1) for i, j in _cuts(self, given, dim))


def _split_along(name: str, least: int, dim: Any) -> None:
    def split(
        self: Any, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None
    ) -> Any:
        ways = (indices_or_sections, indices, sections)
        indices_or_sections = next((x for x in ways if x is not None), None)
        if indices_or_sections is None:
            raise TypeError(f"{name}() missing 1 required argument: 'indices' or 'sections'")
        n = self._a.ndim
        if n < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a "
                f"tensor with {n} dimensions!"
            )
        d = dim(n)
        if isinstance(indices_or_sections, int) and (
            indices_or_sections == 0 or self._a.shape[d] % indices_or_sections
        ):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the "
                f"dimension {self._a.shape[d]} is "
                f"not divisible by the split_size {indices_or_sections}!"
            )
        return tensor_split.body(self, indices_or_sections, d)

    def method(
        self: Any,
        indices_or_sections: Any = None,
        *more: int,
        indices: Any = None,
        sections: Any = None,
    ) -> Any:
        first = indices_or_sections
        return split(self, (first, *more) if more else first, indices=indices, sections=sections)

    split.__doc__ = method.__doc__ = (
        f"`tensor_split` along the dimension of `{name}`; a number must divide its size."
    )
    face(name, method=method)(split)


_split_along("hsplit", 1, lambda n: 0 if n == 1 else 1)
_split_along("vsplit", 2, lambda n: 0)
_split_along("dsplit", 3, lambda n: 2)


# ---- grids --------------------------------------------------------------------------------------


@face("meshgrid", method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    """Coordinate grids of vectors, as expanded views; `indexing` "ij" (matrix) or "xy"."""
    vectors = list(_many(tensors))
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        warn_user(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument.",
        )
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    for v in vectors:
        if v._a.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {v!r}"
            )
        if v._k.dtype is not vectors[0]._k.dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(vectors) > 1
    if swap:
        vectors[:2] = vectors[1::-1]
    shape = tuple(v._a.size for v in vectors)
    n = len(shape)
    grids = [
        aten.expand(aten.view(v, (1,) * i + (-1,) + (1,) * (n - i - 1)), shape)
        for i, v in enumerate(vectors)
    ]
    if swap:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@face("cartesian_prod", method=False)
def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of the vectors' elements, a row each."""
    vectors = _many(tensors)
    for v in vectors:
        if v._a.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(v._a.shape)}")
    if len(vectors) == 1:
        return vectors[0]
    grids = meshgrid.body(*vectors, indexing="ij")
    return aten.stack([aten.reshape(t, (-1,)) for t in grids], 1)


@composite(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", method=False
)
def combinations(self: Any, r: int, with_replacement: bool) -> Any:
    """All choices of r elements of a vector in order, a row each."""
    if self._a.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self._a.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return aten.new_empty(self, (0,))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(self._a.size), r)), np.int64).reshape(-1, r)
    where = aten.to(fresh(aten.from_numpy(rows)), device=self._k.device)
    return aten.index(self, [where])


@face("block_diag", method=False, autocast="off")
def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal, zeros elsewhere."""
    parts = [_two(t) for t in _many(tensors)] if tensors else [aten.zeros((1, 0))]
    for i, p in enumerate(parts):
        if p._a.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
                f"{p._a.ndim} dimensions"
            )
    columns = sum(p._a.shape[1] for p in parts)
    rows, at = [], 0
    for p in parts:
        rows.append(aten.constant_pad_nd(p, (at, columns - at - p._a.shape[1]), 0))
        at += p._a.shape[1]
    return aten.cat(rows, 0)
