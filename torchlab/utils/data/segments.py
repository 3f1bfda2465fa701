"""A worker writes batches into memory that the loader has done with.

Note [Segments that are used again]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
New shared memory is slow: the system clears each of its pages when it is touched for the first
time, and both processes enter each page into their tables, which together takes longer than to copy
a batch. So a worker keeps the segments of its last batches (`Pool`), and the loader keeps them
mapped (`Lent`). A segment is written again when

    nothing in the worker sees it: its `Lease` there has died,
    nothing in the loader's process sees it: the lease there has died, too, and the loader has said
    so, with a request for a later batch,
    and it has reached nobody else. A segment that either process passes on in another way, or that
    is lent at the moment of a fork, is never said to be free (`Segment.keep`).

A batch is made while those before it wait in the loader and one or two are the user's: a segment
comes back after as many batches as are asked for ahead and two more. One that was not used for
longer is forgotten on both sides, and what has it as memory goes on alone. Therefore somebody who
keeps all batches gets new memory each time, and neither process holds more of it than those last
batches. The end of a pass forgets all.

A segment travels as any other the first time, then by its number. The loader has it mapped, so a
batch that was written can be read without its worker still.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchlab._core.lazy import lazy
from torchlab._core.memory.storage import Storage

shared = lazy("torchlab._core.memory.shared")

LEAST = 1 << 16  # bytes; a smaller segment is made sooner than one is found, and costs a descriptor
MOST = 32  # segments of a worker, each of which is an open descriptor in both processes


@dataclass(eq=False, slots=True)
class _Kept:
    number: int
    segment: Any
    used: int  # the batch that it was made for, or sent with last
    here: bool = True  # something in the worker sees it
    away: bool = False  # the loader has it, and has not said that it is free
    known: bool = False  # the loader has it mapped


def _taken(numbers: list[int]) -> list[int]:
    """What is in a list to which others append at any moment; it is empty then."""
    found = numbers[:]
    del numbers[: len(found)]
    return found


class Pool:
    """A worker's segments. `ahead`: how many batches are asked for at most before the first of
    them is given out."""

    def __init__(self, ahead: int) -> None:
        self.span = ahead + 2
        self.batch = 0
        self._kept: dict[Any, _Kept] = {}  # by their segment
        self._numbers = itertools.count()
        self._left: list[int] = []  # those that nothing in this process sees any more
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def begin(self, free: list[int]) -> None:
        """A batch will be made; the loader has done with the segments of these numbers."""
        self.batch += 1
        with self._lock:
            left = _taken(self._left)
            for segment, kept in tuple(self._kept.items()):
                kept.here = kept.here and kept.number not in left
                kept.away = kept.away and kept.number not in free
                if kept.used < self.oldest:
                    del self._kept[segment]

    @property
    def oldest(self) -> int:
        """A segment that was used for this batch or a later one is kept."""
        return self.batch - self.span

    def allocate(self, nbytes: int) -> tuple[Any, np.ndarray]:
        """A segment to write into, and an array of its bytes."""
        if nbytes >= LEAST and os.getpid() == self._owner:  # a forked child has a copy of the pool
            with self._lock:
                kept = self._free(nbytes)
                if kept is not None:
                    back = functools.partial(self._left.append, kept.number)
                    return kept.segment, kept.segment.lend(back)
        segment = shared.allocate(nbytes)
        return segment, segment.array()

    def _free(self, nbytes: int) -> _Kept | None:
        for kept in self._kept.values():
            if not kept.here and not kept.away and kept.segment.nbytes == nbytes:
                kept.here = True
                return kept
        if len(self._kept) >= MOST:
            return None
        segment = shared.allocate(nbytes)
        kept = self._kept[segment] = _Kept(next(self._numbers), segment, self.batch)
        return kept

    def send(self, segment: Any) -> tuple[int, int, int, bool] | None:
        """Number, batch, the oldest batch whose segments are kept, and whether the loader has it
        mapped. None if it is not of the pool, or no longer since it is sent a second time."""
        with self._lock:
            kept = self._kept.get(segment)
            if kept is None or kept.away:
                self._kept.pop(segment, None)
                return None
            known, kept.away, kept.known, kept.used = kept.known, True, True, self.batch
            return kept.number, self.batch, self.oldest, known

    def clear(self) -> None:
        """Forget all: what is used by nobody else is given back to the system."""
        with self._lock:
            self._kept.clear()


class Lent:
    """A worker's segments as the loader has them mapped."""

    def __init__(self) -> None:
        self._mapped: dict[int, tuple[Any, int]] = {}  # by their number, with the batch
        self._free: list[int] = []

    def arrive(self, sent: tuple[int, int, int, bool], opened: Callable[[], Any]) -> Storage:
        """The storage of a segment that has come. `opened` gives one that comes the first time."""
        number, batch, oldest, known = sent
        for other in [n for n, (_, used) in self._mapped.items() if used < oldest]:
            del self._mapped[other]
        segment = self._mapped[number][0] if known else opened()
        self._mapped[number] = segment, batch
        with shared.lock():
            found = Storage(segment.lend(functools.partial(self._free.append, number)))
            shared.adopt(found, segment)
            return found

    def free(self) -> list[int]:
        """The numbers of those that nothing sees any more, once."""
        return _taken(self._free)

    def clear(self) -> None:
        """Forget all. What tensors have as memory stays."""
        self._mapped.clear()


__all__ = ["Lent", "Pool"]
