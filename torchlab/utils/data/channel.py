"""What a loader and a worker say to one another: pickles, together with the open descriptors of the
memory that their tensors lie in.

Note [Messages that wait]
~~~~~~~~~~~~~~~~~~~~~~~~~
Both ends of a channel are sockets. A descriptor travels with the bytes that name it, so a batch
that is written needs nothing more of its worker: it can be read if the worker has been killed or
stopped since, and reading it makes no connection back to that process.

The loader never waits for a worker that is in the middle of a message: `take` reads what is there
and keeps it until the rest has come, `post` writes what the socket takes and keeps the rest. So a
worker that stands still, whatever it was doing, is found by the loader's timeout. Workers do wait.

A message is a head (length, number of descriptors), the descriptors, the bytes. Memory that was
there before goes without a descriptor: Note [Segments that are used again] in `segments`.

Source: https://docs.python.org/3/library/socket.html#socket.socket.recvmsg
"""

from __future__ import annotations

import array
import contextlib
import errno
import functools
import io
import os
import pickle
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from multiprocessing import reduction
from typing import Any

from torchlab._core import sharing
from torchlab._core.memory.storage import Storage
from torchlab._core.tensor import Parameter, Tensor
from torchlab.multiprocessing import reductions
from torchlab.utils.data.segments import Lent, Pool

_HEAD = struct.Struct("=QI")
_MOST = 200  # descriptors in one piece; Linux takes 253
_SPACE = socket.CMSG_SPACE(_MOST * array.array("i").itemsize)
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_PAUSE = 0.001  # seconds
NOTHING = object()  # no message yet
_TOO_MANY = (
    "DataLoader: too many open files. The memory of a tensor from another process needs descriptors"
    " here. Keep fewer tensors, raise the limit (`ulimit -n`), or use"
    " multiprocessing.set_sharing_strategy('file_system')"
)


class _Sent:
    """A descriptor that travels beside the pickle, by its place among them."""

    def __init__(self, place: int) -> None:
        self.place = place

    def detach(self) -> int:
        """The descriptor here; it is the caller's now."""
        arrived = _here.fds
        fd, arrived[self.place] = arrived[self.place], -1
        return fd


class _Here(threading.local):
    """Of the message that this thread unpickles: its descriptors, and the segments that are known
    from those before it."""

    fds: list[int] = []
    lent = Lent()


_here = _Here()


class Message:
    """A pickle that is on its way, and the memory that has to be there until it has arrived."""

    def __init__(self, value: Any, pool: Pool | None = None) -> None:
        self.segments: list[Any] = []
        self._pool = pool
        self._allocate = sharing.new_segment if pool is None else pool.allocate
        file = io.BytesIO()
        pickler: Any = reduction.ForkingPickler(file, pickle.HIGHEST_PROTOCOL)
        pickler.dispatch_table[Storage] = self._storage
        if pool is not None:
            tensor = functools.partial(reductions.reduce_tensor, allocate=pool.allocate)
            pickler.dispatch_table |= {Tensor: tensor, Parameter: tensor}
        pickler.dump(value)
        self.data = file.getbuffer()

    def _storage(self, s: Storage) -> Any:
        if not s.nbytes:
            return reductions.reduce_storage(s)
        segment = sharing.share(s, allocate=self._allocate)
        sent = self._pool and self._pool.send(segment)
        if not sent:
            segment.keep()
            if segment.name is None:
                return reductions.rebuild_descriptor, self._descriptor(segment)
            segment.send(elsewhere=False)
            return reductions.rebuild_named, (segment.name, segment.nbytes)
        *_, known = sent
        if known:
            return _arrive, (sent,)
        if segment.name is None:
            return _arrive, (sent, reductions.open_descriptor, *self._descriptor(segment))
        segment.send(elsewhere=False)
        return _arrive, (sent, reductions.open_named, segment.name, segment.nbytes)

    def _descriptor(self, segment: Any) -> tuple[_Sent, int]:
        self.segments.append(segment)
        return _Sent(len(self.segments) - 1), segment.nbytes


def _arrive(sent: Any, opens: Any = None, *arguments: Any) -> Storage:
    return _here.lent.arrive(sent, lambda: opens(*arguments))


