"""Changing a tensor itself: filling it, and giving it another size, layout or memory.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.resize_.html
and its neighbours
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.base import empty_strided
from torchlab._core.backends.meta import MetaArray
from torchlab._core.device import device
from torchlab._core.dispatch import compute, modes, resizing, writes
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import alias, aten
from torchlab._core.formats import contiguous_format, preserve_format
from torchlab._core.hooks import keep_retaining
from torchlab._core.memory.storage import Storage, exchanged
from torchlab._core.ops._places import elements
from torchlab._core.ops._renamed import renamed
from torchlab._core.refusals import NORMAL
from torchlab._core.tape import (
    AccumulateGrad,
    NotImplementedNode,
    base_of,
    edge_of,
    leaf_changed,
    steps_of_leaf,
    storage_of,
    way_of,
)
from torchlab._core.tensor import Tensor, strides_of

# ---- filling ------------------------------------------------------------------------------------


def _like(a: Any, *rest: Any) -> Any:
    return MetaArray(a.shape, a.dtype, layout.empty_like_strides(a.shape, elements(a)))


def fill_value(value: Any, dtype: dt.dtype) -> Any:
    """A number as a 0-d array of the tensor's type; RuntimeError if it does not fit."""
    return compute.scalar_array(value, dtype)


@op(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    public=False,
    half=False,
    grad_name="FillBackward0",
    meta=_like,
    vjp={"self": "zeros_like(g)"},
)
def fill_scalar(xp: Any, a: Any, value: Any) -> Any:
    """A number everywhere."""
    return _filled(xp, a, fill_value(value, dt.from_numpy(a.dtype)))


@op(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    public=False,
    half=False,
    grad_name="FillBackward1",
    meta=_like,
    vjp={"self": "zeros_like(g)", "value": "sum(g)"},
)
def fill_tensor(xp: Any, a: Any, value: Any) -> Any:
    """The element of a 0-d tensor everywhere."""
    _zero_dim(value)
    return _filled(xp, a, value.astype(a.dtype))


def _filled(xp: Any, a: Any, value: Any) -> Any:
    r = empty_strided(a.shape, a.dtype, layout.empty_like_strides(a.shape, elements(a)), xp)
    r[...] = value
    return r


def _zero_dim(value: Any) -> None:
    if value.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} "
            "dimensions."
        )


# The in-place forms: other nodes in PyTorch. They may write through overlapping memory.
fill_scalar_into = op(
    "_fill.Scalar(Tensor self, Scalar value) -> Tensor",
    public=False,
    grad_name="FillBackward2",
    vjp={"self": "zeros_like(g)"},
    meta=_like,
)(fill_scalar.kernel)
fill_tensor_into = op(
    "_fill.Tensor(Tensor self, Tensor value) -> Tensor",
    public=False,
    grad_name="FillBackward3",
    vjp={"self": "zeros_like(g)", "value": "sum(g)"},
    meta=_like,
)(fill_tensor.kernel)
zero = op("zero(Tensor self) -> Tensor", public=False, vjp={"self": "zeros_like(g)"}, meta=_like)(
    lambda xp, a: _filled(xp, a, 0)
)


@face("fill", method=False)
def fill(self: Any, value: Any) -> Any:
    """A tensor like self with `value` (a number or a 0-d tensor) everywhere."""
    return (fill_tensor if isinstance(value, Tensor) else fill_scalar).call(self, value)


def _fill_into(chosen: Any, t: Any, array: Any, others: tuple[Any, ...]) -> Any:
    grad = writes.prepare_write(chosen, t, others)
    edges = (edge_of(t), *(edge_of(x) for x in others))
    if t._k.device.type != "meta":
        t._a[...] = array
    writes.wrote(t)
    if grad and any(e is not None for e in edges) and t._k.differentiable:
        node = chosen.node_class()
        node.next = edges
        node.shape, node.k = t._a.shape, t._k
        writes.rebase_history(t, node)
    return t


