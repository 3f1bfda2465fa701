"""New tensors: from sizes, from Python data, from NumPy.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#creation-ops
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core.dispatch import compute, exotic
from torchlab._core.dispatch.arguments import check_ints
from torchlab._core.dispatch.factories import fresh, told
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import preserve_format, strided
from torchlab._core.ops._data import array_of, from_array
from torchlab._core.ops._making import finish, format_strides, into_out, plain, sizes_of
from torchlab._core.tensor import Tensor

_cpu = devices.cpu


@face("empty", method=False)
def empty(
    size: Any,
    *more: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Any:
    """An uninitialised tensor of the given sizes."""
    size = (size, *more)
    if dtype is layout is device is out is memory_format is None and not requires_grad:
        t = plain(size, np.empty)
        if t is not None:
            return t
    if SLOW and (seen := told("empty", locals())) is not None:
        return seen
    shape = sizes_of(size)
    if layout is not None and layout is not strided:
        return exotic.LAYOUTS[layout]("empty", shape, dtype, device, requires_grad, layout)
    if out is not None:
        return out.resize_(shape)  # its elements stay as they are
    strides = format_strides(shape, memory_format)
    t = compute.empty(shape, dtype or dt.get_default_dtype(), devices.as_device(device), strides)
    return finish(t, requires_grad)


@face("empty_permuted", method=False)
def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Uninitialised, dense, with the dimensions in memory from outside to inside as
    `physical_layout` names them."""
    check_ints("empty_permuted", "physical_layout", physical_layout)
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            "empty_permuted(): argument 'size' (position 1) must be tuple of ints, not"
            f" {type(size).__name__}"
        )
    shape, order = sizes_of((size,), "empty_permuted"), tuple(physical_layout)
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
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    t = compute.empty(
        shape, dtype or dt.get_default_dtype(), devices.as_device(device), tuple(strides)
    )
    return finish(t, requires_grad)


def _filled(
    shape: Any,
    value: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    out: Any,
    strides: Any = None,
) -> Any:
    dev = devices.as_device(device)
    t = compute.empty(shape, dtype, dev, strides)
    if dev.type != "meta":
        t._a.fill(value)
    return into_out(t, out) if out is not None else finish(t, requires_grad)