class Channel:
    """One end of a pair, see Note [Messages that wait]."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._out: deque[Any] = deque()  # what the socket did not take yet
        # Of the message that is coming in:
        self._head = b""
        self._body: bytearray | None = None
        self._got = 0
        self._fds: list[int] = []
        self.lent = Lent()

    def __reduce__(self) -> Any:
        return Channel, (self.socket,)  # when a process is started

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        """Close this end, and descriptors that came for a message without its end."""
        self.socket.close()
        for fd in self._fds:
            os.close(fd)
        self._fds = []

    # ---- writing

    def send(self, message: Message) -> None:
        """Write a message, however long it takes, after all that was posted."""
        self._out += [(piece, fds, message) for piece, fds in _pieces(message)]
        self.flush(0)

    def post(self, message: Message) -> None:
        """Write what the other end has room for; `flush` does the rest."""
        self._out += [(piece, fds, message) for piece, fds in _pieces(message)]
        self.flush()

    @property
    def behind(self) -> bool:
        """Whether something that was posted is not written yet."""
        return bool(self._out)

    def flush(self, flags: int = socket.MSG_DONTWAIT) -> None:
        """Go on writing what was posted. flags 0: until all is written."""
        while self._out:
            piece, fds, message = self._out[0]
            try:
                n = _write(self.socket, piece, fds, flags)
            except BlockingIOError:
                return
            if n == len(piece):
                self._out.popleft()
            else:
                self._out[0] = (piece[n:], [], message)

    # ---- reading

    def receive(self) -> Any:
        """The next message, waiting for it. EOFError if the other end is closed."""
        while True:
            found = self.take(0)
            if found is not NOTHING:
                return found

    def take(self, flags: int = socket.MSG_DONTWAIT) -> Any:
        """The next message if all of it is here, else NOTHING. EOFError as for `receive`."""
        try:
            if self._body is None and not self._read_head(flags):
                return NOTHING
            body: Any = self._body
            with memoryview(body) as view:
                while self._got < len(view):
                    n = self.socket.recv_into(view[self._got :], 0, flags)
                    if not n:
                        raise EOFError
                    self._got += n
        except BlockingIOError:
            return NOTHING
        fds = self._fds
        self._head, self._body, self._got, self._fds = b"", None, 0, []
        with _unpickling(fds, self.lent):
            try:
                return pickle.loads(body)
            except OSError as e:
                if e.errno in (errno.EMFILE, errno.ENFILE):
                    raise RuntimeError(_TOO_MANY) from e
                raise

    def _read_head(self, flags: int) -> bool:
        """Whether the head and all descriptors are here."""
        while True:
            if len(self._head) < _HEAD.size:
                self._head += self._read(_HEAD.size - len(self._head), flags)
                continue
            length, count = _HEAD.unpack(self._head)
            if len(self._fds) == count:
                break
            self._read(1, flags)
        self._body = bytearray(length)
        return True

    def _read(self, most: int, flags: int) -> bytes:
        data, extra, said, _ = self.socket.recvmsg(most, _SPACE, flags | _CLOEXEC)
        for level, kind, content in extra:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                found = array.array("i")
                found.frombytes(content[: len(content) - len(content) % found.itemsize])
                if not _CLOEXEC:
                    for fd in found:
                        os.set_inheritable(fd, False)
                self._fds += found
        if said & socket.MSG_CTRUNC:
            raise RuntimeError(_TOO_MANY)
        if not data:
            raise EOFError
        return data


def _pieces(message: Message) -> Iterator[tuple[Any, list[int]]]:
    """The bytes to write, and the descriptors that go with the first of each."""
    fds = [segment.fd for segment in message.segments]
    yield memoryview(_HEAD.pack(len(message.data), len(fds))), fds[:_MOST]
    for i in range(_MOST, len(fds), _MOST):
        yield memoryview(b"+"), fds[i : i + _MOST]
    yield message.data, []


def _write(end: socket.socket, piece: Any, fds: list[int], flags: int) -> int:
    if not fds:
        return end.send(piece, flags)
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
    while True:
        try:
            return end.sendmsg([piece], [rights], flags)
        except OSError as e:
            if e.errno != errno.ETOOMANYREFS:
                raise
            # The system lets a user have so many descriptors under way and no more.
            if flags & socket.MSG_DONTWAIT:
                raise BlockingIOError from e
            time.sleep(_PAUSE)


@contextlib.contextmanager
def _unpickling(fds: list[int], lent: Lent) -> Iterator[None]:
    before = _here.fds, _here.lent
    _here.fds, _here.lent = fds, lent
    try:
        yield
    finally:
        _here.fds, _here.lent = before
        for fd in fds:
            if fd >= 0:  # nobody asked for it
                os.close(fd)


def pair() -> tuple[Channel, Channel]:
    """Two ends that are connected."""
    one, other = socket.socketpair()
    return Channel(one), Channel(other)


__all__ = ["NOTHING", "Channel", "Message", "pair"]
