"""Tensors whose memory other processes see: what `share_memory_` does.

Source: https://docs.pytorch.org/docs/2.13/multiprocessing.html
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.resizing import array_over, tensors_over
from torchlab._core.lazy import lazy
from torchlab._core.memory.storage import Storage, origin_of
from torchlab._core.tape import geometry, relocate, storage_of
from torchlab._core.tensor import Tensor

shared = lazy("torchlab._core.memory.shared")  # loads multiprocessing

# The references to the storage of a tensor with no view: its own, a variable, and the counter's.
_ONLY_ONE = 3


def is_shared(s: Storage) -> bool:
    """Whether other processes see the memory."""
    return getattr(s.block, "shared", False)


def share(s: Storage, owner: Tensor | None = None) -> Any:
    """Move the memory to where other processes can see it (once) and give its segment. All tensors
    over the storage follow. `owner`: a tensor over it; if it is the only one, nobody has to look
    for others."""
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
        tensors: list[Any] = [owner]
        records = [s]
        if (
            owner is None
            or owner._v is not None
            or owner._s is not s
            or sys.getrefcount(s) > _ONLY_ONE + 1  # (the list's)
        ):
            tensors, records = tensors_over(s), s.records()
        old = s.bytes
        segment = shared.allocate(old.size)
        segment.array()[:] = old
        places = [(t, geometry(t)) for t in tensors if t._a.size]
        for record in reversed(records):  # the first one is what others find
            shared.adopt(record, segment)
        for t, where in places:
            a = t._a.memory if t._exotic else t._a
            relocate(t, array_over(s, *where, a.dtype))
    return segment


def empty(shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
    """A tensor in memory that other processes see, with whatever is there. It has elements."""
    segment = shared.allocate(math.prod(shape) * dtype.itemsize)
    s = Storage(segment.array())
    shared.adopt(s, segment)
    t = wrap(s.bytes.view(dtype).reshape(shape))
    t._s = s
    return t


def share_tensor(t: Tensor) -> None:
    """`t.share_memory_()`: nothing for a GPU's memory and for tensors without elements."""
    kind = t._k.device.type
    if kind == "meta":
        raise RuntimeError("_share_fd_: only available on CPU; a meta tensor has no memory")
    if kind == "cpu" and storage_of(t).nbytes:
        share(storage_of(t), t)


__all__ = ["empty", "is_shared", "share", "share_tensor"]
