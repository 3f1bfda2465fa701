"""DLPack both ways: tensors of other libraries over the same memory.

NumPy (or CuPy) makes and reads the capsules. It knows no bfloat16 and float8; for these the element
type in the capsule is exchanged for the integer of the same size, here, before NumPy reads it or
after NumPy wrote it.

Source: https://docs.pytorch.org/docs/2.13/dlpack.html and the protocol,
https://data-apis.org/array-api/latest/design_topics/data_interchange.html
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core.backends import base
from torchlab._core.dispatch import compute
from torchlab._core.dispatch.registry import aten
from torchlab._core.kind import kind
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import edge_of
from torchlab._core.tensor import Tensor


class DLDeviceType(enum.IntEnum):
    """The kinds of devices that DLPack knows."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


# Codes of the element types that NumPy does not write or read; the unsigned integers have 1.
_UNSIGNED = 1
_CODES = {dt.bfloat16: 4, dt.float8_e4m3fn: 10, dt.float8_e5m2: 12}
_BY_CODE = {code: d for d, code in _CODES.items()}
_INTEGER = {1: np.uint8, 2: np.uint16}
_NAMES = (b"dltensor_versioned", b"dltensor")

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def _tensor_in(capsule: Any) -> _DLTensor:
    """The struct in a capsule that nobody has consumed yet."""
    for name in _NAMES:
        if _is_valid(capsule, name):
            pointer = _get_pointer(capsule, name)
            if name == _NAMES[0]:
                return _Versioned.from_address(pointer).tensor
            return _DLTensor.from_address(pointer)
    raise RuntimeError(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only"
        " once, so you might have already constructed a tensor from it once."
    )


# ---- out ----------------------------------------------------------------------------------------


def export(
    self: Tensor,
    *,
    stream: Any = -1,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """`tensor.__dlpack__()`: a capsule that shares the tensor's memory."""
    if edge_of(self) is not None:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    place = self._k.device
    if place.type not in ("cpu", "cuda"):
        raise BufferError(f"Cannot pack tensors on {place.type}; move it with .cpu() first")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if place.type == "cuda":
        return self._a.__dlpack__(stream=None if stream == -1 else stream)
    if stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"Cannot pack a tensor on cpu for the DLPack device {tuple(dl_device)}")
    d = self._k.dtype
    array = self._a
    if copy or not array.flags.writeable:
        if copy is False:
            raise BufferError("Cannot export a read-only tensor without a copy")
        array = array.copy() if copy else _writable(array)
    code = _CODES.get(d)
    if code is not None:
        array = array.view(_INTEGER[d.itemsize])
    capsule = array.__dlpack__(max_version=max_version)
    if code is not None:
        _tensor_in(capsule).dtype.code = code
    return capsule


def device_of(self: Tensor) -> tuple[DLDeviceType, int]:
    """`tensor.__dlpack_device__()`: the kind of device and its index."""
    place = self._k.device
    if place.type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type {place.type} for Dlpack")
    return (
        DLDeviceType.kDLCPU if place.type == "cpu" else DLDeviceType.kDLCUDA,
        place.index or 0,
    )


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that shares the tensor's memory; it can be consumed once."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_dlpack(): expected a Tensor, not {type(tensor).__name__}")
    return tensor.__dlpack__(stream=None)


# ---- in -----------------------------------------------------------------------------------------


class _Offer:
    """A capsule as an object that NumPy's from_dlpack takes."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _Lent:
    """Memory that another library owns, for NumPy, writable."""

    def __init__(self, array: np.ndarray) -> None:
        self.owner = array
        self.__array_interface__ = dict(
            array.__array_interface__,
            data=(array.__array_interface__["data"][0], False),
            strides=array.strides,
        )


def _writable(array: np.ndarray) -> np.ndarray:
    # PyTorch does not look at DLPack's read-only flag, and capsules without version have none.
    return array if array.flags.writeable else np.asarray(_Lent(array))


def _host_array(capsule: Any) -> tuple[np.ndarray, dt.dtype | None]:
    described = _tensor_in(capsule)
    special = _BY_CODE.get(described.dtype.code)
    if described.dtype.lanes != 1:
        raise BufferError(f"from_dlpack: elements with {described.dtype.lanes} lanes")
    if special is not None:
        described.dtype.code = _UNSIGNED
    array = _writable(np.from_dlpack(_Offer(capsule)))  # type: ignore[arg-type]
    return (array.view(special.np) if special is not None else array), special


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of `ext_tensor`: an object with `__dlpack__`, or a capsule.

    `device`: where it has to lie; `copy`: True for a copy, False to raise if one were needed.
    """
    place = None if device is None else devices.as_device(device)
    if place is not None and place.type not in ("cpu", "cuda"):
        raise BufferError(f"Cannot pack tensors on {place.type}")
    if hasattr(ext_tensor, "__dlpack__"):
        where, index = ext_tensor.__dlpack_device__()
        if int(where) == DLDeviceType.kDLCUDA:
            target = devices.device("cuda", int(index))
            array = base.backend(target).xp.from_dlpack(ext_tensor)
            t = compute.wrap_on(array, target)
            return _placed(t, place, copy)
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0))
        except TypeError:  # a producer of the protocol's first version
            capsule = ext_tensor.__dlpack__()
    else:
        capsule = ext_tensor
    array, _ = _host_array(capsule)
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "from_dlpack: the memory has negative strides, and tensors with negative strides are"
            f" not supported (strides {array.strides}); copy it first"
        )
    t = compute.wrap(array)
    t._k = kind(dt.from_numpy(array.dtype, "from_dlpack"))
    t._k = t._k if array.flags.c_contiguous else t._k.v
    t._s = Storage(array)
    return _placed(t, place, copy)


def _placed(t: Tensor, place: Any, copy: bool | None) -> Tensor:
    moved = place is not None and place is not t._k.device
    if moved and copy is False:
        raise ValueError(f"from_dlpack: cannot move the tensor to {place} without a copy")
    if moved:
        return aten.to(t, place)
    return aten.clone(t) if copy else t
