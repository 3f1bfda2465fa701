"""Messages between a loader and its workers: whole or not at all, with their tensors' memory."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import socket
import time

import numpy as np
import pytest

import torchlab as torch
from tests.utils.data.leaks import descriptors, nothing_left
from torchlab._core import sharing
from torchlab.utils import data as D
from torchlab.utils.data import channel, collate


@pytest.fixture
def ends():
    gc.collect()
    before = descriptors()
    one, other = channel.pair()
    yield one, other
    one.close()
    other.close()
    gc.collect()
    assert descriptors().items() <= before.items()  # others may have been closed


def test_a_message_comes_as_a_whole(ends):
    one, other = ends
    assert other.take() is channel.NOTHING
    x = torch.arange(6.0)
    one.send(channel.Message(("a", [x, {"b": x[2:]}, 3])))
    name, (y, inner, three) = other.take()
    assert (name, three) == ("a", 3) and y.tolist() == x.tolist() and y.is_shared()
    inner["b"][0] = 9  # one memory, in both
    assert y[2] == x[2] == 9
    assert other.take() is channel.NOTHING


def test_in_pieces(ends):
    """Nothing blocks and nothing is lost wherever a message is cut."""
    one, other = ends
    message = channel.Message([torch.ones(3), "x" * 50])
    pieces = [(bytes(piece), fds) for piece, fds in channel._pieces(message)]
    for piece, fds in pieces:
        for k in range(len(piece)):
            assert other.take() is channel.NOTHING
            channel._write(one.socket, piece[k : k + 1], fds if k == 0 else [], 0)
    x, text = other.take()
    assert x.tolist() == [1, 1, 1] and len(text) == 50


def test_more_than_the_socket_takes(ends):
    one, other = ends
    for i in range(4):
        one.post(channel.Message((i, b"x" * 300_000)))
    assert one.behind
    got = []
    while len(got) < 4:
        one.flush()
        found = other.take()
        if found is not channel.NOTHING:
            got.append((found[0], len(found[1])))
    assert not one.behind and got == [(i, 300_000) for i in range(4)]


def test_hundreds_of_tensors(ends):
    one, other = ends
    tensors = [torch.full((2,), float(i)) for i in range(450)]
    one.post(channel.Message([*tensors, tensors[7]]))
    got = channel.NOTHING
    while got is channel.NOTHING:
        one.flush()
        got = other.take()
    assert [x[0].item() for x in got] == [*range(450), 7.0]
    got[7][0] = -1
    assert got[450][0] == -1  # the same memory once


def test_too_many_descriptors_under_way(ends, monkeypatch):
    """Linux refuses more of them for a user without privileges; that passes."""
    one, other = ends
    refusals = [OSError(errno.ETOOMANYREFS, "too many references")] * 3
    real = socket.socket.sendmsg

    def sendmsg(self, *arguments):
        if refusals:
            raise refusals.pop()
        return real(self, *arguments)

    monkeypatch.setattr(socket.socket, "sendmsg", sendmsg)
    one.post(channel.Message(torch.ones(2)))
    assert one.behind and other.take() is channel.NOTHING and len(refusals) == 2
    one.flush(0)
    assert not one.behind and other.take().tolist() == [1, 1]


def test_descriptors_of_what_never_ends_are_closed(ends):
    one, other = ends
    message = channel.Message(torch.ones(3))
    head, fds = next(channel._pieces(message))
    channel._write(one.socket, head, fds, 0)
    assert other.take() is channel.NOTHING and len(other._fds) == 1
    one.close()
    with pytest.raises(EOFError):
        other.take()


@contextlib.contextmanager
def room_for(n):
    """No more than `n` files can be opened."""
    used = descriptors()
    limit = next(k for k in range(1 << 20) if k - sum(fd < k for fd in used) == n)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Refuses:
    def __reduce__(self):
        return _refuse, ()


def _refuse():
    raise ValueError("not here")


def test_descriptors_of_what_cannot_be_made_are_closed(ends):
    one, other = ends
    one.send(channel.Message([Refuses(), torch.ones(3)]))
    with pytest.raises(ValueError, match="not here"):
        other.take()
    one.send(channel.Message("next"))
    assert other.take() == "next"


def test_too_many_open_files(ends):
    one, other = ends
    one.send(channel.Message([torch.ones(1) for _ in range(8)]))
    with room_for(3), pytest.raises(RuntimeError, match="too many open files.*file_system"):
        other.take()


def test_a_loader_whose_batches_need_too_many_files():
    loader = D.DataLoader([[torch.ones(1)] * 1 for _ in range(4000)], 1, num_workers=1)
    list(D.DataLoader(range(2), num_workers=1))
    with nothing_left(), room_for(40), pytest.raises(RuntimeError, match="too many open files"):
        list(loader)  # all are kept


class Slow:
    """Reads its requests late; they are longer than the socket's buffer."""

    def __len__(self):
        return 400_000

    def __getitem__(self, i):
        return i

    def __getitems__(self, indices):
        time.sleep(0.2)
        return indices[:1]


def test_long_requests_do_not_block():
    sampler = D.BatchSampler(D.SequentialSampler(Slow()), 100_000, False)
    began = time.monotonic()
    batches = iter(D.DataLoader(Slow(), batch_sampler=sampler, num_workers=1, prefetch_factor=4))
    asked = time.monotonic() - began
    assert [b.tolist() for b in batches] == [[0], [100_000], [200_000], [300_000]]
    assert asked < time.monotonic() - began


def test_batches_are_put_together_in_shared_memory(monkeypatch):
    monkeypatch.setattr(collate, "allocate", sharing.new_segment)
    for make in (
        lambda i: torch.full((2, 3), float(i)),
        lambda i: torch.full((2, 3), i, dtype=torch.bfloat16),
        lambda i: np.full((3, 2), i, np.int16).T,
        lambda i: torch.full((3, 2), float(i)).T,
        lambda i: torch.tensor(float(i)),
    ):
        batch = D.default_collate([make(i) for i in range(4)])
        with monkeypatch.context() as m:
            m.setattr(collate, "allocate", None)
            plain = D.default_collate([make(i) for i in range(4)])
        assert batch.is_shared() and not plain.is_shared()
        assert torch.equal(batch, plain) and batch.dtype is plain.dtype
        assert batch.stride() == plain.stride()
    empty = D.default_collate([torch.empty(0)] * 2)
    assert empty.shape == (2, 0)
    parameter = torch.nn.Parameter(torch.ones(2))
    assert D.default_collate([parameter, parameter]).requires_grad
    with pytest.raises(RuntimeError, match="equal size"):
        D.default_collate([torch.ones(1), torch.ones(2)])
    assert D.default_collate([torch.ones(1), torch.ones(1).double()]).dtype is torch.float64


def test_empty_memory_is_a_whole_tensor():
    x = sharing.empty((3, 4), np.dtype("f4"))
    x.fill_(2)
    assert x.is_shared() and x.is_contiguous() and (x @ x.T).sum() == 144
    assert x.untyped_storage().nbytes() == 48 and isinstance(x[1:], torch.Tensor)


def test_sockets_do_not_reach_other_programs(ends):
    one, _ = ends
    assert not os.get_inheritable(one.fileno()) and one.socket.family == socket.AF_UNIX
