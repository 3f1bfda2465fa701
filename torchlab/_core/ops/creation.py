"""New tensors: from sizes, from Python data, from NumPy.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#creation-ops
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core.dispatch import compute
from torchlab._core.dispatch.arguments import check_ints
from torchlab._core.dispatch.factories import fresh
from torchlab._core.dispatch.modes import SLOW, as_subclass
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import preserve_format
from torchlab._core.ops._data import array_of, from_array
from torchlab._core.ops._makers import maker
from torchlab._core.ops._making import COO, How, finish, format_strides
from torchlab._core.settings import warn_user
from torchlab._core.tensor import Tensor


@maker("empty", quick=np.empty, out=True, memory_format=True)
def empty(how: How, size: Any, *more: Any) -> Any:
    """An uninitialised tensor of the given sizes."""
    shape = how.sizes(size, more)
    if how.format is preserve_format and how.layout is None:
        raise RuntimeError("empty(): unsupported memory format Preserve: there is none to preserve")
    if how.out is not None:  # its elements stay as they are
        return finish(how.out.resize_(shape), how.grad)
    if how.layout is not None:
        return how.sparse("empty", shape)
    return how.done(how.empty(shape, how.kind, format_strides(shape, how.format)))


@maker("empty_permuted")
def empty_permuted(how: How, size: Any, physical_layout: Any) -> Any:
    """Uninitialised, dense, with the dimensions in memory from outside to inside as
    `physical_layout` names them."""
    check_ints("empty_permuted", "physical_layout", physical_layout)
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            "empty_permuted(): argument 'size' (position 1) must be tuple of ints, not"
            f" {type(size).__name__}"
        )
    shape, order = how.sizes(size), tuple(physical_layout)
    if len(order) != len(shape):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e."
            f" len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    for i, d in enumerate(order):
        if not 0 <= d < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got"
                f" {d} at index {i})"
            )
    if len(set(order)) != len(order):
        raise RuntimeError(f"Duplicate dim not allowed: physical_layout={list(order)}")
    if how.layout is not None and how.unlike(shape, "as_strided", compressed=True) is not None:
        raise RuntimeError(f"empty_permuted(): tensors of {how.layout} do not have strides")
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return how.done(how.empty(shape, how.kind, tuple(strides)))


@maker("empty_strided")
def empty_strided(how: How, size: Any, stride: Any) -> Any:
    """Uninitialised, with explicit strides (elements)."""
    check_ints("empty_strided", "size", size)
    check_ints("empty_strided", "stride", stride)
    shape, strides = how.sizes(tuple(size)), tuple(stride)
    if how.layout is not None:
        how.refuse("empty_strided")
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides"
            f" ({len(strides)})"
        )
    return how.done(how.empty(shape, how.kind, strides))


@maker("zeros", quick=np.zeros, out=True)
def zeros(how: How, size: Any, *more: Any) -> Any:
    """Zeros of the given sizes."""
    shape = how.sizes(size, more)
    if how.layout is not None and how.out is None:
        return how.sparse("zeros", shape)
    return how.filled(shape, 0, how.kind)


def _ones(shape: Any, dtype: Any) -> Any:
    a = np.empty(shape, dtype)  # (np.ones takes 0.7 us more)
    a.fill(1)
    return a


@maker("ones", quick=_ones, out=True)
def ones(how: How, size: Any, *more: Any) -> Any:
    """Ones of the given sizes."""
    shape = how.sizes(size, more)
    return _one_value(how, shape, 1) if how.layout is not None else how.filled(shape, 1, how.kind)


@maker("full", out=True)
def full(how: How, size: Any, fill_value: Any) -> Any:
    """One value everywhere; the type follows the value if not given."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()  # type: ignore[attr-defined]
    how.dtype = how.dtype or dt.of_scalar(fill_value)
    shape = how.sizes(size)
    if how.layout is not None:
        return _one_value(how, shape, fill_value)
    return how.filled(shape, compute.scalar_array(fill_value, how.dtype), how.dtype)


def _one_value(how: How, shape: Any, value: Any) -> Any:
    """`full` of another layout: a compressed tensor has the value at all of its no elements."""
    if how.layout is COO:
        raise RuntimeError("full(...) is not implemented for sparse layout")
    return how.sparse("empty", shape)


# ---- like another tensor ------------------------------------------------------------------------


@maker("empty_like", memory_format=True)
def empty_like(how: How, self: Any) -> Any:
    """Uninitialised, with the size and memory format of `input`."""
    return how.done(how.like(self))


def _filled_like(how: How, t: Any, value: Any) -> Any:
    r = how.like(t)
    if r._k.device.type != "meta":
        r._a.fill(value if value in (0, 1) else compute.scalar_array(value, r._k.dtype))
    return how.done(r)


