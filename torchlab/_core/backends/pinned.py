"""Page-locked ("pinned") host memory, from which an accelerator copies without the host's help.

An array over such memory has a `Pinned` at the end of the chain of those who own its memory. So
whatever is made over it without a copy (views, tensors, NumPy's arrays, buffers) is known to be
pinned as well, and it is freed with the last of them.

The simulated accelerator reads all of the host's memory, page-locked or not: what it gives out as
pinned begins at a page, as a GPU's does, and is known to be pinned; nothing else is special.

Source: https://docs.pytorch.org/docs/2.13/notes/cuda.html#use-pinned-memory-buffers
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends import accelerator
from torchlab._core.backends.cuda import cupy
from torchlab._core.memory.storage import _Memory, address_of


class Pinned(_Memory):
    """Lends pinned memory to arrays and keeps it."""

    __slots__ = ()


def _of_gpu(nbytes: int) -> Any:
    # CuPy keeps what is freed and gives it out again: page-locking takes the system long. What it
    # gives is at least as long as asked for.
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(nbytes), np.uint8, nbytes)


def _of_sim(nbytes: int) -> Any:
    raw = np.empty(nbytes + mmap.PAGESIZE, np.uint8)
    return raw[-address_of(raw) % mmap.PAGESIZE :][:nbytes]


_ALLOCATE: dict[str, Callable[[int], Any]] = {"cuda": _of_gpu, "sim": _of_sim}


def allocate(nbytes: int) -> np.ndarray:
    """Uninitialised pinned bytes. RuntimeError where there is no accelerator. None at all are
    pinned nowhere, as PyTorch's."""
    make = _ALLOCATE[accelerator.require("pinned memory")]
    if not nbytes:
        return np.empty(0, np.uint8)
    owner = make(nbytes)
    return np.asarray(Pinned(address_of(owner), nbytes, owner, readonly=False))


def empty_strided(shape: Any, dtype: np.dtype, strides: Any = None) -> np.ndarray:
    """An uninitialised pinned array with the given strides (elements); None: row-major."""
    shape, size = tuple(shape), dtype.itemsize
    if strides is None:
        strides = layout.contiguous_strides(shape)
    memory = allocate(layout.storage_nbytes(shape, strides, 0, size))
    return np.ndarray(shape, dtype, memory, strides=tuple(s * size for s in strides))


def is_pinned(memory: Any) -> bool:
    """Whether an array, or another owner of memory, is pinned."""
    while memory is not None and type(memory) is not Pinned:
        memory = next((getattr(memory, n) for n in _OWNERS if hasattr(memory, n)), None)
    return memory is not None


_OWNERS = ("base", "obj", "owner")  # of arrays, of memoryviews, of what lends memory here


__all__ = ["Pinned", "allocate", "empty_strided", "is_pinned"]
