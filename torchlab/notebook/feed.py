"""`MemoryFeed`: from the allocators' events to messages on a comm.

Note: why a thread, and why no locks in the listeners
-----------------------------------------------------
Messages *to* a busy kernel wait, messages *from* it do not: a small daemon thread gets the
interpreter every few milliseconds while a cell computes, and touches nothing but statistics and
the comm. The listeners themselves run in the middle of an allocation, perhaps inside a garbage
collection inside another listener; a lock there could wait for itself. So they only do arithmetic
on dictionaries and wake the thread through `queue.SimpleQueue`, whose `put` is documented as
reentrant.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, Protocol

from torchlab._core import events
from torchlab.notebook.devices import DeviceMemory, Reader, read_devices

TARGET = "torchlab.memory"
PROTOCOL = 1  # of the messages; the page refuses another
NOISE = 1 << 20  # bytes: a process's resident memory flickers; less than this is no news

Callback = Callable[[dict[str, Any]], None]


class CommLike(Protocol):
    """What the feed needs of a comm (the package `comm`)."""

    def send(self, data: dict[str, Any]) -> None: ...
    def close(self) -> None: ...
    def on_msg(self, callback: Callback) -> None: ...
    def on_close(self, callback: Callback) -> None: ...


class MemoryFeed:
    """Sends the devices' memory over `comm` when it changes.

    `interval` is the least time between two messages in seconds, `idle` how often a kernel at rest
    looks whether its process has grown. The final state is always sent: an event that arrives
    during the pause after a message causes the next one.
    """

    def __init__(
        self,
        comm: CommLike,
        read: Reader = read_devices,
        *,
        interval: float = 0.06,
        idle: float = 1.0,
    ) -> None:
        self._comm = comm
        self._read = read
        self._interval = interval
        self._idle = idle
        self._live: dict[str, int] = {}  # device -> bytes, by the events alone
        self._high: dict[str, int] = {}  # device -> the most since the last message
        self._events = 0
        self._awake = False
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False ends the thread
        self._sending = threading.Lock()  # keeps an older state from overtaking a newer one
        self._last: tuple[DeviceMemory, ...] | None = None
        self._sequence = 0
        self._subscriptions: list[events.Subscription] = []
        self._thread: threading.Thread | None = None
        self.closed = False
        comm.on_msg(self._on_message)
        comm.on_close(lambda _message: self.close())

    def start(self) -> MemoryFeed:
        """Listen from now on and send the present state. Returns the feed itself."""
        self._subscriptions = [
            events.block_alloc.subscribe(self._on_alloc),
            events.block_free.subscribe(self._on_free),
            events.segment_alloc.subscribe(self._on_segment),
            events.segment_free.subscribe(self._on_segment),
        ]
        self.flush(force=True)
        self._thread = threading.Thread(target=self._run, name="torchlab-memory", daemon=True)
        self._thread.start()
        return self

    def flush(self, *, force: bool = False) -> bool:
        """Send the present state if it differs from the last one sent; say whether it was sent."""
        with self._sending:
            if self.closed:
                return False
            state = self._sample()
            if not force and self._last is not None and not _differs(self._last, state):
                return False
            self._last = state
            self._sequence += 1
            self._comm.send(
                {
                    "feed": TARGET,  # a page that came late has not seen the comm open
                    "protocol": PROTOCOL,
                    "sequence": self._sequence,
                    "time": time.time(),
                    "devices": [asdict(d) for d in state],
                }
            )
            return True

    def close(self) -> None:
        """Stop listening, end the thread and close the comm. Calling it again does nothing."""
        with self._sending:
            if self.closed:
                return
            self.closed = True
        for subscription in self._subscriptions:
            subscription.close()
        self._wake.put(False)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=2.0)
        self._comm.close()

    def forget_in_child(self) -> None:
        """After a fork: the child has the listeners but not the thread, and the page is not its."""
        self.closed = True
        self._sending = threading.Lock()  # the thread that is gone may have held it
        for subscription in self._subscriptions:
            subscription.close()

    def _on_alloc(self, *, device: str, size: int, **_: Any) -> None:
        live = self._live[device] = self._live.get(device, 0) + size
        if live > self._high.get(device, 0):
            self._high[device] = live
        self._on_segment()

    def _on_free(self, *, device: str, size: int, **_: Any) -> None:
        self._live[device] = self._live.get(device, 0) - size
        self._on_segment()

    def _on_segment(self, **_: Any) -> None:
        self._events += 1
        if not self._awake:
            self._awake = True
            self._wake.put(True)

    def _on_message(self, message: dict[str, Any]) -> None:
        """A page that opened late, or was reloaded, asks for the state."""
        if message["content"]["data"].get("request") == "state":
            self.flush(force=True)

    def _sample(self) -> tuple[DeviceMemory, ...]:
        before = self._events
        self._awake = False  # first: what happens from here on wakes the thread again
        state = self._read()
        high, self._high = self._high, {}
        if before == self._events:  # nothing moved meanwhile: the count and the events agree
            self._live = {d.device: d.allocated for d in state}
        return tuple(replace(d, high=max(d.allocated, high.get(d.device, 0))) for d in state)

    def _run(self) -> None:
        while not self.closed:
            try:
                if not self._wake.get(timeout=self._idle):
                    return
            except queue.Empty:
                pass  # at rest: only the process itself may have grown
            self.flush()
            time.sleep(self._interval)


def _differs(last: tuple[DeviceMemory, ...], new: tuple[DeviceMemory, ...]) -> bool:
    """Is `new` worth a message? Everything counts but the flicker of the process's own size."""
    if [d.device for d in last] != [d.device for d in new]:
        return True
    for a, b in zip(last, new, strict=True):
        if a.kind == "process":
            if abs(a.allocated - b.allocated) >= NOISE or a.limit != b.limit:
                return True
        elif a != b:
            return True
    return False
