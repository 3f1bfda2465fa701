"""Views: new shapes and strides over the same memory.

Each declaration has a kernel on strided arrays and, as its meta rule, the layout function that
tells shape, strides and offset; generated tests hold one against the other.
Source of the semantics: https://docs.pytorch.org/docs/2.13/tensor_view.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.arguments import check_ints, dtype_of
from torchlab._core.dispatch.generate.source import NAMESPACE
from torchlab._core.dispatch.op import Op, composite, face, view
from torchlab._core.dispatch.registry import alias, aten
from torchlab._core.dispatch.viewing import alias as alias_of
from torchlab._core.formats import contiguous_format
from torchlab._core.kind import kind
from torchlab._core.settings import warn_user
from torchlab._core.tape import geometry, storage_of
from torchlab._core.tensor import Tensor, strides_of

ndarray = np.ndarray
as_strided_np = np.lib.stride_tricks.as_strided


def elements(a: Any) -> tuple[int, ...]:
    """The strides of an array in elements."""
    size = a.itemsize
    return tuple(x // size for x in a.strides)


def restride(a: Any, shape: Any, strides: Any, offset: int = 0) -> Any:
    """An array over the same memory; `strides` in elements, `offset` in elements from a's first."""
    size = a.itemsize
    if offset and a.size:
        a = np.ndarray((), a.dtype, _bytes_from(a, offset), 0)
    return as_strided_np(a, shape, tuple(x * size for x in strides))


_relaid: dict[Any, Any] = {}  # (rule, shape, strides in bytes, itemsize, arguments) → layout


def relaid(xp: Any, a: Any, rule: Any, *args: Any) -> Any:
    """The array over a's memory with the layout `rule(shape, strides, *args)`. Rules are pure: what
    they said is remembered, which is four times faster than to ask again."""
    key = (rule, a.shape, a.strides, a.itemsize, args)
    found = _relaid.get(key)
    if found is None:
        shape, strides = rule(a.shape, elements(a), *args)
        if len(_relaid) > 4096:
            _relaid.clear()
        found = _relaid[key] = tuple(shape), tuple(x * a.itemsize for x in strides)
    if xp is np and a.flags.c_contiguous and a.dtype.isbuiltin == 1:
        return np.ndarray(found[0], a.dtype, a, 0, found[1])  # as_strided takes four times as long
    return as_strided_np(a, *found)


def _bytes_from(a: Any, offset: int) -> Any:
    class Holder:
        __slots__ = ("__array_interface__", "owner")

    h = Holder()
    face_ = a.__array_interface__
    h.owner = a
    h.__array_interface__ = {
        "data": (face_["data"][0] + offset * a.itemsize, face_["data"][1]),
        "shape": (a.itemsize,),
        "typestr": "|u1",
        "version": 3,
    }
    return np.asarray(h)


def _layout(rule: Any, *, offset: bool = False, op: str = "") -> Any:
    """A meta rule from a layout function with or without the offset."""
    if offset:
        return lambda shape, strides, off, *args: rule(shape, strides, off, *args, op=op)
    return lambda shape, strides, off, *args: (*rule(shape, strides, *args, op=op), off)


def _sizes(size: Any) -> tuple[int, ...]:
    if type(size) is tuple:
        for x in size:
            if type(x) is not int:
                break
        else:
            return size
    return (size,) if isinstance(size, int) else tuple(map(layout.as_size, size))


def _as_type(self: Any, size: Any, dtype: Any) -> Any:
    """`x.view(dtype)`: the same bytes read as another type."""
    if size is None and dtype is None:
        raise TypeError("view() received no arguments: give the sizes, or a dtype")
    if size is not None and dtype is not None:
        raise TypeError(f"view() received sizes {size} and a dtype {dtype}: give one of them")
    return view_dtype(self, dtype_of(dtype or size))


