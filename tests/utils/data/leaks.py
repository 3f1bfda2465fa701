"""Counting what a data loader leaves behind: processes, descriptors, named segments."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker


def children(pid: int | str = "self") -> set[int]:
    """The processes that a process has started and that still exist (zombies, too)."""
    found: set[int] = set()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found |= {int(child) for child in file.read().split()}
    return found


def descriptors() -> dict[int, str]:
    """The open descriptors and what they are."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one of the listing itself
            found[int(fd)] = os.readlink(f"/proc/self/fd/{fd}")
    return found


def segments() -> set[str]:
    """Shared memory with a name, but for that of programs which run beside this one."""
    found = {name for name in os.listdir("/dev/shm") if name.startswith("torchlab_")}
    maker = {name: int(name.split("_")[1]) for name in found}
    return {name for name in found if maker[name] == os.getpid() or not runs(maker[name])}


def runs(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def all_end(pids: set[int] | list[int], seconds: float = 10.0) -> bool:
    """Whether all end within the time."""
    end = time.monotonic() + seconds
    while any(runs(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(runs(pid) for pid in pids)


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """No process, thread of a loader, descriptor or named segment is there afterwards that was not
    there before."""
    # Python's own helpers stay for good; they are to be there before it is counted.
    resource_tracker.ensure_running()
    forkserver.ensure_running()
    gc.collect()
    server = forkserver._forkserver._forkserver_pid
    before = children(), children(server), descriptors(), segments()
    yield
    gc.collect()
    assert [t for t in threading.enumerate() if t.name == "torchlab pinning"] == []
    assert children() - before[0] == set()
    assert all_end(children(server) - before[1], 5.0)
    end = time.monotonic() + 2.0
    while segments() - before[3] and time.monotonic() < end:
        time.sleep(0.05)  # what a program beside this one has left is removed by its helper
    assert segments() - before[3] == set()
    now = descriptors()
    assert len(now) <= len(before[2]), {fd: now[fd] for fd in now.keys() - before[2].keys()}
