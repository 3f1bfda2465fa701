"""Memory that several processes see.

Note [Segments]
~~~~~~~~~~~~~~~
A `Segment` is a file that never reaches a disk, mapped into every process that uses it. By the
strategy it is passed on

    file_descriptor   as an open descriptor. The file has no name: whatever happens to the
                      processes, the kernel frees it with the last mapping. The default.
    file_system       by its name in /dev/shm, for programs that run out of descriptors. Processes
                      that use it hold a shared lock on it (the kernel drops those of a process that
                      dies), and its first bytes count the names that are on their way. Who lets go
                      last removes the name. If no process is left to do that, Python's resource
                      tracker does, a process that outlives them.

A segment is the `block` of a `Storage` and is let go when no storage has it. `CACHE` finds the
storage of a segment that comes in a second time, so that views sent one by one share it again.

Who keeps a segment to use it again *lends* it: arrays then are over a `Lease`, which dies with the
last of them. As it says nothing of other processes, those that may see the memory in another way
call `Segment.keep` (it is passed on), or come by `fork`, which keeps all that is lent.

Loaded when memory is first shared.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import struct
import tempfile
import threading
import weakref
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

import numpy as np

from torchlab._core.memory.storage import Storage, _Memory, address_of

FOLDER = "/dev/shm"
_HEADER = 64  # bytes before the elements in a named segment, so that these stay aligned
_COUNT = struct.Struct("=qQ")  # names under way; the creator's resource tracker
_ELSEWHERE = _COUNT.size  # a byte: it was sent in another way than to a loader

strategy = "file_descriptor"
CACHE: weakref.WeakValueDictionary[Any, Storage] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def lock() -> threading.RLock:
    """Held while memory moves; another one in a forked child."""
    return _lock


def strategies() -> set[str]:
    """The ways in which this system can pass memory on."""
    return {"file_descriptor", "file_system"} if os.path.isdir(FOLDER) else {"file_descriptor"}


class Lease(_Memory):
    """A segment's bytes, lent to arrays. `back` is called when none of them is left, unless the
    segment is kept."""

    __slots__ = ("back", "__weakref__")
    back: Callable[[], None] | None

    def __del__(self) -> None:
        if self.back is not None:
            self.back()


_LEASES: weakref.WeakSet[Lease] = weakref.WeakSet()


def _keep_all() -> None:
    with _lock:
        for lease in tuple(_LEASES):
            lease.back = None


# Twice, for what other threads lend and give back meanwhile.
os.register_at_fork(before=_keep_all, after_in_parent=_keep_all)


class Segment:
    """One mapped file. `fd` stays open as long as the segment is used; the mapping lasts as long as
    an array on it."""

    shared = True  # what tells it from an allocator's block
    name: str | None = None
    start = 0  # where the elements begin
    _lease: Callable[[], Lease | None] = staticmethod(lambda: None)  # the one that is out

    def __init__(self, fd: int, nbytes: int) -> None:
        self._fd = [fd]
        self.nbytes = nbytes
        self.map = mmap.mmap(fd, self.start + nbytes)
        weakref.finalize(self, _close, self._fd)

    @property
    def fd(self) -> int:
        """Its descriptor."""
        return self._fd[0]

    @property
    def key(self) -> Any:
        """What the cache knows it by."""
        found = os.fstat(self.fd)
        return found.st_dev, found.st_ino

    def array(self) -> np.ndarray:
        """The elements' bytes."""
        if (lease := self._lease()) is not None:
            return np.asarray(lease)
        return np.frombuffer(self.map, np.uint8, self.nbytes, self.start)

    def lend(self, back: Callable[[], None]) -> np.ndarray:
        """The elements' bytes, for a while: `back` is called when no array sees them any more."""
        address = address_of(self.array())
        lease = Lease(address, self.nbytes, self.map, readonly=False)
        lease.back = back
        self._lease = weakref.ref(lease)
        with _lock:
            _LEASES.add(lease)
        return np.asarray(lease)

    def keep(self) -> None:
        """Somebody else may see the memory for as long as it likes: it is not given back."""
        if (lease := self._lease()) is not None:
            lease.back = None


def _close(fd: list[int]) -> None:
    os.close(fd[0])