@view(
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    varargs=True,
    instead=("dtype", dt.dtype, _as_type),
    spaces=(),
    meta=lambda shape, strides, off, size: (
        *layout.view(shape, strides, _sizes(size), op="view"),
        off,
    ),
    # (of one element NumPy would not keep the steps, which `partly_overlaps` compares)
    inline=("k.fast and a_.size != 1", "a_.reshape(size)", "k"),
    grad_name="ViewBackward0",
    vjp={"self": "reshape(g, self.shape)"},
)
def view_(xp: Any, a: Any, size: Any) -> Any:
    """The same elements in another shape; RuntimeError if that needs a copy."""
    return relaid(xp, a, _view_rule, _sizes(size))


def _view_rule(shape: Any, strides: Any, size: Any) -> Any:
    return layout.view(shape, strides, size, op="view")


def view_dtype(self: Any, dtype: Any) -> Any:
    """The same bytes as another type; sizes of elements may differ in the last dimension."""
    new, old = dtype.itemsize, self._k.itemsize
    if new != old:
        if self._a.ndim == 0:
            raise RuntimeError(
                f"self.dim() cannot be 0 to view {self.dtype} as {dtype} (different element sizes)"
            )
        if strides_of(self)[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {self.dtype} as {dtype} (different element"
                f" sizes), but got {strides_of(self)[-1]}"
            )
        for d, stride in enumerate(strides_of(self)[:-1]):
            if new > old and stride % (new // old):
                raise RuntimeError(
                    f"self.stride({d}) must be divisible by {new // old} to view {self.dtype} as"
                    f" {dtype} (different element sizes), but got {stride}"
                )
        if new > old and geometry(self)[2] % (new // old):
            raise RuntimeError(
                f"self.storage_offset() must be divisible by {new // old} to view {self.dtype} as"
                f" {dtype} (different element sizes), but got {geometry(self)[2]}"
            )
        if new > old and self._a.shape[-1] % (new // old):
            raise RuntimeError(
                f"self.size(-1) must be divisible by {new // old} to view {self.dtype} as {dtype}"
                f" (different element sizes), but got {self._a.shape[-1]}"
            )
    r = alias_of(self)
    r._v = None  # no gradient passes here
    r._a = self._a.view(dtype.np)
    k = kind(dtype, self._k.device)
    r._k = k if r._a.flags.c_contiguous else k.v
    return r


@composite("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", varargs=True)
def reshape(self: Any, shape: Any) -> Any:
    """A view in the new shape if the strides allow it, else a copy."""
    a = self._a
    if self._k.contiguous:
        return view_.call(self, _sizes(shape))
    shape = layout.infer_size(_sizes(shape), a.size)
    strides = strides_of(self)
    if layout.view_strides(a.shape, strides, shape) is not None:
        if self._exotic and layout.is_contiguous(a.shape, strides):  # of a pending conjugation
            return view_.call(self, shape)
        return reshape_alias.call(self, shape)
    return unsafe_view.call(aten.clone(self, memory_format=contiguous_format), shape)


reshape_alias = Op(
    "_reshape_alias(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    family="view",
    kernel=view_.kernel,
    meta=view_.meta,
    vjp={"self": "reshape(g, self.shape)"},
    public=False,
    grad_name="ReshapeAliasBackward0",
)
unsafe_view = Op(
    "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    family="view",
    kernel=view_.kernel,
    meta=view_.meta,
    vjp={"self": "reshape(g, self.shape)"},
    public=False,
    grad_name="UnsafeViewBackward0",
)


@composite("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", spaces=())
def view_as(self: Any, other: Any) -> Any:
    """`self.view(other.shape)`."""
    return view_.call(self, other._a.shape)


@composite("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", spaces=())
def reshape_as(self: Any, other: Any) -> Any:
    """`self.reshape(other.shape)`."""
    return reshape.call(self, other._a.shape)


@composite("flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
def flatten(self: Any, start_dim: int, end_dim: int) -> Any:
    """Dimensions start_dim … end_dim become one."""
    if self._a.ndim == 0:
        layout.wrap_dim(start_dim, 0), layout.wrap_dim(end_dim, 0)
        return reshape.call(self, (1,))
    shape = layout.flatten_shape(self._a.shape, start_dim, end_dim)
    return self if shape == self._a.shape else reshape.call(self, shape)


@composite("ravel(Tensor(a) self) -> Tensor(a)")
def ravel(self: Any) -> Any:
    """One dimension, row-major: a view where the memory is so already."""
    return reshape.call(aten.contiguous(self), (-1,))


@composite("unflatten(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)")
def unflatten(self: Any, dim: int, sizes: Any) -> Any:
    """One dimension becomes several."""
    return view_.call(self, layout.unflatten_shape(self._a.shape, dim, tuple(sizes)))


@view(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    varargs=True,
    meta=lambda shape, strides, off, dims: (*layout.permute(shape, strides, _sizes(dims)), off),
    vjp={"self": "permute(g, inverse_permutation(dims))"},
)
def permute(xp: Any, a: Any, dims: Any) -> Any:
    """Reorder the dimensions."""
    if len(dims) != a.ndim or len({d % a.ndim for d in dims} if a.ndim else ()) != a.ndim:
        layout.permute(a.shape, elements(a), _sizes(dims))
    layout.wrap_dims(dims, a.ndim)
    return a.transpose(dims)


@view(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    inline=("a_.ndim", "a_.swapaxes(dim0, dim1)", ""),
    meta=_layout(layout.transpose),
    vjp={"self": "transpose(g, dim0, dim1)"},
)
def transpose(xp: Any, a: Any, dim0: int, dim1: int) -> Any:
    """Swap two dimensions."""
    n = a.ndim
    if n == 0:
        layout.wrap_dim(dim0, 0)
        layout.wrap_dim(dim1, 0)
        return a.view()
    try:
        return a.swapaxes(dim0, dim1)
    except (ValueError, TypeError):
        layout.wrap_dim(dim0, n)
        layout.wrap_dim(dim1, n)
        raise


@composite("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
def swapaxes(self: Any, axis0: int, axis1: int) -> Any:
    """`transpose` with NumPy's name."""
    return transpose.call(self, axis0, axis1)


alias("swapdims", "transpose")


def _t_rule(shape: Any, strides: Any, off: int) -> Any:
    if len(shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(shape)}D")
    return (shape[::-1], strides[::-1], off)


@view(
    "t(Tensor(a) self) -> Tensor(a)",
    meta=_t_rule,
    vjp={"self": "t(g)"},
    inline=("a_.ndim <= 2", "a_.T", ""),
)
def t(xp: Any, a: Any) -> Any:
    """The transpose of a matrix; vectors stay."""
    if a.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {a.ndim}D")
    return a.T


@face("adjoint")
def adjoint(self: Any) -> Any:
    """The conjugate transpose of the last two dimensions."""
    n = self._a.ndim
    if n == 0:
        warn_user(
            "adjoint() is deprecated on 0-D tensors. Consider using x.conj().",
        )
        return aten.conj(self)
    if n == 1:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    return aten.conj(transpose.call(self, -2, -1))


def _squeeze(xp: Any, a: Any, dim: Any = None) -> Any:
    return relaid(xp, a, layout.squeeze, dim)


def _squeeze_rule(shape: Any, strides: Any, off: int, dim: Any = None) -> Any:
    return (*layout.squeeze(shape, strides, dim), off)


squeeze_all, squeeze_dim, squeeze_dims = (
    Op(
        text,
        family="view",
        kernel=_squeeze,
        meta=_squeeze_rule,
        public=False,
        grad_name=f"SqueezeBackward{i}",
        vjp={"self": "unsqueeze_as(g, self.shape, None)"},
    )
    for i, text in enumerate(
        (
            "squeeze(Tensor(a) self) -> Tensor(a)",
            "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
            "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
        )
    )
)


def _squeeze_method(self: Any, dim: Any = None, *more: int) -> Any:
    """Drop dimensions of size 1: all, or those named."""
    return squeeze.body(self, (dim, *more) if more else dim)


@face("squeeze", method=_squeeze_method)
def squeeze(self: Any, dim: Any = None) -> Any:
    """Drop dimensions of size 1: all, or those named."""
    if dim is None:
        return squeeze_all.call(self)
    return (
        squeeze_dim.call(self, dim) if isinstance(dim, int) else squeeze_dims.call(self, tuple(dim))
    )


@view(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    meta=_layout(layout.unsqueeze),
    vjp={"self": "squeeze(g, dim)"},
)
def unsqueeze(xp: Any, a: Any, dim: int) -> Any:
    """Insert a dimension of size 1."""
    return relaid(xp, a, layout.unsqueeze, dim)


_laid: dict[Any, Any] = {}  # (shape, strides in bytes, size) → the expanded layout


def _expanded(a: Any, size: Any) -> Any:
    """The kernel of `expand` for a contiguous host array of NumPy's own types: one look-up."""
    key = (a.shape, a.strides, size)
    found = _laid.get(key)
    if found is None:
        shape, strides = layout.expand(a.shape, elements(a), _sizes(size))
        if len(_laid) > 4096:
            _laid.clear()
        found = _laid[key] = tuple(shape), tuple(x * a.itemsize for x in strides)
    return ndarray(found[0], a.dtype, a, 0, found[1])


NAMESPACE["expanded_array"] = _expanded


@view(
    "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    varargs=True,
    spaces=(),
    meta=lambda shape, strides, off, size, implicit=False: (
        *layout.expand(shape, strides, _sizes(size)),
        off,
    ),
    inline=("k.fast", "expanded_array(a_, size)", ""),
    vjp={"self": "sum_to(g, self.shape)"},
)
def expand(xp: Any, a: Any, size: Any, implicit: bool) -> Any:
    """Repeat dimensions of size 1 without copying (stride 0); −1 keeps a size."""
    return relaid(xp, a, layout.expand, _sizes(size))


@composite("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", spaces=())
def expand_as(self: Any, other: Any) -> Any:
    """`self.expand(other.shape)`."""
    return expand.call(self, other._a.shape)


@composite("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", varargs=True)
def broadcast_to(self: Any, size: Any) -> Any:
    """As `expand`."""
    return expand.call(self, tuple(size))


@view(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    meta=_layout(layout.select, offset=True),
    vjp={"self": "select_backward(g, self.shape, dim, index)"},
)
def select(xp: Any, a: Any, dim: int, index: int) -> Any:
    """The slice at `index` of a dimension, which disappears."""
    if not (-a.ndim <= dim < a.ndim and -a.shape[dim] <= index < a.shape[dim]):
        layout.select(a.shape, elements(a), 0, dim, index)
    if dim < 0:
        dim += a.ndim
    return a[(*(slice(None),) * dim, index, ...)]


@view(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)"
    " -> Tensor(a)",
    public=False,
    meta=_layout(layout.slice_, offset=True),
    vjp={"self": "slice_backward(g, self.shape, dim, start, end, step)"},
)
def slice_(xp: Any, a: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    """start … end of one dimension in steps."""
    if step <= 0:
        layout.slice_(a.shape, elements(a), 0, dim, start, end, step)
    dim = layout.wrap_dim(dim, a.ndim)
    return a[(*(slice(None),) * dim, slice(start, end, step))]


@composite(
    "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    tags=("tensor_for_number",),  # narrow.Tensor
)
def narrow(self: Any, dim: int, start: int, length: int) -> Any:
    """`length` entries of one dimension from `start`."""
    if isinstance(start, Tensor):
        if start._a.ndim or start._k.dtype.category != dt.INT:
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = start.item()  # type: ignore[attr-defined]
    if self._a.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self._a.shape[layout.wrap_dim(dim, self._a.ndim)]
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_.call(self, dim, start, start + length, 1)


@view(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    spaces=(),
    meta=_layout(layout.unfold),
    vjp={"self": "unfold_backward(g, self.shape, dimension, size, step)"},
)
def unfold(xp: Any, a: Any, dimension: int, size: int, step: int) -> Any:
    """All windows of `size` along a dimension, as a new last dimension."""
    return relaid(xp, a, layout.unfold, dimension, size, step)


@view(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    meta=_layout(layout.diagonal, offset=True),
    vjp={"self": "diagonal_backward(g, self.shape, offset, dim1, dim2)"},
)
def diagonal(xp: Any, a: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of two dimensions, as the last one."""
    shape, strides, start = layout.diagonal(a.shape, elements(a), 0, offset, dim1, dim2)
    return restride(a, shape, strides, start)


@face("movedim")
def movedim(self: Any, source: Any, destination: Any) -> Any:
    """Move dimensions to new places, the others keep their order."""
    check_ints("movedim", "source", source)
    check_ints("movedim", "destination", destination)
    n = self._a.ndim
    given = (source, destination)
    if n == 0 and isinstance(source, int) and isinstance(destination, int):
        for d in given:
            layout.wrap_dim(d, 0)
        return aten.alias(self)
    if isinstance(source, int) != isinstance(destination, int):
        raise TypeError(
            "movedim(): source and destination must both be int or both tuples of ints, but got"
            f" {type(source).__name__} and {type(destination).__name__}"
        )
    source, destination = ((x,) if isinstance(x, int) else tuple(x) for x in given)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should"
            f" contain the same number of dims as destination ({list(destination)} dims)"
        )
    for name, dims in (("source", source), ("destination", destination)):
        wrapped = [layout.wrap_dim(d, n) for d in dims]
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    source, destination = layout.wrap_dims(source, n), layout.wrap_dims(destination, n)
    rest = [d for d in range(n) if d not in source]
    order = [-1] * n
    for s, d in zip(source, destination, strict=True):
        order[d] = s
    left = iter(rest)
    return permute.call(self, tuple(next(left) if d < 0 else d for d in order))


alias("moveaxis", "movedim")


@view("detach(Tensor(a) self) -> Tensor(a)", meta=lambda shape, strides, off: (shape, strides, off))
def detach(xp: Any, a: Any) -> Any:
    """The same memory without history."""
    return a


@view(
    "alias(Tensor(a) self) -> Tensor(a)",
    public=False,
    vjp={"self": "g"},
    meta=lambda shape, strides, off: (shape, strides, off),
)
def alias_op(xp: Any, a: Any) -> Any:
    """The same memory, on the tape."""
    return a


@face("as_strided")
def as_strided(self: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Any shape and strides over the tensor's *storage*; `storage_offset` counts from the storage's
    beginning (default: the tensor's own)."""
    size, stride = _sizes(size), _sizes(stride)
    if len(size) != len(stride):
        raise RuntimeError(
            f"mismatch in length of strides and shape: {len(stride)} and {len(size)}"
        )
    if any(s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(stride)}"
        )
    own = geometry(self)[2]
    offset = own if storage_offset is None else storage_offset
    if offset < 0:
        raise RuntimeError(f"as_strided: storage_offset must be non-negative, got {offset}")
    item = self._k.itemsize
    if type(self._a) is not MetaArray and not self._level:
        layout.as_strided_check(size, stride, offset, storage_of(self).nbytes, item)
    return as_strided_op.call(self, size, stride, offset - own)


@view(
    "as_strided.relative(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt relative) ->"
    " Tensor(a)",
    public=False,
    meta=lambda shape, strides, off, size, stride, rel: (tuple(size), tuple(stride), off + rel),
    vjp={
        "self": "as_strided_relative_backward(g, self.shape, self.strides, size, stride, relative)"
    },
    grad_name="AsStridedBackward0",
)
def as_strided_op(xp: Any, a: Any, size: Any, stride: Any, relative: int) -> Any:
    """`as_strided` with the offset counted from the tensor's first element."""
    return restride(a, size, stride, relative)
