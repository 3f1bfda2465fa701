"""Every way in which a pass over a loader with workers ends badly: the error comes soon and says
what was wrong, and no process, descriptor or shared segment is left."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import pickle
import resource
import signal
import threading
import time

import pytest

import torchlab as torch
from tests.utils.data.leaks import all_end, nothing_left, runs
from torchlab import multiprocessing as mp
from torchlab.utils import data as D

METHODS = ("fork", "spawn", "forkserver")
SOON = 12.0  # seconds, on a busy machine
START = 60.0  # seconds in which workers start on a busy machine: most of it is imports


@pytest.fixture(autouse=True)
def counted():
    list(D.DataLoader(Images(2), num_workers=1))  # what is loaded once is there before
    with nothing_left():
        yield


@pytest.fixture(params=[*METHODS, "pinned"])
def method(request, monkeypatch):
    """How workers are started; "pinned": by fork, and a thread pins every loader's batches."""
    if request.param != "pinned":
        return request.param
    monkeypatch.setenv("TORCHLAB_ACCELERATOR", "sim")
    monkeypatch.setattr(D, "DataLoader", functools.partial(D.DataLoader, pin_memory=True))
    return "fork"


@contextlib.contextmanager
def soon(seconds=SOON):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


class Images(D.Dataset):
    """Samples whose batches travel in shared memory."""

    def __init__(self, n=40):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.full((3, 16, 16), float(i)), i


class Broken(Images):
    def __getitem__(self, i):
        if i == 5:
            raise ValueError("sample 5 is broken")
        return super().__getitem__(i)


class BrokenStream(D.IterableDataset):
    def __init__(self, after):
        self.after = after

    def __iter__(self):
        if self.after is None:
            raise ValueError("the stream does not open")
        return self.items()

    def items(self):
        yield from range(self.after)
        raise ValueError("the stream breaks off")


def broken_collate(samples):
    raise ValueError("these do not fit together")


def broken_start(number):
    raise ValueError(f"worker {number} does not start")


@pytest.mark.parametrize(
    ("dataset", "arguments", "says"),
    [
        (Broken(), {}, "sample 5 is broken"),
        (Images(), {"collate_fn": broken_collate}, "these do not fit together"),
        (Images(), {"worker_init_fn": broken_start}, "worker 0 does not start"),
        (BrokenStream(None), {}, "the stream does not open"),
        (BrokenStream(3), {}, "the stream breaks off"),
    ],
    ids=["dataset", "collate", "worker_init_fn", "iter", "next"],
)
@pytest.mark.parametrize("persistent", [False, True])
def test_exceptions_arrive_with_their_traceback(method, persistent, dataset, arguments, says):
    loader = D.DataLoader(
        dataset,
        2,
        num_workers=2,
        multiprocessing_context=method,
        persistent_workers=persistent,
        **arguments,
    )
    # Workers that stay have begun a second pass without worker_init_fn, as PyTorch's do.
    for _ in range(1 if persistent and "worker_init_fn" in arguments else 2):
        in_time = soon(START + SOON)
        with in_time, pytest.raises(ValueError, match="in DataLoader worker process 0") as found:
            list(loader)
        assert says in str(found.value)
        assert "Original Traceback" in str(found.value)


def pids(batches):
    return [w.process.pid for w in batches._workers]


@pytest.mark.parametrize("busy", [False, True])
def test_kill_9(method, busy):
    batches = iter(
        D.DataLoader(
            Asleep() if busy else Images(), 2, num_workers=2, multiprocessing_context=method
        )
    )
    next(batches)
    victim, other = pids(batches)
    os.kill(victim, signal.SIGKILL)
    says = rf"pid\(s\) {victim}\) exited unexpectedly: worker 0 .*killed by signal: Killed.*memory"
    with soon(), pytest.raises(RuntimeError, match=says):
        list(batches)
    assert all_end([victim, other])
    assert list(batches) == []  # it has ended


class Asleep(Images):
    """From sample 4 on it takes for ever."""

    def __getitem__(self, i):
        if i >= 4:
            time.sleep(1000)
        return super().__getitem__(i)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_stopped_worker_is_named(method, persistent):
    loader = D.DataLoader(
        Images(),
        2,
        num_workers=2,
        multiprocessing_context=method,
        timeout=60,
        persistent_workers=persistent,
    )
    batches = iter(loader)
    next(batches)
    loader.timeout = 1
    stopped = pids(batches)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    says = (
        rf"timed out after 1 seconds.*worker \d \(pid ({'|'.join(map(str, stopped))})\) is stopped"
    )
    with soon(), pytest.raises(RuntimeError, match=says):
        list(batches)
    assert not any(runs(pid) for pid in stopped)


def test_a_worker_that_takes_too_long_is_named(method):
    loader = D.DataLoader(Asleep(), 2, num_workers=2, timeout=60, multiprocessing_context=method)
    batches = iter(loader)
    next(batches)
    loader.timeout = 1
    says = r"timed out after 1 seconds: worker 0 \(pid \d+\).* batch 2.*\[4, 5\]"
    with soon(), pytest.raises(RuntimeError, match=says):
        list(batches)