@face("fill_")
def fill_(self: Any, value: Any) -> Any:
    """Write `value` (a number or a 0-d tensor) everywhere; a number also into expanded tensors."""
    if (
        type(value) is float
        and -65504 <= value <= 65504  # fits every type
        and not modes.SLOW
        and self._v is None
        and self._e is None
        and self._k.fp
    ):
        self._a.fill(value)
        writes.wrote(self)
        return self
    chosen = fill_tensor_into if isinstance(value, Tensor) else fill_scalar_into
    if modes.SLOW and writes.slow_write(chosen):
        return writes.slow_inplace(chosen, fill_.body, (self, value), _fill)
    return _fill(self, value)


def _fill(self: Any, value: Any) -> Any:
    chosen = fill_tensor_into if isinstance(value, Tensor) else fill_scalar_into
    if isinstance(value, Tensor):
        _zero_dim(value._a)
        if not self._k.contiguous and not self._exotic:
            writes.check_memory(chosen, self, ())  # PyTorch copies a tensor, and fills in a number
        array = value._a.astype(self._k.np) if value._k.device.type != "meta" else 0
        return _fill_into(chosen, self, array, (value,))
    return _fill_into(chosen, self, fill_value(value, self._k.dtype), ())


@face("zero_")
def zero_(self: Any) -> Any:
    """Write zeros everywhere, also into expanded tensors."""
    if not modes.SLOW and self._v is None and self._e is None and self._k.plain:
        self._a.fill(0)
        writes.wrote(self)
        return self
    if modes.SLOW and writes.slow_write(zero):
        return writes.slow_inplace(zero, zero_.body, (self,), _zero)
    return _zero(self)


def _zero(self: Any) -> Any:
    return _fill_into(zero, self, 0, ())


# ---- another layout of the same elements --------------------------------------------------------


def _relaid(self: Any, view: Any, call: Any, args: tuple[Any, ...], number: str) -> Any:
    """Let `self` become the view of itself that `view(self, *args)` makes."""
    name = call.__name__
    writes.prepare_write(_NamedOp(name), self, ())
    before = edge_of(self)
    r = view(self, *args)
    e = r._e
    recorded = e is not None and e is not before and type(e) is not AccumulateGrad
    if recorded:
        keep_retaining(self)
        e = renamed(e, type(e).__name__[:-1] + number)
        self._e = e
    shape, k = self._a.shape, self._k
    steps = None
    if not self._a.size and type(before) is AccumulateGrad:  # NumPy's strides tell nothing
        m = compute.empty(shape, k.dtype, device("meta"), steps_of_leaf(self) or strides_of(self))
        steps = elements(view(m, *args)._a)
    self._a = r._a
    self._k = r._k
    if self._level:  # Note [Levels]
        self.take(r)
    writes.wrote(self)
    if not recorded:
        leaf_changed(self, shape, k, steps=steps)
    if recorded and self._v is not None:  # its history is that of its layout: it is up to date
        self._v = (base_of(self), NORMAL, self._s.version, way_of(self))
    return self