def _anonymous(nbytes: int) -> Segment:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("torchlab", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    return _sized(fd, nbytes, Segment)


def _sized(fd: int, nbytes: int, make: Any, path: str = "memory") -> Any:
    size = make.start + nbytes
    try:
        os.ftruncate(fd, size)
        if make is Named and hasattr(os, "posix_fallocate"):
            # A write into a page that the folder's file system has no room for ends the process.
            os.posix_fallocate(fd, 0, size)
        return make(fd, nbytes)
    except OSError as error:
        os.close(fd)
        raise RuntimeError(
            f"unable to allocate shared memory(shm) for file <{path}>: {error.strerror}"
            f" ({error.errno}). {size} bytes were asked for. Take smaller batches, or raise the"
            f" limit: {_limit(make)}"
        ) from error
    except BaseException:
        os.close(fd)
        raise


def _limit(make: Any) -> str:
    if make is Named:
        return f"the size of {FOLDER}, or multiprocessing.set_sharing_strategy('file_descriptor')"
    return "open files (`ulimit -n`), the size of a file (`ulimit -f`)"


class Named(Segment):
    """A segment with a name."""

    start = _HEADER

    def __init__(self, fd: int, nbytes: int) -> None:
        self._fd = [fd]
        self.nbytes = nbytes
        self.map = mmap.mmap(fd, self.start + nbytes)
        fcntl.flock(fd, fcntl.LOCK_SH)
        self.name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
        weakref.finalize(self, _let_go, self._fd, self.map, self.name)
        _NAMED.add(self)

    @classmethod
    def create(cls, nbytes: int) -> Named:
        """A new one."""
        name = f"torchlab_{os.getpid()}_{secrets.token_hex(8)}"
        resource_tracker.register(f"/{name}", "shared_memory")
        path = f"{FOLDER}/{name}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            made: Named = _sized(fd, nbytes, cls, path)
        except BaseException:
            os.unlink(path)
            resource_tracker.unregister(f"/{name}", "shared_memory")
            raise
        _COUNT.pack_into(made.map, 0, 0, _tracker())
        return made

    @classmethod
    def open(cls, name: str, nbytes: int) -> Named:
        """One that another process made and counted as under way."""
        fd = os.open(f"{FOLDER}/{name}", os.O_RDWR | os.O_CLOEXEC)
        try:
            made = cls(fd, nbytes)
        except BaseException:
            os.close(fd)
            raise
        _count(fd, made.map, -1)
        return made

    def send(self, elsewhere: bool = True) -> None:
        """Count a name that is now under way; `elsewhere`: not to the loader whose worker this
        is."""
        if elsewhere:
            self.map[_ELSEWHERE] = 1
        _count(self.fd, self.map, 1)


_NAMED: weakref.WeakSet[Named] = weakref.WeakSet()


def _count(fd: int, memory: mmap.mmap, change: int) -> int:
    """Change how many names are under way, and say how many there are."""
    with _lock:
        fcntl.lockf(fd, fcntl.LOCK_EX, 8)
        try:
            n, tracker = _COUNT.unpack_from(memory, 0)
            _COUNT.pack_into(memory, 0, n + change, tracker)
            return n + change
        finally:
            fcntl.lockf(fd, fcntl.LOCK_UN, 8)


def _let_go(fd: list[int], memory: mmap.mmap, name: str) -> None:
    """Close; remove the name if nobody else uses the segment or is about to."""
    with _lock:
        if _count(fd[0], memory, 0) <= 0 and _alone(fd[0]):
            _, tracker = _COUNT.unpack_from(memory, 0)
            try:
                os.unlink(f"{FOLDER}/{name}")
            except FileNotFoundError:
                pass  # another process that let go at the same time was faster
            else:
                if tracker == _tracker():
                    resource_tracker.unregister(f"/{name}", "shared_memory")
        os.close(fd[0])


def remove_of(pid: int) -> None:
    """Remove what a loader's worker that has ended had made for it: what was not yet sent, or not
    yet read. Not what somebody has open, or what may be under way to others."""
    if not os.path.isdir(FOLDER):
        return
    for name in os.listdir(FOLDER):
        if not name.startswith(f"torchlab_{pid}_"):
            continue
        try:
            fd = os.open(f"{FOLDER}/{name}", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            head = os.pread(fd, _HEADER, 0)
            if not _alone(fd) or len(head) < _HEADER or head[_ELSEWHERE]:
                continue
            os.unlink(f"{FOLDER}/{name}")
            if _COUNT.unpack_from(head)[1] == _tracker():
                resource_tracker.unregister(f"/{name}", "shared_memory")
        except FileNotFoundError:
            pass  # another process was faster
        finally:
            os.close(fd)


def _alone(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _tracker() -> int:
    """Which resource tracker this process has: processes of one program share one."""
    fd = resource_tracker.getfd()
    assert fd is not None
    return os.fstat(fd).st_ino


def _after_fork() -> None:
    """In a forked child: a lock is the parent's until the child has a descriptor of its own."""
    global _lock
    _lock = threading.RLock()
    for segment in tuple(_NAMED):
        path = f"{FOLDER}/{segment.name}"
        if os.path.exists(path):
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            os.close(segment.fd)
            segment._fd[0] = fd
            fcntl.flock(fd, fcntl.LOCK_SH)


os.register_at_fork(after_in_child=_after_fork)


def allocate(nbytes: int) -> Segment:
    """A new segment by the strategy in force."""
    return Named.create(nbytes) if strategy == "file_system" else _anonymous(nbytes)


def adopt(s: Storage, segment: Segment) -> None:
    """Let a storage have a segment as its memory. The bytes are there already."""
    s.owner = s._bytes = segment.array()
    s.block = segment
    s.lent = True  # its length is fixed
    CACHE[segment.key] = s


def arrived(key: Any, make: Any) -> Storage:
    """The storage of a segment that another process has passed on: the one it has here already, or
    one over the segment that `make()` gives."""
    with _lock:
        found = CACHE.get(key)
        if found is None:
            segment = make()
            found = Storage(segment.array())
            adopt(found, segment)
        return found


__all__ = [
    "CACHE", "Named", "Segment", "adopt", "allocate", "arrived", "lock", "strategies", "strategy",
]  # fmt: skip
