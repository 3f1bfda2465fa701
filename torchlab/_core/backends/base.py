"""The device backends by device, and what they all offer.

A backend has `xp` (the array module whose functions run the kernels), `allocate(shape, dtype,
strides)` and `adopt(array)`; both give (array, Storage or None). Adding a device is one file here
and one entry in `_MAKERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from torchlab._core import layout
from torchlab._core.backends import cuda
from torchlab._core.backends.meta import MetaArray
from torchlab._core.device import device
from torchlab._core.lazy import lazy
from torchlab._core.memory import host
from torchlab._core.memory.storage import Storage

host.keep_freed()  # before the first array
cupy = cuda.cupy
sim_memory = lazy("torchlab._core.backends.sim")


class Backend(Protocol):
    """What the dispatcher needs of a device."""

    xp: Any

    def allocate(self, shape: Any, dtype: np.dtype, strides: Any) -> tuple[Any, Storage | None]: ...

    def adopt(self, array: Any) -> tuple[Any, Storage | None]: ...


def empty_strided(shape: Any, dtype: np.dtype, strides: Any = None, xp: Any = np) -> Any:
    """An uninitialised array with the given strides (elements)."""
    if strides is None or tuple(strides) == layout.contiguous_strides(tuple(shape)):
        return xp.empty(shape, dtype)
    size = dtype.itemsize
    span = (
        1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    )
    flat = xp.empty(span, dtype)
    return xp.ndarray(
        tuple(shape),
        dtype,
        flat if xp is np else flat.data,
        strides=tuple(s * size for s in strides),
    )


class Host:
    """Host memory: NumPy's own allocations."""

    xp = np

    def allocate(self, shape: Any, dtype: np.dtype, strides: Any) -> tuple[Any, Storage | None]:
        return empty_strided(shape, dtype, strides), None

    def adopt(self, array: Any) -> tuple[Any, Storage | None]:
        return np.asarray(array), None


class Meta:
    """No memory at all."""

    xp = np

    def allocate(self, shape: Any, dtype: np.dtype, strides: Any) -> tuple[Any, Storage | None]:
        return MetaArray(shape, dtype, strides), None

    def adopt(self, array: Any) -> tuple[Any, Storage | None]:
        size = array.itemsize
        return MetaArray(array.shape, array.dtype, tuple(x // size for x in array.strides)), None


class Sim:
    """The simulated accelerator: arrays over blocks of its caching allocator."""

    xp = np

    def __init__(self, index: int) -> None:
        self.allocator = sim_memory.sim_allocator(index)

    def allocate(self, shape: Any, dtype: np.dtype, strides: Any) -> tuple[Any, Storage | None]:
        shape = tuple(shape)
        if strides is None:
            strides = layout.contiguous_strides(shape)
        size = dtype.itemsize
        span = (
            0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        )
        block = self.allocator.malloc(span * size)
        memory = block.buffer()[: span * size]
        array = np.ndarray(shape, dtype, memory, strides=tuple(s * size for s in strides))
        storage = Storage(memory)
        storage.hold_block(block, self.allocator.free)
        return array, storage

    def adopt(self, array: Any) -> tuple[Any, Storage | None]:
        array = np.asarray(array)
        size = array.itemsize
        strides = tuple(x // size for x in array.strides)
        if not layout.is_non_overlapping_and_dense(array.shape, strides):
            strides = layout.contiguous_strides(array.shape)
        made, storage = self.allocate(array.shape, array.dtype, strides)
        made[...] = array
        return made, storage


class Cuda:
    """NVIDIA GPUs through CuPy."""

    def __init__(self, index: int) -> None:
        cuda.require()
        self.xp = cupy
        self.index = index

    def allocate(self, shape: Any, dtype: np.dtype, strides: Any) -> tuple[Any, Storage | None]:
        with cupy.cuda.Device(self.index):
            return empty_strided(shape, dtype, strides, cupy), None

    def adopt(self, array: Any) -> tuple[Any, Storage | None]:
        with cupy.cuda.Device(self.index):
            return cupy.asarray(array), None


_MAKERS: dict[str, Callable[[int], Any]] = {
    "cpu": lambda i: Host(),
    "meta": lambda i: Meta(),
    "sim": Sim,
    "cuda": Cuda,
}
_made: dict[device, Any] = {}


def backend(dev: device) -> Any:
    """The backend of a device, made at its first use."""
    found = _made.get(dev)
    if found is None:
        found = _made[dev] = _MAKERS[dev.type](dev.index or 0)
    return found
