"""Loaders with worker processes: order, failures, and that nothing of them stays."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import torchlab as torch
from tests.utils.data.leaks import all_end, nothing_left
from torchlab import multiprocessing as mp
from torchlab._core import events
from torchlab.utils import data as D

METHODS = ("fork", "spawn", "forkserver")
SOON = 12.0  # seconds, on a busy machine


class Squares(D.Dataset):
    def __init__(self, n=12):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.full((3,), float(i * i)), i


class Failing(Squares):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def __getitem__(self, i):
        if i == 5:
            return getattr(self, self.how)(i)
        return i

    def value_error(self, i):
        raise ValueError("no sample 5")

    def key_error(self, i):
        raise KeyError("name")

    def local_class(self, i):
        class Local(LookupError):
            def __init__(self, a, b):
                super().__init__(a, b)

        raise Local(1, 2)

    def awkward_class(self, i):
        raise UnicodeDecodeError("utf-8", b"x", 0, 1, "odd")

    def cannot_travel(self, i):
        return lambda: i

    def kill(self, i):
        os.kill(os.getpid(), signal.SIGKILL)

    def exit(self, i):
        os._exit(3)

    def sleep(self, i):
        time.sleep(60)


class Stream(D.IterableDataset):
    def __iter__(self):
        info = D.get_worker_info()
        return iter(range(info.id * 100, info.id * 100 + 3 + 3 * info.id))


class Slow(Squares):
    """Sample 0 comes late."""

    def __getitem__(self, i):
        time.sleep(0.5 if i == 0 else 0)
        return i


@pytest.fixture(autouse=True)
def nothing_stays():
    """No process, descriptor or named segment is left by a loader."""
    list(D.DataLoader(Squares(2), num_workers=1))  # what stays for good is there now
    with nothing_left():
        yield


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [1, 2])
def test_same_batches_in_the_same_order(method, workers):
    plain = list(D.DataLoader(Squares(), 5))
    loader = D.DataLoader(Squares(), 5, num_workers=workers, multiprocessing_context=method)
    assert len(iter(loader)) == 3
    got = list(loader)
    assert [b.tolist() for x in got for b in x] == [b.tolist() for x in plain for b in x]
    assert got[0][0].is_shared()


def test_tensors_arrive_by_name_too():
    mp.set_sharing_strategy("file_system")
    try:
        got = list(D.DataLoader(Squares(), 4, num_workers=2))
    finally:
        mp.set_sharing_strategy("file_descriptor")
    assert [b[1].tolist() for b in got] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_as_they_are_ready():
    loader = D.DataLoader(Slow(6), None, num_workers=2, in_order=False)
    got = list(loader)
    assert sorted(got) == list(range(6))
    assert got[0] != 0
    assert list(D.DataLoader(Slow(6), None, num_workers=2)) == list(range(6))


@pytest.mark.parametrize("how", ["value_error", "key_error", "local_class", "awkward_class"])
def test_a_workers_exception_arrives_as_its_own(how):
    kind = {"value_error": ValueError, "key_error": KeyError, "local_class": LookupError}
    with pytest.raises(kind.get(how, RuntimeError)) as found:
        list(D.DataLoader(Failing(how), 2, num_workers=2))
    text = str(found.value)
    assert text.startswith("Caught ")
    assert "in DataLoader worker process 0.\nOriginal Traceback" in text
    assert f"in {how}" in text


def test_the_loader_goes_on_after_a_failed_batch():
    batches = iter(D.DataLoader(Failing("value_error"), 2, num_workers=2))
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="no sample 5"):
        next(batches)
    assert [b.tolist() for b in batches] == [[6, 7], [8, 9], [10, 11]]


def test_what_cannot_travel_is_told():
    with pytest.raises((AttributeError, RuntimeError), match="lambda"):
        list(D.DataLoader(Failing("cannot_travel"), None, num_workers=1))


@pytest.mark.parametrize(
    ("how", "text"), [("kill", "killed by signal: Killed"), ("exit", "exit code 3")]
)
def test_a_worker_that_is_gone_is_named_at_once(how, text):
    start = time.monotonic()
    batches = iter(D.DataLoader(Failing(how), 2, num_workers=2))
    pid = batches._workers[0].process.pid
    with pytest.raises(RuntimeError, match=text) as found:
        list(batches)
    assert f"DataLoader worker (pid(s) {pid}) exited unexpectedly" in str(found.value)
    assert time.monotonic() - start < SOON
    assert list(batches) == []


def test_timeout():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.5 seconds"):
        list(D.DataLoader(Failing("sleep"), 2, num_workers=1, timeout=0.5))
    assert time.monotonic() - start < SOON


def fail_to_start(i):
    raise OSError(f"worker {i} has no disk")


def test_worker_init_fn():
    with pytest.raises(OSError, match="worker 0 has no disk"):
        list(D.DataLoader(Squares(), num_workers=2, worker_init_fn=fail_to_start))


class Facts(Squares):
    def __getitem__(self, i):
        info = D.get_worker_info()
        with pytest.raises(AttributeError):
            info.id = 3
        return info.id, info.num_workers, info.seed, info.dataset is self, torch.get_num_threads()


def test_what_a_worker_knows():
    assert D.get_worker_info() is None
    rows = list(D.DataLoader(Facts(4), None, num_workers=2))
    assert [(r[0], r[1], r[3], r[4]) for r in rows] == [
        (0, 2, True, 1), (1, 2, True, 1), (0, 2, True, 1), (1, 2, True, 1),
    ]  # fmt: skip
    assert rows[1][2] == rows[0][2] + 1 == rows[3][2]


def test_streams_end_at_their_own_pace():
    assert list(D.DataLoader(Stream(), None, num_workers=2)) == [
        0,
        100,
        1,
        101,
        2,
        102,
        103,
        104,
        105,
    ]
    got = [b.tolist() for b in D.DataLoader(Stream(), 2, num_workers=2, drop_last=True)]
    assert got == [[0, 1], [100, 101], [102, 103], [104, 105]]


def pid_of_worker(samples):
    return os.getpid()


@pytest.mark.parametrize("dataset", [Squares(8), Stream()])
def test_persistent_workers_stay(dataset):
    loader = D.DataLoader(
        dataset, 2, num_workers=2, persistent_workers=True, collate_fn=pid_of_worker
    )
    first = list(loader)
    assert list(loader) == first
    assert len(set(first)) == 2
    assert set(itertools.islice(loader, 2)) == set(first)  # given up half way
    assert list(loader) == first
    del loader


def test_a_pass_may_be_given_up():
    for _ in range(3):
        for x, _ in D.DataLoader(Squares(100), num_workers=2, prefetch_factor=4):
            assert x.shape == (1, 3)
            break


def test_large_batches_of_plain_objects_do_not_block():
    loader = D.DataLoader(["x" * 300_000] * 8, 2, num_workers=2, collate_fn=list)
    assert [len(b) for b in loader] == [2] * 4


ORPHANS = """
    import os, signal, time
    from torchlab.utils.data import DataLoader

    class Slow:
        def __len__(self):
            return 100

        def __getitem__(self, i):
            time.sleep(0.05)
            return i

    if __name__ == "__main__":
        batches = iter(DataLoader(Slow(), num_workers=2, multiprocessing_context="METHOD"))
        next(batches)
        print(*(w.process.pid for w in batches._workers), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("method", METHODS)
def test_workers_end_with_their_loaders_process(tmp_path, method):
    script = tmp_path / "orphans.py"
    script.write_text(textwrap.dedent(ORPHANS).replace("METHOD", method))
    out = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    pids = [int(p) for p in out.stdout.split()]
    assert len(pids) == 2, out.stderr
    assert all_end(pids)


def test_an_interpreter_ends_in_the_middle_of_a_pass(tmp_path):
    script = tmp_path / "leave.py"
    script.write_text(
        "from torchlab.utils.data import DataLoader\n"
        "if __name__ == '__main__':\n"
        "    batches = iter(DataLoader(list(range(1000)), num_workers=2))\n"
        "    print(next(batches).item())\n"
    )
    out = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (out.returncode, out.stdout, out.stderr) == (0, "0\n", "")


def test_events_are_told():
    seen = []

    def listener(**facts):
        seen.append((facts["index"], facts["size"]))

    with events.loader_step.subscribe(listener):
        list(D.DataLoader(Squares(5), 2, num_workers=2))
    assert seen == [(0, 2), (1, 2), (2, 1)]
