"""Locks at a fork: the child finds them free, and what they guard whole."""

from __future__ import annotations

import os
import threading
import time

import pytest

import torchlab as torch
from torchlab._core import forks


def in_child(work):
    """What `work()` gives in a forked process, as an exit code; -1 after ten seconds."""
    pid = os.fork()
    if pid == 0:
        os._exit(work())
    end = time.monotonic() + 10
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return -1


@pytest.fixture
def busy():
    """A thread that draws all the time."""
    end = threading.Event()

    def draw():
        while not end.is_set():
            torch.rand(4096)

    thread = threading.Thread(target=draw)
    thread.start()
    yield
    end.set()
    thread.join()


def test_generators(busy):
    def draws():
        torch.manual_seed(1)
        return int(torch.rand(1).item() < 1)

    assert [in_child(draws) for _ in range(20)] == [1] * 20


def test_all_or_none():
    """A thread that holds one lock and waits for the other gets it."""
    first, second = (forks.free_at_fork(threading.Lock()) for _ in range(2))
    first.acquire()

    def hold():
        time.sleep(0.2)
        with second:
            first.release()

    thread = threading.Thread(target=hold)
    thread.start()
    began = time.monotonic()
    assert in_child(lambda: int(not first.locked() or not first.acquire(blocking=False))) == 1
    assert time.monotonic() - began >= 0.2
    thread.join()
    assert not first.locked() and not second.locked()


def test_a_lock_that_is_never_free():
    lock = forks.free_at_fork(threading.Lock())
    with lock:
        assert in_child(lambda: 7) == 7
    assert not lock.locked()
