"""The memory behind tensors: one `Storage` for a tensor and all its views.

A tensor that an operator has just made has no Storage yet: none means version 0 and no alias. It is
made when a view is taken, when the tape saves the tensor, or when something is written in place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np


class _Memory:
    """Lends NumPy a range of bytes and keeps its owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, nbytes: int, owner: Any, readonly: bool) -> None:
        self.__array_interface__ = {
            "data": (address, readonly), "shape": (nbytes,), "typestr": "|u1", "version": 3,
        }  # fmt: skip
        self.owner = owner


def address_of(array: Any) -> int:
    """The address of an array's first element."""
    return array.__array_interface__["data"][0]


class Storage:
    """Memory, its version counter, and what the tape must know about writes.

    owner: the array (or block) that holds the memory; version: how many writes in place happened;
    stale: how many *recorded* writes happened: a view made at a lower count renews its grad_fn;
    writer: (code object, instruction) of the last write to a version that the tape had saved.
    """

    __slots__ = (
        "owner", "version", "stale", "saved", "writer", "block", "lent", "_bytes", "__weakref__",
    )  # fmt: skip

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.version = 0
        self.stale = 0
        self.saved = -1  # the newest version that the tape saved; -1: none
        self.writer: tuple[CodeType, int] | None = None
        self.block: Any = None
        self.lent = False  # somebody else's memory (NumPy's, a buffer's): it cannot grow
        self._bytes: np.ndarray | None = None

    @property
    def bytes(self) -> np.ndarray:
        """The whole memory as a one-dimensional uint8 array (shared, not copied)."""
        found = self._bytes
        if found is None:
            a = self.owner
            low, high = np.lib.array_utils.byte_bounds(a)
            if a.size == 0:
                low = high = address_of(a)
            found = self._bytes = np.asarray(_Memory(low, high - low, a, not a.flags.writeable))
        return found

    @property
    def nbytes(self) -> int:
        return self.bytes.size

    @property
    def address(self) -> int:
        if hasattr(self.owner, "offset"):  # meta: no memory; offsets count from nothing
            return 0
        return address_of(self.bytes)

    def hold_block(self, block: Any, free: Callable[[Any], None]) -> None:
        """Tie an allocator's block to this storage: it goes back when the storage dies."""
        self.block = block
        weakref.finalize(self, free, block).atexit = False