class _NamedOp:
    """Stands for an operator where only its name is asked for."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name.rstrip("_")


@face("unsqueeze_", spaces=())
def unsqueeze_(self: Any, dim: int) -> Any:
    """In-place version of `unsqueeze`."""
    return _relaid(self, aten.unsqueeze, unsqueeze_.body, (dim,), "1")


@face("squeeze_", spaces=())
def squeeze_(self: Any, dim: Any = None, *more: int) -> Any:
    """In-place version of `squeeze`."""
    dim = (dim, *more) if more else dim
    number = "3" if dim is None else "4" if isinstance(dim, int) else "5"
    return _relaid(self, aten.squeeze, squeeze_.body, () if dim is None else (dim,), number)


@face("transpose_", spaces=())
def transpose_(self: Any, dim0: int, dim1: int) -> Any:
    """In-place version of `transpose`."""
    return _relaid(self, aten.transpose, transpose_.body, (dim0, dim1), "1")


@face("swapaxes_", spaces=())
def swapaxes_(self: Any, axis0: int, axis1: int) -> Any:
    """In-place version of `swapaxes`."""
    return transpose_.body(self, axis0, axis1)


alias("swapdims_", "transpose_")


@face("t_", spaces=())
def t_(self: Any) -> Any:
    """In-place version of `t`."""
    return _relaid(self, aten.t, t_.body, (), "1")


@face("as_strided_")
def as_strided_(self: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """In-place version of `as_strided`."""
    return _relaid(self, aten.as_strided, as_strided_.body, (size, stride, storage_offset), "1")


# ---- another size or memory ---------------------------------------------------------------------


def _become(self: Any, array: Any, s: Storage | None, source: Any = None) -> Any:
    others = () if source is None else (source,)
    grad = writes.prepare_write(_NamedOp("set_"), self, others)
    edges = tuple(edge_of(t) for t in (self, *others))
    shape, k = self._a.shape, self._k
    writes.wrote(self)  # its views, and what the tape has saved, count it
    self._a = array
    before = self._s
    self._s = exchanged(before, Storage(array) if s is None else s)
    before.stale = self._s.stale = True  # a view stays one, with the history of a write
    self._k = self._k.c if array.flags.c_contiguous else self._k.v
    if grad and any(e is not None for e in edges):
        writes.rebase_history(self, NotImplementedNode("set_", self, edges))
    else:
        leaf_changed(self, shape, k, anew=True)
    return self


def _refuse_grad(self: Any) -> None:
    if edge_of(self) is not None:
        raise RuntimeError("cannot resize variables that require grad")


def _new_strides(shape: Any, memory_format: Any) -> Any:
    if memory_format is None or memory_format is contiguous_format:
        return layout.contiguous_strides(shape)
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory format Preserve: resize_ cannot keep a format")
    return layout.channels_last_strides(shape)


def _resized(self: Any, shape: tuple[int, ...], strides: Any) -> Any:
    if any(n < 0 for n in shape):
        raise RuntimeError(
            f"resize_: Trying to create tensor with negative dimension: {list(shape)}"
        )
    resizing.resize(self, shape, strides, "resize_")
    writes.wrote(self)
    return self


@face("resize_", spaces=())
def resize_(self: Any, size: Any, *more: Any, memory_format: Any = None) -> Any:
    """Another size for this tensor, in the same memory if that is large enough; else the memory
    grows, under its views too (the new elements are undefined)."""
    _refuse_grad(self)
    if more or not isinstance(size, (tuple, list)):
        size = (size, *more)
    shape = tuple(int(n) for n in size)
    if shape == self._a.shape and memory_format is None:
        return self
    return _resized(self, shape, _new_strides(shape, memory_format))


@face("resize_as_")
def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """The size of another tensor."""
    _refuse_grad(self)
    shape = the_template._a.shape
    if shape == self._a.shape and memory_format is None:
        return self
    if memory_format is preserve_format:
        return _resized(self, shape, strides_of(the_template))
    return _resized(self, shape, _new_strides(shape, memory_format))


@face("set_", spaces=())
def set_(
    self: Any, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Any:
    """Let this tensor use the memory, size and strides of another one (or of a storage with the
    given
    offset, size and strides). Without arguments: no memory, size (0,)."""
    k = self._k
    if source is None:
        return _become(self, np.empty((0,), k.np), None)
    if isinstance(source, Tensor):
        if source._k.dtype is not k.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}"
            )
        if source._k.device is not k.device:
            raise RuntimeError(
                f"Attempted to set the storage of a tensor on device {self.device} to one on "
                f"{source.device}"
            )
        s = storage_of(source)
        if size is None:
            array = source._a.memory if source._exotic else source._a
            return _become(self, array, s, source)
    else:
        found = getattr(source, "dtype", k.dtype)  # a typed storage has a type
        if found is not k.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {k.dtype.scalar_name} or an UntypedStorage, but got"
                f" type {found.scalar_name} for argument 1 'storage'"
            )
        s = source if isinstance(source, Storage) else source.untyped()._storage
    shape = tuple(size) if size is not None else (s.nbytes // k.itemsize,)
    strides = tuple(stride) if stride else layout.contiguous_strides(shape)
    layout.as_strided_check(shape, strides, storage_offset, s.nbytes, k.itemsize)
    source = source if isinstance(source, Tensor) else None
    return _become(self, resizing.array_over(s, shape, strides, storage_offset, k.np), s, source)
