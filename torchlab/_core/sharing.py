"""Tensors whose memory other processes see: what `share_memory_` does.

Source: https://docs.pytorch.org/docs/2.13/multiprocessing.html
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.resizing import array_over, tensors_over
from torchlab._core.lazy import lazy
from torchlab._core.memory.storage import Storage, origin_of
from torchlab._core.references import ALONE, references
from torchlab._core.tape import base_of, geometry, relocate, storage_of
from torchlab._core.tensor import Tensor

shared = lazy("torchlab._core.memory.shared")  # loads multiprocessing

Allocate = Callable[[int], tuple[Any, np.ndarray]]
"""Gives a segment of so many bytes, and an array of them."""


def is_shared(s: Storage) -> bool:
    """Whether other processes see the memory."""
    return getattr(s.block, "shared", False)


def _tensors(t: Tensor | None) -> list[Any]:
    """A tensor, and what it is a view of."""
    found = []
    while t is not None:
        found.append(t)
        t = base_of(t)
    return found


def new_segment(nbytes: int) -> tuple[Any, np.ndarray]:
    """New memory by the strategy in force: Note [Segments] in memory.shared."""
    segment = shared.allocate(nbytes)
    return segment, segment.array()


def share(s: Storage, owner: Tensor | None = None, allocate: Allocate = new_segment) -> Any:
    """Move the memory to where other processes can see it (once) and give its segment. All tensors
    over the storage follow. `owner`: a tensor over it; nobody has to look for others if there is
    none but what it is a view of."""
    s = origin_of(s)
    if is_shared(s):
        return s.block
    if sys.platform == "win32":
        raise RuntimeError(
            "share_memory_: torchlab shares memory between processes with POSIX's means, which this"
            " system does not have; send copies, for example tensor.numpy()"
        )
    with shared.lock():
        if is_shared(s):  # another thread was faster
            return s.block
        tensors, records = _tensors(owner), [s]
        if any(t._s is not s for t in tensors) or references(s) > ALONE + len(tensors):
            tensors, records = tensors_over(s), s.records()
        old = s.bytes
        segment, array = allocate(old.size)
        array[:] = old
        places = [(t, geometry(t)) for t in tensors if t._a.size]
        for record in reversed(records):  # the first one is what others find
            shared.adopt(record, segment)
        for t, where in places:
            a = t._a.memory if t._exotic else t._a
            relocate(t, array_over(s, *where, a.dtype))
    return segment


def empty(shape: tuple[int, ...], dtype: np.dtype, allocate: Allocate = new_segment) -> Tensor:
    """A tensor in memory that other processes see, with whatever is there. It has elements."""
    segment, array = allocate(math.prod(shape) * dtype.itemsize)
    s = Storage(array)
    shared.adopt(s, segment)
    t = wrap(s.bytes.view(dtype).reshape(shape))
    t._s = s
    return t


def share_tensor(t: Tensor, allocate: Allocate = new_segment) -> None:
    """`t.share_memory_()`: nothing for a GPU's memory and for tensors without elements."""
    kind = t._k.device.type
    if kind == "meta":
        raise RuntimeError("_share_fd_: only available on CPU; a meta tensor has no memory")
    if kind == "cpu" and storage_of(t).nbytes:
        share(storage_of(t), t, allocate)


__all__ = ["Allocate", "empty", "is_shared", "new_segment", "share", "share_tensor"]
