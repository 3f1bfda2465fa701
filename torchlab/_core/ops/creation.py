"""New tensors: from sizes, from Python data, from NumPy.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#creation-ops
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.dispatch import compute
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.kind import cpu_kind
from torchlab._core.memory.storage import Storage
from torchlab._core.ops._making import finish, format_strides, into_out, sizes_of
from torchlab._core.tensor import Tensor, preserve_format

_cpu = devices.cpu


@face("empty", method=False)
def empty(
    *size: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Any:
    """An uninitialised tensor of the given sizes."""
    shape = sizes_of(size)
    strides = format_strides(shape, memory_format)
    t = compute.empty(shape, dtype or dt.get_default_dtype(), devices.as_device(device), strides)
    return into_out(t, out) if out is not None else finish(t, requires_grad)


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
    *size: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Zeros of the given sizes."""
    return _filled(
        sizes_of(size, "zeros"), 0, dtype or dt.get_default_dtype(), device, requires_grad, out
    )


@face("ones", method=False)
def ones(
    *size: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Ones of the given sizes."""
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
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()  # type: ignore[attr-defined]
    d = dtype or dt.of_scalar(fill_value)
    shape = sizes_of((size,) if not isinstance(size, int) else (size,), "full")
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
    d, dev, strides = _like(self, dtype, device, memory_format)
    return _filled(self._a.shape, 1, d, dev, requires_grad, None, strides)


def _new(maker: Any) -> Any:
    def method(
        self: Any,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Any:
        """As the function of that name, with this tensor's type and device by default."""
        return maker(
            *size,
            dtype=dtype or self._k.dtype,
            device=device if device is not None else self._k.device,
            requires_grad=requires_grad,
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
    return full.body(
        size,
        fill_value,
        dtype=dtype or self._k.dtype,
        device=device if device is not None else self._k.device,
        requires_grad=requires_grad,
    )


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
) -> Any:
    """As `empty_strided`, with this tensor's type and device by default."""
    return empty_strided.body(
        size,
        stride,
        dtype=dtype or self._k.dtype,
        device=device if device is not None else self._k.device,
        requires_grad=requires_grad,
    )


# ---- from data ----------------------------------------------------------------------------------


def from_array(a: np.ndarray, what: str = "from_numpy") -> Tensor:
    """A tensor that shares a NumPy array's memory."""
    if any(s < 0 and n != 1 for s, n in zip(a.strides, a.shape, strict=True)):
        raise ValueError(
            f"{what}: At least one stride in the given numpy array is negative, and tensors with"
            " negative strides are not currently supported. (You can probably work around this by"
            " making a copy of your array with array.copy().)"
        )
    d = dt.from_numpy(a.dtype, what)
    if any(s % a.itemsize for s, n in zip(a.strides, a.shape, strict=True) if n > 1):
        raise ValueError(
            f"{what}: given numpy array strides not a multiple of the element byte size. Copy the"
            " numpy array first."
        )
    if any(s < 0 for s in a.strides):  # size 1: the stride says nothing
        strides = layout.contiguous_strides(a.shape)
        a = np.lib.stride_tricks.as_strided(a, a.shape, tuple(s * a.itemsize for s in strides))
    t = compute.wrap(a)
    t._k = cpu_kind(a)
    t._s = Storage(a)
    assert t._k.dtype is d
    return t


@face("from_numpy", method=False)
def from_numpy(array: Any) -> Any:
    """A tensor over the same memory as a NumPy array. Raises ValueError for negative strides and
    foreign byte order, TypeError for types that tensors do not have."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return finish(from_array(array))


def array_of(data: Any, dtype: Any, what: str) -> np.ndarray:
    """Python data as an array, with PyTorch's choice of type and its errors."""
    if isinstance(data, np.ndarray):
        d = (
            dt.from_numpy(data.dtype, what)
            if data.dtype.byteorder in "=|" or data.dtype.isnative
            else None
        )
        if d is None:
            dt.from_numpy(data.dtype, what)
        return np.array(data, dtype=dtype.np if dtype else None, order="C")
    if isinstance(data, np.generic):
        d = dtype or dt.from_numpy(data.dtype, what)
        return np.array(data, dtype=d.np)
    if isinstance(data, (bool, int, float, complex)):
        d = dtype or dt.of_scalar(data)
        return (
            compute.scalar_array(data, d)
            if not (d.category == dt.INT and isinstance(data, float))
            else np.array(int(data), d.np)
        )
    if isinstance(data, str) or data is None:
        raise TypeError(
            f"new(): invalid data type '{type(data).__name__}'"
            if isinstance(data, str)
            else f"{what}: could not infer dtype of NoneType"
        )
    if (
        isinstance(data, (list, tuple, range))
        or hasattr(data, "__len__")
        and hasattr(data, "__getitem__")
    ):
        return _sequence(data, dtype, what)
    if hasattr(data, "__array__"):
        return array_of(np.asarray(data), dtype, what)
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _sequence(data: Any, dtype: Any, what: str) -> np.ndarray:
    if hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        return array_of(np.asarray(data), dtype, what)
    shape = _shape_of(data)
    flat: list[Any] = []
    _flatten(data, shape, 0, flat)
    if any(isinstance(x, (Tensor, np.ndarray, np.generic)) for x in flat):
        kinds = [_number_dtype(x) for x in flat]
        flat = [x.item() if not isinstance(x, (bool, int, float, complex)) else x for x in flat]
    else:
        kinds = [
            dt.of_scalar(x) if isinstance(x, (bool, int, float, complex)) else _refuse(x)
            for x in {type(x): x for x in flat}.values()
        ]
    if dtype is None:
        dtype = dt.get_default_dtype() if not kinds else kinds[0]
        for k in kinds[1:]:
            dtype = dt.promote_types(dtype, k)
    if dtype.category == dt.INT:
        info = np.iinfo(dtype.np)
        ints = [int(x) for x in flat]
        for x in ints:
            if not info.min <= x <= info.max:
                raise RuntimeError(
                    f"value cannot be converted to type {dtype.name} without overflow: {x}"
                )
        return np.array(ints, dtype.np).reshape(shape)
    if dtype.category == dt.FLOAT and any(isinstance(x, complex) for x in flat):
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return np.array(flat, dtype=dtype.np).reshape(shape)


def _number_dtype(x: Any) -> dt.dtype:
    if isinstance(x, Tensor):
        return x._k.dtype
    if isinstance(x, (np.ndarray, np.generic)):
        return dt.from_numpy(x.dtype)
    return dt.of_scalar(x)


def _refuse(x: Any) -> Any:
    if isinstance(x, str):
        raise TypeError("new(): invalid data type 'str'")
    raise RuntimeError(f"Could not infer dtype of {type(x).__name__}")


def _is_sequence(x: Any) -> bool:
    if isinstance(x, (str, bytes)):
        return False
    if isinstance(x, (Tensor, np.ndarray)):
        return x.ndim > 0
    return hasattr(x, "__len__") and hasattr(x, "__getitem__")


def _shape_of(data: Any) -> tuple[int, ...]:
    shape = []
    while _is_sequence(data):
        shape.append(len(data))
        if len(data) == 0:
            break
        if len(shape) > 128:
            raise ValueError("excessive nesting: the data has more than 128 dimensions")
        data = data[0]
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...], depth: int, out: list[Any]) -> None:
    if depth == len(shape):
        if _is_sequence(data):
            raise TypeError(
                "only integer tensors of a single element can be converted to an index:"
                f" {data!r:.60}"
            )
        out.append(data)
        return
    if not _is_sequence(data):
        raise TypeError(f"not a sequence at dim {depth}: {type(data).__name__}")
    if len(data) != shape[depth]:
        raise ValueError(
            f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})"
        )
    if depth == len(shape) - 1 and isinstance(data, (list, tuple)):
        if any(_is_sequence(x) for x in data):
            raise ValueError(f"expected scalars at dim {depth + 1}, got a sequence")
        out.extend(data)
        return
    for x in data:
        _flatten(x, shape, depth + 1, out)


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
        r = aten.clone(aten.detach(data))
        r = aten.to(r, device=device, dtype=dtype)
        return finish(r, requires_grad)
    a = array_of(data, dtype, "tensor")
    dev = devices.as_device(device)
    return finish(compute.wrap_on(a, dev), requires_grad)


