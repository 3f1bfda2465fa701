"""The memory behind tensors: one `Storage` for a tensor and all its views.

A tensor that an operator has just made has no Storage yet: none means version 0 and no alias. It is
made when a view is taken, when the tape saves the tensor, or when something is written in place.
"""

from __future__ import annotations

import gc
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


TWINS: list[bool] = []  # not empty once a memory had two records: they may be of the same memory


class Storage:
    """Memory, its version counter, and what the tape must know about writes.

    owner: the array (or block) that holds the memory; version: how many writes in place happened;
    stale: whether views may have to renew their grad_fn: Note [Views that fell behind] in tape;
    writer: (code object, instruction) of the last write to a version that the tape had saved.
    """

    __slots__ = (
        "owner", "version", "stale", "saved", "writer", "block", "lent", "_bytes", "__weakref__",
    )  # fmt: skip

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.version = 0
        self.stale = False
        self.saved = -1  # the newest version that the tape saved or has views of; -1: none
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

    def twin(self) -> Twin:
        """The same memory with a version counter of its own: of `x.data`."""
        r = Twin(self.owner)
        if not TWINS:
            TWINS.append(True)
        if self.block is None and type(self) is Storage:  # as a rule
            r.origin, r._bytes, r.lent = self, self._bytes, self.lent
        else:
            self.share_with(r)
        return r

    def share_with(self, r: Twin) -> None:
        """Let `r` be a record of the same memory."""
        r.origin = origin_of(self)
        r.block, r.lent = self.block, self.lent
        if self.block is not None:
            r.owner = self  # keeps the block of the allocator
            r._bytes = self.bytes
        else:
            r._bytes = self._bytes

    def records(self) -> list[Storage]:
        """All records of this memory: the first one and its twins. (Twins point at the first, not
        the other way round; memory changes rarely enough to look.)"""
        first = origin_of(self)
        twins = [r for r in gc.get_referrers(first) if isinstance(r, Twin) and r.origin is first]
        return [first, *twins]

    def move(self, owner: Storage) -> None:
        """Let all records be of `owner`'s memory, from its first byte on."""
        for s in self.records():
            s.owner, s._bytes, s.block = owner, owner.bytes, None

    def hold_block(self, block: Any, free: Callable[[Any], None]) -> None:
        """Tie an allocator's block to this storage: it goes back when the storage dies."""
        self.block = block
        weakref.finalize(self, free, block).atexit = False


class Twin(Storage):
    """One more record of a memory, with another version counter. `origin`: the first record."""

    __slots__ = ("origin",)
    origin: Storage


class Exchanged(Twin):
    """The record of a tensor that got other memory (`x.data = y`, `x.set_(y)`): the tensor keeps
    its version counter, and its old views share it."""

    __slots__ = ("counter",)
    counter: Storage
    version = property(  # type: ignore[assignment]
        lambda s: s.counter.version, lambda s, value: setattr(s.counter, "version", value)
    )


def exchanged(old: Storage, new: Storage) -> Storage:
    """A record of new's memory that counts writes together with `old`."""
    r = Exchanged.__new__(Exchanged)
    r.counter = old.counter if type(old) is Exchanged else old
    version = r.version
    if not TWINS:
        TWINS.append(True)
    Storage.__init__(r, new.owner)
    r.version = version
    new.share_with(r)
    return r


def origin_of(s: Storage) -> Storage:
    """The first record of this memory."""
    return s.origin if isinstance(s, Twin) else s