class Endless(Images):
    """Batches that fit into no pipe, so that the worker is killed in the middle of writing one."""

    def __getitem__(self, i):
        return b"x" * 4_000_000


def test_killed_for_its_memory_while_it_writes(method):
    batches = iter(
        D.DataLoader(Endless(), 2, num_workers=2, collate_fn=list, multiprocessing_context=method)
    )
    next(batches)
    time.sleep(0.2)  # the pipes are full now
    for pid in pids(batches):
        os.kill(pid, signal.SIGKILL)
    with soon(), pytest.raises(RuntimeError, match="killed by signal: Killed"):
        list(batches)


def bus_error(number):
    signal.signal(signal.SIGBUS, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGBUS)


def test_a_bus_error_is_said_to_be_lack_of_shared_memory():
    with soon(START + SOON), pytest.raises(RuntimeError, match="Bus error.*shared memory"):
        list(D.DataLoader(Images(), num_workers=1, worker_init_fn=bus_error))


def small_files(number):
    """From here on no file of this process grows beyond 4 kB, nor does memory that is one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))


def no_space(number):
    """As where /dev/shm is full."""

    def full(fd, offset, length):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.posix_fallocate = full
    mp.set_sharing_strategy("file_system")


@pytest.mark.parametrize(
    ("start", "says"),
    [(small_files, "File too large"), (no_space, r"/dev/shm.*No space left on device \(28\)")],
)
def test_no_room_for_shared_memory(method, start, says):
    batches = iter(
        D.DataLoader(
            Images(), 8, num_workers=2, worker_init_fn=start, multiprocessing_context=method
        )
    )
    says = rf"(?s)unable to allocate shared.*{says}"
    with soon(START + SOON), pytest.raises(RuntimeError, match=says):
        next(batches)


def test_early_break(method):
    for _ in range(2):
        for _ in D.DataLoader(Images(), 2, num_workers=2, multiprocessing_context=method):
            break


def test_an_exception_in_the_loop(method):
    def loop():
        for x, _ in D.DataLoader(Images(), 2, num_workers=2, multiprocessing_context=method):
            assert x.shape == (2, 3, 16, 16)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()


def test_batches_outlive_their_loader(method):
    batches = iter(D.DataLoader(Images(), 4, num_workers=2, multiprocessing_context=method))
    kept = [next(batches)[0] for _ in range(3)]
    workers = pids(batches)
    del batches
    assert all_end(workers)
    assert [x[:, 0, 0, 0].tolist() for x in kept] == [
        [0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0],
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_a_dataset_that_cannot_be_sent(way):
    loader = D.DataLoader([lambda: 0], num_workers=2, multiprocessing_context=way)
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        list(loader)


def test_fork_after_threads():
    """Threads that compute, draw and share memory, and hold the locks of that, while the workers
    are forked. (None is within a product that OpenBLAS spreads over its threads: a fork ends these,
    with or without torchlab, and the product with them.)"""
    end = threading.Event()

    def compute():
        x = torch.rand(64, 64)
        while not end.is_set():
            x = torch.softmax(x @ x, 1) + torch.rand(64, 64)
            x.clone().share_memory_()
            torch.manual_seed(0)

    threads = [threading.Thread(target=compute) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(5):
            with soon(START):
                got = list(
                    D.DataLoader(Products(), 2, num_workers=2, multiprocessing_context="fork")
                )
            assert len(got) == 4
    finally:
        end.set()
        for t in threads:
            t.join()


class Products(Images):
    def __init__(self):
        super().__init__(8)

    def __getitem__(self, i):
        x = torch.rand(128, 128)
        return (x @ x).sum()


class Nested(Images):
    """Every sample is a pass over another loader."""

    def __init__(self, workers):
        super().__init__(4)
        self.workers = workers

    def __getitem__(self, i):
        inner = D.DataLoader(list(range(i, i + 4)), 2, num_workers=self.workers)
        return torch.cat(list(inner))


def test_nested_loaders(method):
    loader = D.DataLoader(Nested(0), 2, num_workers=2, multiprocessing_context=method)
    assert [b.tolist() for b in loader] == [
        [[0, 1, 2, 3], [1, 2, 3, 4]], [[2, 3, 4, 5], [3, 4, 5, 6]],
    ]  # fmt: skip


def test_workers_of_workers_are_refused_as_pytorch_does(method):
    loader = D.DataLoader(Nested(1), 2, num_workers=1, multiprocessing_context=method)
    with pytest.raises(AssertionError, match="daemonic processes are not allowed to have children"):
        list(loader)


def test_loaders_side_by_side(method):
    one, other = (
        D.DataLoader(Images(8), 2, num_workers=2, multiprocessing_context=method) for _ in range(2)
    )
    got = [(a[1].tolist(), b[1].tolist()) for a, b in zip(one, other, strict=True)]
    assert got == [([i, i + 1], [i, i + 1]) for i in (0, 2, 4, 6)]