@face("scalar_tensor", method=False)
def scalar_tensor(
    s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """A 0-d tensor of the default type."""
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


# ---- ranges -------------------------------------------------------------------------------------


@face("arange", method=False)
def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """start, start + step, … below end."""
    if end is None:
        start, end = 0, start
    start, end, step = (x.item() if isinstance(x, Tensor) else x for x in (start, end, step))  # type: ignore[attr-defined]
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        integers = all(isinstance(x, (int, np.integer)) for x in (start, end, step))
        dtype = dt.int64 if integers else dt.get_default_dtype()
    n = (
        max(0, math.ceil((end - start) / step))
        if not all(isinstance(x, int) for x in (start, end, step))
        else max(0, -((start - end) // step))
    )
    dev = devices.as_device(device)
    if dev.type == "meta":
        return finish(compute.empty((n,), dtype, dev), requires_grad)
    if dtype.category == dt.INT:
        a = np.arange(n, dtype=np.int64) * int(step) + int(start)
    else:
        a = np.arange(n, dtype=np.float64) * step + start
    t = compute.wrap_on(a.astype(dtype.np), dev)
    return into_out(t, out) if out is not None else finish(t, requires_grad)


@face("linspace", method=False)
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """`steps` values from start to end, both included."""
    start, end = (x.item() if isinstance(x, Tensor) else x for x in (start, end))  # type: ignore[attr-defined]
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    d = dtype or dt.get_default_dtype()
    if steps == 0:
        a = np.empty((0,), d.np)
    elif steps == 1:
        a = np.array([start], d.np)
    else:  # from both ends, as PyTorch, in the result's own precision
        w = d.np.type if d.is_floating_point and d.itemsize >= 4 else np.float64
        step = w((w(end) - w(start)) / w(steps - 1))
        i = np.arange(steps)
        half = steps // 2
        a = np.where(
            i < half, w(start) + step * i.astype(w), w(end) - step * (steps - 1 - i).astype(w)
        ).astype(d.np)
    t = compute.wrap_on(a, devices.as_device(device))
    return into_out(t, out) if out is not None else finish(t, requires_grad)


@face("eye", method=False)
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Ones on the diagonal, zeros elsewhere."""
    d = dtype or dt.get_default_dtype()
    t = compute.wrap_on(np.eye(n, n if m is None else m, dtype=d.np), devices.as_device(device))
    return into_out(t, out) if out is not None else finish(t, requires_grad)
