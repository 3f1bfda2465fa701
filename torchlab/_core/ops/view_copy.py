"""What a view shows as a copy, and a copy in which that part is replaced.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.select_scatter.html
and its neighbours
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import compute
from torchlab._core.dispatch.generate.source import compile_source
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import contiguous_format
from torchlab._core.ops._places import elements
from torchlab._core.ops._renamed import renamed
from torchlab._core.tape import AccumulateGrad, Node
from torchlab._core.tensor import strides_of

_UNRECORDED = ("out_unrecorded", "out_same_dtype")


def _like(a: Any, *rest: Any) -> Any:
    return MetaArray(a.shape, a.dtype)


@op(
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    half=False,
    out=True,
    method=False,
    tags=_UNRECORDED,
    grad_name="DiagonalBackward0_copy",
    vjp={"self": "diagonal_backward(g, self.shape, offset, dim1, dim2)"},
    meta=lambda a, *rest: MetaArray(layout.diagonal(a.shape, elements(a), 0, *rest)[0], a.dtype),
)
def diagonal_copy(xp: Any, a: Any, offset: int, dim1: int, dim2: int) -> Any:
    """`diagonal`, copied."""
    shape, strides, start = layout.diagonal(a.shape, elements(a), 0, offset, dim1, dim2)
    if 0 in shape:
        return xp.empty(shape, a.dtype)
    return xp.diagonal(a, offset, dim1, dim2).copy(order="C")


def _apart(view: Any, x: Any, name: str | None = None) -> Any:
    """A view's elements in memory of their own: its node, under another name, made them."""
    e = view._e
    if view is x or not isinstance(e, Node) or isinstance(e, AccumulateGrad):
        return aten.clone(view, memory_format=contiguous_format)
    if view._k.dtype.is_complex and type(e).__name__ == "SelectBackward0" and name is None:
        raise RuntimeError(
            "select_copy does not support automatic differentiation for outputs with complex dtype."
        )
    r = aten.clone(aten.detach(view), memory_format=contiguous_format)
    r._e = renamed(e, name or f"{type(e).__name__}_copy")
    e.k = r._k
    return r


def _copied(view: str, parameters: str) -> None:
    """`<view>_copy`, with PyTorch's `parameters` as one writes them in Python."""

    def copy(self: Any, *args: Any, out: Any = None) -> Any:
        owner = self if view in methods else None
        r = getattr(owner, view)(*args) if owner is not None else getattr(aten, view)(self, *args)
        if isinstance(r, (tuple, list)):
            r = tuple(aten.clone(t, memory_format=contiguous_format) for t in r)
            if out is None:
                return r
            for o, t in zip(out, r, strict=True):
                o.resize_(t.shape).copy_(t)
            return None
        return _apart(r, self)

    methods = ("unfold", "expand", "view")  # names that are other functions, or none, elsewhere
    several = view in ("unbind", "split", "split_with_sizes")
    given = "".join(p.partition("=")[0] + ", " for p in parameters.split(", ") if p)
    shown = f"self, {parameters}{', ' if parameters else ''}" + ("*, out=None" if several else "")
    into = "out=out" if several else ""
    source = f"def {view}_copy({shown}):\n    return copy_{view}(self, {given}{into})\n"
    body = compile_source(f"{view}_copy", source, {f"copy_{view}": copy}, f"{view}_copy")
    body.__doc__ = f"`{view}`, copied."
    face(f"{view}_copy", method=False, out=not several, tags=_UNRECORDED)(body)


@face("narrow_copy", out=True)
def narrow_copy(self: Any, dim: int, start: int, length: int) -> Any:
    """`narrow`, copied."""
    if self._a.ndim and dim >= self._a.ndim:
        raise RuntimeError(
            f"narrow_copy(): Expected dim < {self._a.ndim} for a tensor of shape"
            f" {list(self._a.shape)}, but got dim={dim}"
        )
    return _apart(aten.narrow(self, dim, start, length), self, "NarrowCopyBackward0")


for _view, _parameters in {
    "permute": "dims",
    "squeeze": "dim=None",
    "unsqueeze": "dim",
    "transpose": "dim0, dim1",
    "t": "",
    "unbind": "dim=0",
    "expand": "size",
    "view": "size",
    "select": "dim, index",
    "slice": "dim=0, start=None, end=None, step=1",
    "split": "split_size, dim=0",
    "split_with_sizes": "split_sizes, dim=0",
    "as_strided": "size, stride, storage_offset=None",
    "unfold": "dimension, size, step",
    "alias": "",
    "detach": "",
}.items():
    _copied(_view, _parameters)


# ---- a tensor with a part replaced --------------------------------------------------------------


