"""Where the answers of a loader's workers come in.

Note [The pinning thread]
~~~~~~~~~~~~~~~~~~~~~~~~~
An `Inbox` reads when the loader asks. A `PinningInbox` reads in a thread of its own, as soon as
there is something, and puts the batches into page-locked memory, so that this is done while the
loop works on an earlier batch. What the thread has ready goes through a queue.

The thread does nothing else: requests are sent, and what became of a worker is found out, by who
owns the loader. Both use the channels, each of which has a lock; nobody waits for a worker while
holding it. A request that the channel did not take at once is written on by who polls, the thread;
a byte on a pair of sockets makes it look, or end.

It is started when all workers have been, so no worker is a fork of a process that runs it. It knows
its inbox and not the iterator, so an iterator that is dropped takes its thread with it; and since
that may happen in any thread, in this one too, the locks are reentrant.
"""

from __future__ import annotations

import contextlib
import math
import queue
import select
import socket
import threading
import time
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any

from torchlab import accelerator
from torchlab.utils.data import channel
from torchlab.utils.data.pinning import pin_memory
from torchlab.utils.data.watch import Told, stretch
from torchlab.utils.data.worker import Ended, Failure

_FOLLOWS = 1.0  # seconds in which what a worker tells of a batch follows it
_PATIENCE = 5.0  # seconds that the thread has to end


class Gone(Exception):
    """A worker's process is gone, and it has left nothing to read."""

    def __init__(self, worker: Any) -> None:
        super().__init__(worker.number)
        self.worker = worker


@dataclass(eq=False, slots=True)
class Arrived:
    """An answer. told: what was done for it and when, where somebody looks; came: when who asked
    for it could go on."""

    worker: Any
    number: Any
    answer: Any
    told: list[Told] | None
    came: float


class Inbox:
    """Reads the answers of workers, a list that may still be filled."""

    def __init__(self, workers: list[Any]) -> None:
        self.workers = workers
        self.broken = False  # an answer could not be read
        self.ended = False
        self.ear: socket.socket | None = None  # where somebody wakes who waits here

    def start(self) -> None:
        """All workers are there."""

    def close(self) -> None:
        """Nobody will ask any more."""
        self.ended = True

    def get(self, seconds: float | None) -> Arrived | None:
        """The next answer of any worker; None if there is none within the time. Raises Gone, and
        whatever a message raises that cannot be read; then `broken` is true."""
        until = None if seconds is None else time.perf_counter() + seconds
        while not self.ended:
            left = None if until is None else max(0.0, until - time.perf_counter())
            ready = self._wait(left)
            came = time.perf_counter()
            if ready is None:
                break
            w, message = self._read(ready)
            if w is not None and type(message) is tuple:
                number, answer, *watched = message
                told = self._hear(w, came) if watched else None
                return Arrived(w, number, answer, told, came)
        return None

    def _wait(self, seconds: float | None) -> dict[Any, bool] | None:
        """Who has something to read, and whether it is more than that its process is gone. None
        after the time."""
        poll = select.poll()
        of: dict[int, Any] = {}
        for w in self.workers:
            of[w.channel.fileno()] = of[w.process.sentinel] = w
            poll.register(w.channel, select.POLLIN | (select.POLLOUT if w.channel.behind else 0))
            poll.register(w.process.sentinel, select.POLLIN)
        if self.ear is not None:
            poll.register(self.ear, select.POLLIN)
        ready: dict[Any, bool] = {}
        found = poll.poll(None if seconds is None else math.ceil(seconds * 1000))
        for fd, event in found:
            w = of.get(fd)
            if w is None:
                with contextlib.suppress(OSError):
                    self.ear.recv(4096)  # type: ignore[union-attr]
                continue
            if event & select.POLLOUT:
                with contextlib.suppress(OSError), w.lock:
                    w.channel.flush()
            if event & ~select.POLLOUT:
                ready[w] = ready.get(w, False) or fd != w.process.sentinel
        return ready if found else None

    def _read(self, ready: dict[Any, bool]) -> tuple[Any, Any]:
        """The first message that is there as a whole."""
        for w, more in ready.items():
            try:
                if not more:  # its process is gone, and it has left nothing to read
                    raise EOFError
                with w.lock:
                    message = w.channel.take()
            except (EOFError, OSError):
                self.broken = True
                raise Gone(w) from None
            except BaseException:
                self.broken = True
                raise
            if message is not channel.NOTHING:
                return w, message
        return None, None

    def _hear(self, w: Any, came: float) -> list[Told]:
        """What a worker tells of a batch, and how long it took to read both."""
        told: list[Told] = []
        until = time.perf_counter() + _FOLLOWS
        with contextlib.suppress(EOFError, OSError):  # it is gone; the batch is here
            while True:
                with w.lock:
                    heard = w.channel.take()
                if heard is not channel.NOTHING:
                    told = heard
                    break
                left = until - time.perf_counter()
                if left <= 0 or not connection.wait([w.channel.socket], left):
                    break  # it stands still; what comes later is passed over
        told.append(stretch("receive", came, time.perf_counter()))
        return told


class PinningInbox(Inbox):
    """Reads in a thread that pins the batches, see Note [The pinning thread]."""

    def __init__(self, workers: list[Any]) -> None:
        super().__init__(workers)
        self._device = accelerator.current_device_index()
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._mouth: socket.socket | None = None
        self._lock = threading.RLock()  # of the two sockets

    def start(self) -> None:
        self.ear, self._mouth = socket.socketpair()
        self.ear.setblocking(False)
        self._mouth.setblocking(False)
        for w in self.workers:
            w.wake = self._wake
        thread = threading.Thread(target=self._run, name="torchlab pinning", daemon=True)
        thread.start()
        self._thread = thread

    def get(self, seconds: float | None) -> Arrived | None:
        try:
            found = self._queue.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            try:
                raise found
            finally:
                del found  # its traceback has this frame
        found.came = time.perf_counter()
        return found

    def close(self) -> None:
        """End the thread. One that is in the middle of a program's own `pin_memory` for longer than
        a few seconds ends after it."""
        self.ended = True
        self._wake()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE)
        if thread is None or not thread.is_alive():
            self._close_sockets()
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()

    def _wake(self) -> None:
        with contextlib.suppress(OSError), self._lock:  # full: it will wake anyway
            if self._mouth is not None:
                self._mouth.send(b"\0")

    def _close_sockets(self) -> None:
        with self._lock:
            for end in (self.ear, self._mouth):
                if end is not None:
                    end.close()
            self.ear = self._mouth = None

    def _run(self) -> None:
        try:
            if accelerator.current_device_index() != self._device:  # it is each thread's own
                accelerator.set_device_index(self._device)
            while (found := super().get(None)) is not None:
                self._pin(found)
                self._queue.put(found)
                del found  # or the batch would live until the next one comes
        except BaseException as error:
            self.broken = True
            self._queue.put(error)
        finally:
            if self.ended:
                self._close_sockets()

    def _pin(self, found: Arrived) -> None:
        if type(found.number) is not int or type(found.answer) in (Ended, Failure):
            return
        began = time.perf_counter()
        try:
            found.answer = pin_memory(found.answer)
        except Exception:
            found.answer = Failure(f"in pin memory thread for device {self._device}")
        if found.told is not None:
            found.told.append(stretch("pin", began, time.perf_counter()))


def inbox(workers: list[Any], pins: bool) -> Inbox:
    """What reads the answers of workers. `pins`: into page-locked memory."""
    return PinningInbox(workers) if pins else Inbox(workers)


__all__ = ["Arrived", "Gone", "Inbox", "inbox"]
