"""How tensors are put together from files (reduce.py takes them apart).

A file holds a call of one of PyTorch's functions `torch._utils._rebuild_…` with plain arguments and
storages. The functions here stand for these. Their arguments come from files that may be damaged
or hostile, so they check everything: a tensor never reaches beyond its storage.

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import layout as shapes
from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.wrappers import make_wrapper_subclass
from torchlab._core.formats import layout as Layout
from torchlab._core.formats import named
from torchlab._core.generator import Generator
from torchlab._core.kind import cpu_kind
from torchlab._core.ops._quantized import (
    FLOAT_QPARAMS,
    PER_CHANNEL,
    PER_CHANNEL_SYMMETRIC,
    PER_TENSOR,
    PER_TENSOR_SYMMETRIC,
    Quantizer,
    around,
)
from torchlab._core.storages import TypedStorage, UntypedStorage
from torchlab._core.tensor import Size, Tensor
from torchlab.nn.parameter import Parameter
from torchlab.serialization.names import enter

_MOST_DIMS = 64  # NumPy's limit
_new = object.__new__


def _whole(values: Any, what: str) -> tuple[int, ...]:
    """The values as a tuple of non-negative ints."""
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"tensor in file: {what} must be a tuple, not {type(values).__name__}")
    for x in values:
        if type(x) is not int or not 0 <= x < 2**63:
            raise RuntimeError(
                f"tensor in file: {what} must hold integers in [0, 2^63), got an entry of type"
                f" {type(x).__name__}"
                + (f" with value {x}" if type(x) is int and x.bit_length() < 80 else "")
            )
    return tuple(values)


def _flag(value: Any, what: str) -> bool:
    if type(value) is not bool:
        raise TypeError(f"tensor in file: {what} must be a bool, not {type(value).__name__}")
    return value


def check_place(
    size: Any, stride: Any, offset: Any, itemsize: int, nbytes: int
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(size, stride, offset) of a tensor that lies within its storage; RuntimeError otherwise."""
    size, stride = _whole(size, "size"), _whole(stride, "stride")
    (offset,) = _whole((offset,), "storage_offset")
    if len(size) != len(stride):
        raise RuntimeError(
            f"tensor in file: mismatch in length of strides and shape: {len(stride)} and"
            f" {len(size)}"
        )
    if len(size) > _MOST_DIMS:
        raise RuntimeError(
            f"tensor in file: it has {len(size)} dims, at most {_MOST_DIMS} are possible"
        )
    if shapes.numel(size) >= 2**62:
        raise RuntimeError(f"tensor in file: size {list(size)} has too many elements")
    need = 0
    if 0 not in size:
        need = offset + 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if need * itemsize > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and"
            f" itemsize {itemsize} requiring a storage size of {need * itemsize} are out of bounds"
            f" for storage of size {nbytes}: the file is damaged"
        )
    return size, stride, offset


def _over(storage: UntypedStorage, dtype: dt.dtype, offset: Any, size: Any, stride: Any) -> Tensor:
    """A tensor over a storage."""
    item = dtype.itemsize
    size, stride, offset = check_place(size, stride, offset, item, storage.nbytes())
    if storage.device.type == "meta":
        return aten.empty_strided(size, stride, dtype=dtype, device="meta")
    if storage.device is not devices.cpu:
        empty = aten.empty((0,), dtype=dtype, device=storage.device)
        return aten.set_(empty, storage, offset, size, stride)
    t: Any = _new(Tensor)
    t._s = memory = storage._storage
    if 0 in size:
        # The bytes under it are not read, but the strides are PyTorch's.
        t._a = np.ndarray(size, dtype.np, np.empty(1, dtype.np), 0, tuple(x * item for x in stride))
    else:
        at = tuple(x * item for x in stride)
        t._a = np.ndarray(size, dtype.np, memory.bytes, offset * item, at)
    t._k = cpu_kind(t._a)
    t._e = t._v = t._g = None
    return t


