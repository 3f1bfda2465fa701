"""Coalescing: many updates come in, few go out, the last one always does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any


class Throttle:
    """Calls `publish(value)` at most every `interval` seconds with the newest value.

    The first value goes out at once in the caller's thread; a value that came too early goes out
    from a timer's thread when its time has come, unless a newer one replaced it. Publishing that
    takes long stretches the interval, so that drawing takes at most about a quarter of the time.

    A value may be a function without arguments that makes it, called only when it is needed; it
    must be safe to call from another thread. What it makes at once, in the caller's thread, is made
    again when the interval is over: the statement that caused it is still running, and a new tensor
    has no name before that ends. `put` never waits: it may be called with any lock
    held, also one that such a function needs (the allocator's, for instance).
    """

    def __init__(self, publish: Callable[[Any], None], interval: float = 0.05) -> None:
        self._publish = publish
        self._least = self._interval = interval
        self._lock = threading.RLock()
        self._last = -float("inf")
        self._pending: list[Any] = []  # empty, or the one value that waits
        self._timer: threading.Timer | None = None

    def put(self, value: Any) -> None:
        """Take a new value."""
        before = self._last
        self._pending = [value]
        self._settle()
        if callable(value) and self._last != before and not self._pending:
            self._pending = [value]
            self._settle()

    def _settle(self) -> None:
        """Publish or set the timer, unless another thread is at it. It looks again after it let go
        of the lock, for a value may have come in just before that."""
        while self._pending and self._timer is None and self._lock.acquire(blocking=False):
            try:
                wait = self._last + self._interval - time.monotonic()
                if wait <= 0:
                    self._send()
                elif self._timer is None:
                    self._timer = threading.Timer(wait, self._due)
                    self._timer.daemon = True
                    self._timer.start()
            finally:
                self._lock.release()

    def _due(self) -> None:
        with self._lock:
            self._timer = None
            self._send()
        self._settle()

    def flush(self) -> None:
        """Publish the value that waits, if any, now."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._send()

    def _send(self) -> None:
        pending, self._pending = self._pending, []
        if not pending:
            return
        start = time.monotonic()
        value = pending[0]
        try:
            self._publish(value() if callable(value) else value)
        finally:
            self._last = time.monotonic()
            self._interval = max(self._least, 4 * (self._last - start))