@face("zeros", method=False)
def zeros(
    size: Any,
    *more: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Zeros of the given sizes."""
    size = (size, *more)
    if dtype is layout is device is out is None and not requires_grad:
        t = plain(size, np.zeros)
        if t is not None:
            return t
    if SLOW and (seen := told("zeros", locals())) is not None:
        return seen
    if layout is not None and layout is not strided:
        shape = sizes_of(size, "zeros")
        return exotic.LAYOUTS[layout]("zeros", shape, dtype, device, requires_grad, layout)
    return _filled(
        sizes_of(size, "zeros"), 0, dtype or dt.get_default_dtype(), device, requires_grad, out
    )


@face("ones", method=False)
def ones(
    size: Any,
    *more: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Ones of the given sizes."""
    size = (size, *more)
    if SLOW and (seen := told("ones", locals())) is not None:
        return seen
    if layout is not None and layout is not strided:
        shape = sizes_of(size, "ones")
        return exotic.LAYOUTS[layout]("ones", shape, dtype, device, requires_grad, layout)
    return _filled(
        sizes_of(size, "ones"), 1, dtype or dt.get_default_dtype(), device, requires_grad, out
    )


@face("full", method=False)
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """One value everywhere; the type follows the value if not given."""
    if SLOW and (seen := told("full", locals())) is not None:
        return seen
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()  # type: ignore[attr-defined]
    d = dtype or dt.of_scalar(fill_value)
    shape = sizes_of((size,) if not isinstance(size, int) else (size,), "full")
    if layout is not None and layout is not strided:
        return exotic.LAYOUTS[layout]("full", shape, d, device, requires_grad, layout)
    return _filled(shape, compute.scalar_array(fill_value, d), d, device, requires_grad, out)


def _like(t: Any, dtype: Any, device: Any, memory_format: Any) -> tuple[Any, Any, Any]:
    strides = format_strides(t._a.shape, memory_format or preserve_format, t)
    return dtype or t._k.dtype, device if device is not None else t._k.device, strides


@face("empty_like", method=False)
def empty_like(
    self: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Any:
    """Uninitialised, with the size and memory format of `input`."""
    if SLOW and (seen := told("empty_like", locals())) is not None:
        return seen
    if layout is not None and layout is not strided:
        d, shape = dtype or self._k.dtype, self._a.shape
        name = "empty_like"
        return exotic.LAYOUTS[layout](name, shape, d, device, requires_grad, layout)
    d, dev, strides = _like(self, dtype, device, memory_format)
    return finish(compute.empty(self._a.shape, d, devices.as_device(dev), strides), requires_grad)


@face("full_like", method=False)
def full_like(
    self: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Any:
    """One value everywhere, with the size, type and memory format of `input`."""
    if SLOW and (seen := told("full_like", locals())) is not None:
        return seen
    if layout is not None and layout is not strided:
        d, shape = dtype or self._k.dtype, self._a.shape
        name = "full_like"
        return exotic.LAYOUTS[layout](name, shape, d, device, requires_grad, layout)
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()  # type: ignore[attr-defined]
    d, dev, strides = _like(self, dtype, device, memory_format)
    return _filled(
        self._a.shape, compute.scalar_array(fill_value, d), d, dev, requires_grad, None, strides
    )


@face("zeros_like", method=False)
def zeros_like(
    self: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Any:
    """Zeros with the size, type and memory format of `input`."""
    if SLOW and (seen := told("zeros_like", locals())) is not None:
        return seen
    if layout is not None and layout is not strided:
        d, shape = dtype or self._k.dtype, self._a.shape
        name = "zeros"
        return exotic.LAYOUTS[layout](name, shape, d, device, requires_grad, layout)
    d, dev, strides = _like(self, dtype, device, memory_format)
    return _filled(self._a.shape, 0, d, dev, requires_grad, None, strides)


@face("ones_like", method=False)
def ones_like(
    self: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Any:
    """Ones with the size, type and memory format of `input`."""
    if SLOW and (seen := told("ones_like", locals())) is not None:
        return seen
    if layout is not None and layout is not strided:
        d, shape = dtype or self._k.dtype, self._a.shape
        name = "ones_like"
        return exotic.LAYOUTS[layout](name, shape, d, device, requires_grad, layout)
    d, dev, strides = _like(self, dtype, device, memory_format)
    return _filled(self._a.shape, 1, d, dev, requires_grad, None, strides)


def _new(maker: Any) -> Any:
    def method(
        self: Any,
        size: Any,
        *more: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Any:
        """As the function of that name, with this tensor's type and device by default."""
        if SLOW and (seen := told(f"new_{maker.__name__}", locals())) is not None:
            return seen
        return maker(
            size,
            *more,
            dtype=dtype or self._k.dtype,
            device=device if device is not None else self._k.device,
            requires_grad=requires_grad,
            layout=layout,
        )

    return method


for _name, _maker in (("new_empty", empty), ("new_zeros", zeros), ("new_ones", ones)):
    face(_name, spaces=())(_new(_maker.body))


@face("new_full", spaces=())
def new_full(
    self: Any,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """As `full`, with this tensor's type and device by default."""
    if SLOW and (seen := told("new_full", locals())) is not None:
        return seen
    return full.body(
        size,
        fill_value,
        dtype=dtype or self._k.dtype,
        device=device if device is not None else self._k.device,
        requires_grad=requires_grad,
        layout=layout,
    )


@face("new_tensor", spaces=())
def new_tensor(
    self: Any,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """As `tensor`, with this tensor's type and device by default."""
    return tensor.body(
        data,
        dtype=dtype or self._k.dtype,
        device=device if device is not None else self._k.device,
        requires_grad=requires_grad,
    )


@face("empty_strided", method=False)
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Uninitialised, with explicit strides (elements)."""
    check_ints("empty_strided", "size", size)
    check_ints("empty_strided", "stride", stride)
    if SLOW and (seen := told("empty_strided", locals())) is not None:
        return seen
    shape, strides = sizes_of((tuple(size),)), tuple(stride)
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides"
            f" ({len(strides)})"
        )
    t = compute.empty(shape, dtype or dt.get_default_dtype(), devices.as_device(device), strides)
    return finish(t, requires_grad)


@face("new_empty_strided", spaces=())
def new_empty_strided(
    self: Any,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """As `empty_strided`, with this tensor's type and device by default."""
    if SLOW and (seen := told("new_empty_strided", locals())) is not None:
        return seen
    return empty_strided.body(
        size,
        stride,
        dtype=dtype or self._k.dtype,
        device=device if device is not None else self._k.device,
        requires_grad=requires_grad,
        layout=layout,
    )


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
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use"
            " sourceTensor.detach().clone() or"
            " sourceTensor.detach().clone().requires_grad_(True), rather than"
            " torch.tensor(sourceTensor).",
            stacklevel=2,
        )
        r = aten.clone(aten.detach(data))
        r = aten.to(r, device=device, dtype=dtype)
        return finish(r, requires_grad)
    a = array_of(data, dtype, "tensor")
    dev = devices.as_device(device)
    t = compute.wrap_on(a, dev)
    if SLOW:
        t = fresh(t, locals())
    return finish(t, requires_grad)


@face("scalar_tensor", method=False)
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A 0-d tensor of the default type."""
    if SLOW and (seen := told("scalar_tensor", locals())) is not None:
        return seen
    return tensor.body(
        s, dtype=dtype or dt.get_default_dtype(), device=device, requires_grad=requires_grad
    )


@face("as_tensor", method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """As `tensor`, but shares memory with tensors and NumPy arrays where possible."""
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