def _marked(t: Tensor, metadata: Any) -> Tensor:
    """With the bits that files keep beside the elements."""
    if not metadata:
        return t
    if not isinstance(metadata, dict):
        raise TypeError(f"tensor in file: metadata is a {type(metadata).__name__}, not a dict")
    for name, wanted in metadata.items():
        if type(name) is not str or name not in ("conj", "neg"):
            raise RuntimeError(f"tensor in file: unknown metadata of type {type(name).__name__}")
        if name == "conj" and not t._k.dtype.is_complex:
            raise RuntimeError("tensor in file: the conjugate bit of a tensor that is not complex")
        if _flag(wanted, f"metadata '{name}'"):
            t = aten.conj(t) if name == "conj" else aten._neg_view(t)
    return t


def _finished(t: Tensor, requires_grad: Any) -> Tensor:
    return t.requires_grad_() if _flag(requires_grad, "requires_grad") else t


def _typed(storage: Any) -> TypedStorage:
    if type(storage) is not TypedStorage:
        raise TypeError(f"tensor in file: {type(storage).__name__} where a storage was expected")
    return storage


def rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    """The form that PyTorch wrote before 0.4."""
    s = _typed(storage)
    return _over(s._untyped_storage, s._dtype, storage_offset, size, stride)


def rebuild_tensor_v2(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any,
    backward_hooks: Any, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor over a typed storage. Hooks in files are not taken over."""
    t = rebuild_tensor(storage, storage_offset, size, stride)
    return _finished(_marked(t, metadata), requires_grad)


def rebuild_tensor_v3(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any,
    backward_hooks: Any, dtype: Any, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor over an untyped storage: of the dtypes that came after typed storages."""
    if not isinstance(dtype, dt.dtype):
        raise TypeError(f"tensor in file: {type(dtype).__name__} where a dtype was expected")
    raw = _typed(storage)._untyped_storage
    t = _over(raw, dtype, storage_offset, size, stride)
    return _finished(_marked(t, metadata), requires_grad)


def rebuild_meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor without data."""
    if not isinstance(dtype, dt.dtype):
        raise TypeError(f"tensor in file: {type(dtype).__name__} where a dtype was expected")
    size, stride = _whole(size, "size"), _whole(stride, "stride")
    check_place(size, stride, 0, 0, 0)
    t = aten.empty_strided(size, stride, dtype=dtype, device="meta")
    return _finished(t, requires_grad)


def _tensor(data: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise TypeError(f"tensor in file: {type(data).__name__} where a tensor was expected")
    return data


def rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Any:
    """A Parameter over a tensor."""
    return Parameter(_tensor(data), _flag(requires_grad, "requires_grad"))


def rebuild_parameter_with_state(
    data: Any, requires_grad: Any, backward_hooks: Any, state: Any
) -> Any:
    """A Parameter with attributes."""
    return set_state(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_from_type(func: Any, type: Any, args: Any, state: Any) -> Any:
    """A tensor of a subclass, or with attributes. `func` makes the plain tensor."""
    # By identity: `==` of what a file brings may be a tensor's.
    if func is not rebuild_wrapper_subclass and not any(func is f for f in PLAIN):
        raise RuntimeError("tensor in file: its maker is none of the functions that make tensors")
    if not isinstance(type, _Type) or not issubclass(type, Tensor):
        raise TypeError("tensor in file: its class is no subclass of torch.Tensor")
    if func is rebuild_wrapper_subclass and args[:1] != (type,):
        raise TypeError("tensor in file: a wrapper of two classes")
    t = func(*args)
    if _type(t) is not type:
        t = t.as_subclass(type)
    if state is None:
        return t
    own = getattr(type, "__setstate__", None)
    if own is not None:
        own(t, state)
        return t
    return set_state(t, state)


_Type = _type = type


def rebuild_wrapper_subclass(
    cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: Any, layout: Any, device: Any,
    requires_grad: Any,
) -> Any:  # fmt: skip
    """A tensor whose class keeps the data in its attributes, which are set afterwards."""
    if not isinstance(cls, _Type) or not issubclass(cls, Tensor):
        raise TypeError("tensor in file: its class is no subclass of torch.Tensor")
    if not isinstance(dtype, dt.dtype) or not isinstance(device, devices.device):
        raise TypeError("tensor in file: expected a dtype and a device")
    size, stride = _whole(size, "size"), _whole(stride, "stride")
    (offset,) = _whole((storage_offset,), "storage_offset")
    wants = _flag(requires_grad, "requires_grad")
    return make_wrapper_subclass(
        cls, size, stride, offset, dtype=dtype, layout=layout, device=device, requires_grad=wants
    )


def set_state(t: Any, state: Any) -> Any:
    """Give a tensor the attributes that a file keeps for it: a dict, or a dict and one of slots."""
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"tensor in file: invalid serialized state of {len(state)} parts")
        state, slots = state
    if state:
        if not isinstance(state, dict) or not all(type(x) is str for x in state):
            raise TypeError("tensor in file: attributes must be a dict with names as keys")
        t.__dict__.update(state)
    for name, value in (slots or {}).items():
        if type(name) is not str or hasattr(Tensor, name) or name.startswith("__"):
            raise RuntimeError("tensor in file: a slot has the name of a tensor's own attribute")
        setattr(t, name, value)
    return t


def get_layout(name: Any) -> Any:
    """The layout of that name, "torch.sparse_coo" say."""
    if type(name) is not str:
        raise TypeError(f"layout in file: a {type(name).__name__} instead of its name")
    try:
        found = named(name)
    except KeyError:
        found = None
    if not isinstance(found, Layout):
        raise KeyError(f"unknown layout in file: {name[:60]!r}")
    return found


def rebuild_sparse(layout: Any, data: Any) -> Any:
    """A sparse tensor of any layout; its indices are checked."""
    if not isinstance(layout, Layout) or not isinstance(data, tuple):
        raise TypeError("sparse tensor in file: expected a layout and a tuple of components")
    name = str(layout)
    if name == "torch.sparse_coo":
        if len(data) not in (3, 4):
            raise RuntimeError(f"sparse tensor in file: {len(data)} components")
        coalesced = data[3] if len(data) == 4 else None
        indices, values, size = _tensor(data[0]), _tensor(data[1]), _whole(data[2], "size")
        made = aten.sparse_coo_tensor(indices, values, size, check_invariants=False)
        sorted_once = coalesced is not None and _flag(coalesced, "is_coalesced")
        if sorted_once:
            made._a.coalesced = True

        def check_coo() -> None:
            aten.sparse_coo_tensor(indices, values, size, check_invariants=True)
            if sorted_once:
                _check_coalesced(indices)

        _now_or_later(check_coo)
        return made
    if name == "torch.strided" or len(data) != 4:
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    compressed, plain, values = (_tensor(x) for x in data[:3])
    size = _whole(data[3], "size")

    def make(check: bool) -> Any:
        return aten.sparse_compressed_tensor(
            compressed, plain, values, size, layout=layout, check_invariants=check
        )

    _now_or_later(lambda: make(True))
    return make(False)


class _Later(threading.local):
    checks: list[Callable[[], Any]] | None = None


_later = _Later()


def _now_or_later(check: Callable[[], Any]) -> None:
    if _later.checks is None:
        check()
    else:
        _later.checks.append(check)


@contextlib.contextmanager
def checking_later() -> Iterator[list[Callable[[], Any]]]:
    """Inside, checks that look at elements are collected, for files in which these come last. If
    there were any, the object has to be made again when the elements are there."""
    before = _later.checks
    checks: list[Callable[[], Any]] = []
    _later.checks = checks
    try:
        yield checks
    finally:
        _later.checks = before


def rebuild_quantized(
    storage: Any, storage_offset: Any, size: Any, stride: Any, quantizer_params: Any,
    requires_grad: Any, backward_hooks: Any,
) -> Any:  # fmt: skip
    """A quantized tensor: its codes lie in the storage."""
    s = _typed(storage)
    codes = _CODES.get(s._dtype)
    if codes is None:
        raise TypeError(f"quantized tensor in file: its storage is of {s._dtype}")
    raw = s._untyped_storage
    if raw.device is not devices.cpu:
        raise NotImplementedError("quantized tensors are there for the CPU only")
    t = _over(raw, codes, storage_offset, size, stride)
    return _finished(around(t, _quantizer(quantizer_params, t)), requires_grad)


def _quantizer(params: Any, codes: Tensor) -> Quantizer:
    scheme = params[0] if isinstance(params, tuple) and params else None
    if not any(scheme is x for x in SCHEMES):
        raise TypeError("quantized tensor in file: it has no scheme")
    rest = params[1:]
    if len(rest) == 2:
        scale, zero = rest
        if type(scale) is not float or type(zero) is not int or scheme is not PER_TENSOR:
            raise TypeError("quantized tensor in file: expected a scale and a zero point")
        return Quantizer(scheme, scale, zero)
    if len(rest) != 3 or scheme not in (PER_CHANNEL, FLOAT_QPARAMS):
        raise TypeError("quantized tensor in file: expected scales, zero points and an axis")
    scales, zeros, axis = _tensor(rest[0]), _tensor(rest[1]), rest[2]
    shape = codes._a.shape
    if type(axis) is not int or not 0 <= axis < len(shape):
        raise RuntimeError("quantized tensor in file: its axis is not one of its dims")
    if scales._a.shape != (shape[axis],) or zeros._a.shape != (shape[axis],):
        raise RuntimeError("quantized tensor in file: it has not one scale for each channel")
    if zeros._k.dtype.is_floating_point:  # the files of PyTorch do not tell these apart by name
        scheme = FLOAT_QPARAMS
    _now_or_later(lambda: None)  # the scales are copied: they have to be there
    kinds = (np.float32, np.float32) if scheme is FLOAT_QPARAMS else (np.float64, np.int64)
    a, b = (np.array(x._a, kind) for x, kind in zip((scales, zeros), kinds, strict=True))
    return Quantizer(scheme, a, b, axis)


_CODES = {dt.qint8: dt.int8, dt.quint8: dt.uint8, dt.qint32: dt.int32}
SCHEMES = (
    PER_TENSOR, PER_CHANNEL, PER_TENSOR_SYMMETRIC, PER_CHANNEL_SYMMETRIC, FLOAT_QPARAMS,
)  # fmt: skip


def _check_coalesced(indices: Tensor) -> None:
    """Operators rely on it: sorted, and each index once."""
    a = indices._a
    later = np.zeros(max(a.shape[1] - 1, 0), bool)
    tied = ~later
    for row in a:
        later |= tied & (row[1:] > row[:-1])
        tied &= row[1:] == row[:-1]
    if a.shape[1] > 1 and not later.all():
        raise RuntimeError(
            "sparse tensor in file: is_coalesced is set, but its indices are not sorted and unique"
        )


def rebuild_on_device(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    """A tensor of a device whose storages have no place in files."""
    if not isinstance(dtype, dt.dtype) or not isinstance(device, (str, devices.device)):
        raise TypeError("tensor in file: expected a dtype and a device")
    return _finished(aten.to(_tensor(data), devices.device(device), dtype), requires_grad)


PLAIN = (
    rebuild_tensor, rebuild_tensor_v2, rebuild_tensor_v3, rebuild_meta_tensor, rebuild_parameter,
    rebuild_parameter_with_state, rebuild_sparse, rebuild_on_device, rebuild_quantized,
)  # fmt: skip
for _function, _name in (
    (rebuild_tensor, "_rebuild_tensor"),
    (rebuild_tensor_v2, "_rebuild_tensor_v2"),
    (rebuild_tensor_v3, "_rebuild_tensor_v3"),
    (rebuild_meta_tensor, "_rebuild_meta_tensor_no_storage"),
    (rebuild_parameter, "_rebuild_parameter"),
    (rebuild_parameter_with_state, "_rebuild_parameter_with_state"),
    (rebuild_sparse, "_rebuild_sparse_tensor"),
    (rebuild_quantized, "_rebuild_qtensor"),
    (rebuild_on_device, "_rebuild_device_tensor_from_cpu_tensor"),
):
    enter(_function, "torch._utils", _name)
enter(rebuild_wrapper_subclass, "torch._utils", "_rebuild_wrapper_subclass")
enter(rebuild_from_type, "torch._tensor", "_rebuild_from_type_v2")
enter(get_layout, "torch.serialization", "_get_layout")
for _scheme in SCHEMES:
    enter(_scheme, "torch", str(_scheme).rpartition(".")[2])
enter(Generator, "torch._C", "Generator")
enter(Tensor, "torch", "Tensor")
enter(Size, "torch", "Size")
enter(devices.device, "torch", "device")
enter(dt.dtype, "torch", "dtype")
enter(Parameter, "torch.nn.parameter", "Parameter")
