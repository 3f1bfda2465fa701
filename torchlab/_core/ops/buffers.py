"""Tensors over memory that Python objects and files lend: frombuffer, from_file, asarray.

Source: https://docs.pytorch.org/docs/2.13/torch.html#creation-ops
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import settings
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
from torchlab._core.memory.mapped import mapped_file
from torchlab._core.ops._data import from_array
from torchlab._core.ops._makers import maker
from torchlab._core.ops._making import How, finish
from torchlab._core.tape import edge_of
from torchlab._core.tensor import Tensor

dlpack = lazy("torchlab._core.dlpack")  # loads ctypes


def _writable_or_warn(raw: np.ndarray) -> np.ndarray:
    if raw.flags.writeable:
        return raw
    settings.warn_once(
        "read-only buffer",
        "The given buffer is not writable, and PyTorch does not support non-writable tensors. This"
        " means you can write to the underlying (supposedly non-writable) buffer using the tensor."
        " You may want to copy the buffer to protect its data or make it writable before converting"
        " it to a tensor.",
    )
    return raw


@face("frombuffer", method=False)
def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Any:
    """A one-dimensional tensor over the memory of an object with the buffer protocol: `count`
    elements (-1: all) from byte `offset` on."""
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not memoryview(buffer).c_contiguous:
        raise RuntimeError("could not retrieve buffer from object: it is not contiguous")
    item = dtype.itemsize
    if not (length > 0 and count != 0):
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length"
            f" ({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % item:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a"
                f" multiple of element size ({item})"
            )
        count = (length - offset) // item
    if offset + count * item > length:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must"
            f" not be greater than actual buffer length ({length} bytes)"
        )
    raw = np.frombuffer(memoryview(buffer).cast("B"), np.uint8, count * item, offset)
    t = aten.from_numpy(_aligned_view(_writable_or_warn(raw), dtype))
    return finish(t, requires_grad)


def _aligned_view(raw: np.ndarray, dtype: dt.dtype) -> np.ndarray:
    view = raw.view(dtype.np)
    if not view.flags.writeable:  # the warning has been given
        lent = _Lent(view)
        view = np.asarray(lent).view(dtype.np)
    return view


class _Lent:
    """Memory that somebody else owns, for NumPy, as writable bytes."""

    def __init__(self, array: np.ndarray) -> None:
        self.owner = array
        self.__array_interface__ = {
            "data": (array.__array_interface__["data"][0], False),
            "shape": (array.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


@maker("from_file")
def from_file(how: How, filename: Any, shared: bool | None = None, size: int | None = 0) -> Any:
    """A one-dimensional tensor of `size` elements over a file mapped into memory. `shared`: writes
    reach the file, which is made or extended if it is too short; otherwise they do not."""
    kind, place = how.kind, how.place
    if how.pinned:
        raise RuntimeError("from_file(): tensors constructed from a file cannot be pinned")
    if how.layout is not None:
        how.refuse("from_file")
    if place is not devices.cpu:
        raise RuntimeError(f"from_file: a file can only be mapped on the CPU, not on {place}")
    needed = (size or 0) * kind.itemsize
    mapped = mapped_file(filename, bool(shared), needed)
    if not needed:
        return how.done(aten.empty((0,), dtype=kind))
    return how.done(from_array(mapped.view(kind.np), "from_file"))


def _shares_buffer(obj: Any) -> bool:
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


@face("asarray", method=False)
def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Any:
    """A tensor of `obj`, sharing memory where that is possible: with tensors, NumPy arrays, DLPack
    objects and buffers. `copy`: True never shares, False raises ValueError if it could not."""
    if isinstance(obj, Tensor):
        t = obj
        if edge_of(obj) is not None and requires_grad is None:
            settings.warn_once(
                "asarray",
                "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead"
                " of False. Pass requires_grad=False explicitly to detach.",
            )
    elif isinstance(obj, np.ndarray):
        t = from_array(obj, "asarray")
    elif hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        t = aten.from_dlpack(obj)
    elif _shares_buffer(obj) and not isinstance(obj, np.generic):
        t = aten.frombuffer(obj, dtype=dtype or dt.get_default_dtype())
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        t = aten.tensor(obj, dtype=dtype, device=device)
        return finish(t, bool(requires_grad))
    wrong_type = dtype is not None and dtype is not t._k.dtype
    wrong_place = device is not None and devices.as_device(device) is not t._k.device
    if copy is False and wrong_type:
        raise ValueError(f"can't alias tensor with dtype {t.dtype} into dtype {dtype}.")
    if copy is False and wrong_place:
        raise ValueError(f"can't alias tensor with device '{t.device}' into device '{device}'.")
    if wrong_type or wrong_place:
        t = aten.to(t, devices.as_device(device or t._k.device), dtype or t._k.dtype)
    elif copy:
        t = aten.clone(t)
    if requires_grad is False and edge_of(t) is not None:
        return aten.detach(t)
    return t.requires_grad_() if requires_grad and edge_of(t) is None else t


@face("from_dlpack", method=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor over the memory of an object with `__dlpack__`, or of a capsule."""
    return dlpack.from_dlpack(ext_tensor, device=device, copy=copy)


@face("to_dlpack", method=False)
def to_dlpack(tensor: Any) -> Any:
    """A DLPack capsule that shares the tensor's memory; it can be consumed once."""
    return dlpack.to_dlpack(tensor)