def _scattered(
    name: str, view: str, arguments: str, values: str, zero: str, tags: tuple[str, ...] = ()
) -> None:
    """`<view>_scatter`: a copy in which the part that the view shows is `src`."""

    def kernel(xp: Any, a: Any, src: Any, *rest: Any) -> Any:
        r = a.copy(order="C")
        t = compute.wrap(r) if xp is np else aten.as_tensor(r)
        part = getattr(aten, view)(t, *rest)._a
        if part.shape != src.shape:
            raise RuntimeError(
                f"{name}: expected src to have a size equal to the slice of self. src size = "
                f"{list(src.shape)}, slice "
                f"size = {list(part.shape)}"
            )
        part[...] = src
        return r

    kernel.__doc__ = f"self with the part that `{view}` shows replaced by src; a copy."
    op(
        f"{name}(Tensor self, Tensor src, {arguments}) -> Tensor",
        half=False,
        out=True,
        meta=_like,
        vjp={"self": zero, "src": f"{view}(g, {values})"},
        tags=tags,
    )(kernel)


_scattered(
    "select_scatter",
    "select",
    "int dim, SymInt index",
    "dim, index",
    "select_scatter(g, new_zeros(g, src.shape), dim, index)",
    tags=("real_gradient",),
)
_scattered(
    "slice_scatter",
    "slice",
    "int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1",
    "dim, start, end, step",
    "slice_scatter(g, new_zeros(g, src.shape), dim, start, end, step)",
    tags=("real_gradient", "out_unrecorded"),
)
_scattered(
    "diagonal_scatter",
    "diagonal",
    "int offset=0, int dim1=0, int dim2=1",
    "offset, dim1, dim2",
    "diagonal_scatter(g, new_zeros(g, src.shape), offset, dim1, dim2)",
)


@face("as_strided_scatter", out=True)
def as_strided_scatter(
    self: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None
) -> Any:
    """A copy with the same strides, in which what `as_strided` shows is `src`."""
    contiguous = self._k.contiguous
    if self.requires_grad and not contiguous:
        raise RuntimeError(
            "as_strided_scatter is currently only supported for contiguous inputs that require"
            f" grad, but got shape {list(self._a.shape)} with strides {list(strides_of(self))}"
        )
    offset = self.storage_offset() if storage_offset is None else storage_offset
    window = aten.as_strided(aten.detach(self), size, stride, offset)  # checks the arguments
    if window._a.shape != src._a.shape:
        raise RuntimeError(
            "as_strided_scatter: expected src to have a size equal to the slice of self. src size ="
            f" {list(src._a.shape)}, slice size = {list(window._a.shape)}"
        )
    if contiguous:
        start = self.storage_offset()
        whole = aten.clone(self)
        if offset < start or _reach(size, stride, offset) > start + self._a.size:
            raise RuntimeError(
                "as_strided_scatter: the part to replace lies outside of the tensor; clone() it"
                f" first (offset {offset}, size {list(size)}, stride {list(stride)})"
            )
        aten.as_strided(whole, size, stride, offset - start).copy_(src)
        return whole
    own = (tuple(self._a.shape), strides_of(self), self.storage_offset())
    cells = max(_reach(*own), _reach(size, stride, offset))
    memory = aten.clone(aten.as_strided(self, (cells,), (1,), 0))
    aten.as_strided(memory, size, stride, offset).copy_(src)
    return aten.as_strided(memory, *own)


def _reach(size: Any, stride: Any, offset: int) -> int:
    """One more than the last cell that a strided view shows."""
    if 0 in tuple(size):
        return offset
    return offset + 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


# ---- positions ----------------------------------------------------------------------------------


def _cells(size: Any, strides: Any, offset: int) -> Any:
    """The place in memory of every element, in elements."""
    at = np.asarray(offset, np.int64)
    for i, (n, s) in enumerate(zip(size, strides, strict=True)):
        at = at + (np.arange(n, dtype=np.int64) * s).reshape((n,) + (1,) * (len(size) - i - 1))
    return np.broadcast_to(at, tuple(size)).ravel()


@face("strided_positions", method=False, spaces=())
def strided_positions(
    base_size: Any, base_stride: Any, base_offset: int, size: Any, stride: Any, offset: int
) -> Any:
    """For each element of a strided view, the row-major number of the base's element in the same
    cell.
    """
    cells = _cells(base_size, base_stride, base_offset)
    order = np.argsort(cells, kind="stable")
    wanted = _cells(size, stride, offset)
    found = np.searchsorted(cells[order], wanted)
    return aten.from_numpy(order[found] if wanted.size else np.empty(0, np.int64))