@maker("full_like", memory_format=True)
def full_like(how: How, self: Any, fill_value: Any) -> Any:
    """One value everywhere, with the size, type and memory format of `input`."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()  # type: ignore[attr-defined]
    return _filled_like(how, self, fill_value)


@maker("zeros_like", memory_format=True)
def zeros_like(how: How, self: Any) -> Any:
    """Zeros with the size, type and memory format of `input`."""
    if how.layout is not None:
        how.formatless()
        return how.after(self).sparse("zeros", self._a.shape)
    return _filled_like(how, self, 0)


@maker("ones_like", memory_format=True)
def ones_like(how: How, self: Any) -> Any:
    """Ones with the size, type and memory format of `input`."""
    return _filled_like(how, self, 1)


# ---- of another tensor's type -------------------------------------------------------------------


@maker("new_empty", method=True, spaces=())
def new_empty(how: How, self: Any, size: Any, *more: Any) -> Any:
    """As `empty`, with this tensor's type and device by default."""
    return empty.written(how.after(self), size, *more)


@maker("new_zeros", method=True, spaces=())
def new_zeros(how: How, self: Any, size: Any, *more: Any) -> Any:
    """As `zeros`, with this tensor's type and device by default."""
    return zeros.written(how.after(self), size, *more)


@maker("new_ones", method=True, spaces=())
def new_ones(how: How, self: Any, size: Any, *more: Any) -> Any:
    """As `ones`, with this tensor's type and device by default."""
    return new_full.written(how, self, how.sizes(size, more), 1)


@maker("new_full", method=True, spaces=())
def new_full(how: How, self: Any, size: Any, fill_value: Any) -> Any:
    """As `full`, with this tensor's type and device by default."""
    how.after(self)
    if how.layout is not None:
        return how.unlike(how.sizes(size), "fill_.Scalar", compressed=True)
    return full.written(how, size, fill_value)


@maker("new_empty_strided", method=True, spaces=())
def new_empty_strided(how: How, self: Any, size: Any, stride: Any) -> Any:
    """As `empty_strided`, with this tensor's type and device by default."""
    return empty_strided.written(how.after(self), size, stride)


# ---- from data ----------------------------------------------------------------------------------


@face("from_numpy", method=False)
def from_numpy(ndarray: Any, /) -> Any:
    """A tensor over the same memory as a NumPy array. Raises ValueError for negative strides and
    foreign byte order, TypeError for types that tensors do not have."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return finish(from_array(ndarray))


@face("tensor", method=False)
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A new tensor with a copy of the data: numbers, nested sequences, arrays, tensors."""
    if pin_memory is not False or (dtype is not None and type(dtype) is not dt.dtype):
        how = How("tensor", None, dtype, None, device, requires_grad, pin_memory)
        dtype = how.dtype
        if how.pinned:
            return _pinned_copy(how, data)
    if isinstance(data, Tensor):
        warn_user(
            "To copy construct from a tensor, it is recommended to use"
            " sourceTensor.detach().clone() or"
            " sourceTensor.detach().clone().requires_grad_(True), rather than"
            " torch.tensor(sourceTensor).",
        )
        if type(data) is not Tensor and not (data._level or data._exotic):
            data = as_subclass(data, Tensor)  # a plain one comes out, whatever the class
        r = aten.clone(aten.detach(data))
        r = aten.to(r, device=device, dtype=dtype)
        return finish(r, requires_grad)
    a = array_of(data, dtype, "tensor")
    dev = devices.as_device(device)
    t = compute.wrap_on(a, dev)
    if SLOW:
        t = fresh(t)
    return finish(t, requires_grad)


def _pinned_copy(how: How, data: Any) -> Any:
    if isinstance(data, Tensor | np.ndarray):
        what = "a variable" if isinstance(data, Tensor) else "numpy"
        raise RuntimeError(f"tensor(): Can't pin tensor constructed from {what}")
    a = array_of(data, how.dtype, "tensor")
    t = how.around(a, dt.from_numpy(a.dtype))
    return fresh(t) if SLOW else t


@face("new_tensor", spaces=())
def new_tensor(
    self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """As `tensor`, with this tensor's type and device by default."""
    return tensor.body(
        data,
        dtype=dtype or self._k.dtype,
        device=device if device is not None else self._k.device,
        requires_grad=requires_grad,
    )


@maker("scalar_tensor")
def scalar_tensor(how: How, s: Any) -> Any:
    """A 0-d tensor of the default type; always a strided one."""
    return tensor.body(
        s, dtype=how.kind, device=how.place, requires_grad=how.grad, pin_memory=how.pinned
    )


@face("as_tensor", method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """As `tensor`, but shares memory with tensors and NumPy arrays where possible."""
    if dtype is not None and type(dtype) is not dt.dtype:
        dtype = How("as_tensor", None, dtype).dtype
    if isinstance(data, Tensor):
        return (
            aten.to(data, dtype=dtype, device=device)
            if dtype is not None or device is not None
            else data
        )
    if isinstance(data, np.ndarray):
        t = from_array(data, "as_tensor")
        return (
            aten.to(t, dtype=dtype, device=device) if dtype is not None or device is not None else t
        )
    return tensor.body(data, dtype=dtype, device=device)
