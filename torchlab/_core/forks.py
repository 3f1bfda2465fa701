"""Locks that a forked process needs: at the moment of the fork no other thread has them.

A thread that holds a lock does not exist in the child, and nobody there would let go of it. So the
locks entered here are taken before a fork and let go of after it, in both processes; what they
guard is whole then. Taken all or none, so that no thread waits for this one while it waits.

Source: https://docs.python.org/3/library/os.html#os.register_at_fork
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any

_LONGEST = 1.0  # seconds; then the fork happens, as it would without this
_PAUSE = 0.0002
_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_own = threading.local()


def free_at_fork(lock: Any) -> Any:
    """Enter a lock, for as long as it exists. Returns it."""
    _locks.add(lock)
    return lock


def _try() -> list[Any] | None:
    held: list[Any] = []
    for lock in tuple(_locks):
        if not lock.acquire(blocking=False):
            _release(held)
            return None
        held.append(lock)
    return held


def _release(held: list[Any]) -> None:
    for lock in reversed(held):
        lock.release()


def _before() -> None:
    until = time.monotonic() + _LONGEST
    while (held := _try()) is None and time.monotonic() < until:
        time.sleep(_PAUSE)
    _own.held = held or []


def _after() -> None:
    held, _own.held = getattr(_own, "held", []), []
    _release(held)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)

__all__ = ["free_at_fork"]
