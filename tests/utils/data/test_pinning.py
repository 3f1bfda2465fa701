"""Loaders that pin: page-locked batches, the same as without, and the thread that makes them."""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import torchlab as torch
from tests.utils.data.leaks import all_end, nothing_left
from torchlab._core import events
from torchlab.utils import data as D
from torchlab.utils.data._utils.pin_memory import pin_memory

SOON = 12.0  # seconds, on a busy machine
Pair = collections.namedtuple("Pair", "x y")


@pytest.fixture(autouse=True)
def accelerator(monkeypatch):
    """There is one, and nothing of a loader is left."""
    monkeypatch.setenv("TORCHLAB_ACCELERATOR", "sim")
    list(D.DataLoader(Images(2), num_workers=1))  # what is loaded once is there before
    with nothing_left():
        yield


class Images(D.Dataset):
    def __init__(self, n=12):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.full((3, 64, 64), float(i)), {"label": i, "name": str(i)}


class Stream(D.IterableDataset):
    def __iter__(self):
        info = D.get_worker_info()
        first = 0 if info is None else 100 * info.id
        return (torch.tensor(float(i)) for i in range(first, first + 5))


class Own:
    """A batch that pins itself; how often is counted."""

    pinned = 0

    def __init__(self, samples):
        self.samples = samples

    def pin_memory(self):
        self.pinned += 1
        return self


class Unpinnable(Own):
    def pin_memory(self):
        raise KeyError("not this one")


class Slow(Own):
    def pin_memory(self):
        time.sleep(0.3)
        return self


# ---- what is pinned -----------------------------------------------------------------------------


class Frozen(collections.abc.Mapping):
    def __init__(self, items):
        self.items_ = dict(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


class Named(dict):
    """Takes no mapping, and has an attribute."""

    def __init__(self, name):
        super().__init__()
        self.name = name


class Unchangeable(dict):
    def __copy__(self):
        raise TypeError


class Labelled(list):
    label = None


def test_what_a_batch_is_stays():
    x = torch.ones(2)
    assert pin_memory(x).is_pinned() and not x.is_pinned()
    assert pin_memory("text") == "text" and pin_memory(b"bytes") == b"bytes"
    assert pin_memory(3) == 3 and pin_memory(None) is None
    pair = pin_memory(Pair(x, ["a", x]))
    assert type(pair) is Pair and pair.x.is_pinned() and pair.y[0] == "a" and pair.y[1].is_pinned()
    found = pin_memory((x, 1))
    assert type(found) is tuple and found[0].is_pinned()
    assert pin_memory(range(3)) == [0, 1, 2]
    collections_of = [
        pin_memory(collections.OrderedDict(x=x)),
        pin_memory(Frozen({"x": x})),
        pin_memory(collections.defaultdict(list, x=x)),
    ]
    kinds = [collections.OrderedDict, Frozen, collections.defaultdict]
    assert [type(c) for c in collections_of] == kinds
    assert all(c["x"].is_pinned() for c in collections_of)
    named = Named("a")
    named["x"] = x
    made = pin_memory(named)
    assert type(made) is Named and made.name == "a" and made["x"].is_pinned()
    assert named["x"] is x  # it was copied
    assert type(pin_memory(Unchangeable(x=x))) is dict
    labelled = Labelled([x])
    labelled.label = "b"
    made = pin_memory(labelled)
    assert type(made) is Labelled and made.label == "b" and made[0].is_pinned()
    own = Own([])
    assert pin_memory({"own": own})["own"] is own and own.pinned == 1
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])
    assert pin_memory(packed).is_pinned() and pin_memory(x, "cuda").is_pinned()


# ---- the same batches ---------------------------------------------------------------------------

KINDS = {
    "process": {},
    "workers": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
}


def values(batch):
    if isinstance(batch, torch.Tensor):
        return batch.tolist()
    x, more = batch
    return x[:, 0, 0, 0].tolist(), more["label"].tolist(), more["name"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dataset", [Images(), Stream()], ids=["map", "stream"])
def test_batches_are_those_without_pinning(kind, dataset):
    plain = D.DataLoader(dataset, 3, **KINDS[kind])
    pinning = D.DataLoader(dataset, 3, pin_memory=True, **KINDS[kind])
    for _ in range(2):
        found = list(pinning)
        assert [values(b) for b in found] == [values(b) for b in plain]
        for b in found:
            tensors = [b] if isinstance(b, torch.Tensor) else [b[0], b[1]["label"]]
            assert all(t.is_pinned() and not t.is_shared() for t in tensors)


def test_as_they_are_ready():
    loader = D.DataLoader(Images(), 3, num_workers=2, pin_memory=True, in_order=False)
    assert sorted(values(b)[0][0] for b in loader) == [0.0, 3.0, 6.0, 9.0]


@pytest.mark.parametrize("kind", ["process", "workers", "persistent"])
@pytest.mark.parametrize("dataset", [Images(), Stream()], ids=["map", "stream"])
def test_a_pass_is_taken_up_in_the_middle(kind, dataset):
    def loader():
        return D.DataLoader(dataset, 3, pin_memory=True, **KINDS[kind])

    first = loader()
    batches = iter(first)
    next(batches)
    state = first.state_dict()
    rest = [values(b) for b in batches]
    second = loader()
    second.load_state_dict(state)
    assert rest and [values(b) for b in second] == rest


def test_where_there_is_no_accelerator_a_warning_says_so(monkeypatch):
    monkeypatch.setenv("TORCHLAB_ACCELERATOR", "")
    if torch.accelerator.is_available():
        return
    for arguments in ({}, {"num_workers": 1}):
        with pytest.warns(UserWarning, match="no accelerator is found"):
            (batch,) = D.DataLoader(Images(2), 2, pin_memory=True, **arguments)
        assert not batch[0].is_pinned()


@pytest.mark.filterwarnings("error")
def test_the_device_to_pin_for_is_deprecated():
    loader = D.DataLoader(Images(2), 2, pin_memory=True, pin_memory_device="cuda")
    with pytest.warns(UserWarning, match="pin_memory_device is deprecated"):
        (batch,) = loader
    assert batch[0].is_pinned()
    list(D.DataLoader(Images(2), 2, pin_memory=True))  # no warning


# ---- the thread ---------------------------------------------------------------------------------


def threads():
    return [t for t in threading.enumerate() if t.name == "torchlab pinning"]


def test_one_thread_for_a_pass_that_ends_with_it():
    loader = D.DataLoader(Images(), 3, num_workers=2, pin_memory=True)
    batches = iter(loader)
    (thread,) = threads()
    assert thread.daemon
    list(batches)
    assert threads() == []
    batches = iter(loader)
    next(batches)
    del batches
    assert threads() == []


def test_workers_that_stay_keep_their_thread():
    loader = D.DataLoader(Images(), 3, num_workers=2, pin_memory=True, persistent_workers=True)
    list(loader)
    (thread,) = threads()
    list(loader)
    assert threads() == [thread]
    del loader
    gc.collect()
    assert threads() == []


def test_pinning_goes_on_while_the_loop_works():
    seen = []
    with events.loader_phase.subscribe(lambda **facts: seen.append(facts)):
        loader = D.DataLoader(
            range(6), 2, num_workers=1, collate_fn=Slow, pin_memory=True, prefetch_factor=3
        )
        batches = iter(loader)
        next(batches)
        ready, until = batches._inbox._queue.qsize, time.monotonic() + SOON
        while ready() < 2 and time.monotonic() < until:
            time.sleep(0.01)
        assert ready() == 2  # nobody has asked for them yet
        list(batches)
    pins = [f for f in seen if f["phase"] == "pin"]
    assert [(f["batch"], f["worker"]) for f in pins] == [(0, 0), (1, 0), (2, 0)]
    assert all(f["ended"] - f["began"] >= 0.3 for f in pins)
    blocked = [f for f in seen if f["phase"] == "blocked"]
    assert len(blocked) == 3 and all(f["began"] <= f["ended"] for f in blocked)


def test_in_the_process_it_is_a_part_of_getting_a_batch():
    seen = []
    with events.loader_phase.subscribe(lambda **facts: seen.append(facts["phase"])):
        list(D.DataLoader(range(4), 2, pin_memory=True))
    assert seen == ["fetch", "collate", "pin"] * 2


def test_memory_of_workers_comes_back_at_once():
    """Once pinned, a batch needs its segment no more: few are enough, however many are kept."""
    batches = iter(D.DataLoader(Images(40), 4, num_workers=1, pin_memory=True))
    kept = list(itertools.islice(batches, 9))
    assert len(batches._workers[0].channel.lent._mapped) <= 4
    assert [values(b)[0][0] for b in kept] == [4.0 * i for i in range(9)]


@pytest.mark.parametrize("workers", [0, 2])
def test_what_cannot_be_pinned(workers):
    loader = D.DataLoader(range(4), 2, num_workers=workers, collate_fn=Unpinnable, pin_memory=True)
    batches = iter(loader)
    says = "not this one"
    if workers:
        says = (
            r"(?s)^Caught KeyError in pin memory thread for device 0\.\nOriginal Traceback.*"
            r"in pin_memory\n.*KeyError: 'not this one'"
        )
    for _ in range(2):  # a batch that cannot be had is passed over
        with pytest.raises(KeyError, match=says):
            next(batches)
    assert list(batches) == []


class Unreadable:
    def __reduce__(self):
        return broken_reading, ()


def broken_reading():
    raise ZeroDivisionError("while it is read")


def unreadable(samples):
    return Unreadable()


def test_what_cannot_be_read():
    loader = D.DataLoader(range(4), 2, num_workers=2, collate_fn=unreadable, pin_memory=True)
    batches = iter(loader)
    with pytest.raises(ZeroDivisionError, match="while it is read"):
        next(batches)
    assert list(batches) == [] and threads() == []


def test_requests_that_fill_the_channel():
    """The thread writes on what the channel did not take while the loop was asking."""

    class Wide:
        """Batches of few samples whose indices are long."""

        def __iter__(self):
            return iter([[str(i) * 300_000] for i in range(8)])

        def __len__(self):
            return 8

    class Lengths:
        def __getitem__(self, text):
            return torch.tensor([int(text[0]), len(text)])

    loader = D.DataLoader(
        Lengths(), batch_sampler=Wide(), num_workers=1, prefetch_factor=4, pin_memory=True
    )
    found = [b.tolist() for b in loader]
    assert found == [[[i, 300_000]] for i in range(8)]


def test_a_batch_that_takes_too_long():
    class Late(Images):
        def __getitem__(self, i):
            time.sleep(60 if i == 2 else 0)
            return i

    batches = iter(D.DataLoader(Late(), 2, num_workers=1, timeout=60, pin_memory=True))
    next(batches)
    batches._loader.timeout = 1
    began = time.monotonic()
    with pytest.raises(RuntimeError, match=r"timed out after 1 seconds: worker 0 .* batch 1.*"):
        next(batches)
    assert time.monotonic() - began < SOON and threads() == []


def test_a_worker_that_dies_between_passes():
    loader = D.DataLoader(Images(), 3, num_workers=2, persistent_workers=True, pin_memory=True)
    batches = iter(loader)
    list(batches)
    victim = batches._workers[1].process.pid
    os.kill(victim, signal.SIGKILL)
    all_end([victim])
    with pytest.raises(RuntimeError, match=rf"pid\(s\) {victim}\) exited unexpectedly"):
        list(loader)
    assert threads() == []


class Collects(Own):
    dropped = threading.Event()

    def pin_memory(self):
        self.dropped.wait(SOON)
        gc.collect()
        return self


def test_an_iterator_that_is_collected_in_the_thread():
    """The garbage collector may run anywhere: a pass in a cycle is ended by its own thread."""
    gc.disable()
    try:
        batches = iter(
            D.DataLoader(range(4), 2, num_workers=1, collate_fn=Collects, pin_memory=True)
        )
        workers = [w.process.pid for w in batches._workers]
        (thread,) = threads()
        batches.cycle = batches
        del batches
        Collects.dropped.set()
        thread.join(SOON)
        assert not thread.is_alive() and all_end(workers)
    finally:
        gc.enable()


def test_a_fork_while_a_thread_pins():
    """Another loader's workers are forked while the first one's thread is at work."""
    first = iter(D.DataLoader(Images(60), 2, num_workers=1, pin_memory=True))
    for _ in range(3):
        next(first)
        second = D.DataLoader(Images(), 3, num_workers=2, pin_memory=True)
        assert [values(b)[0][0] for b in second] == [0.0, 3.0, 6.0, 9.0]
    assert len(list(first)) == 27


PROGRAM = """
    import os, sys, threading, time
    import torchlab
    from torchlab.utils.data import DataLoader

    class Stuck:
        def __init__(self, samples):
            pass

        def pin_memory(self):
            time.sleep(1.5)
            return self

    def main():
        batches = iter(DataLoader(range(100), 2, num_workers=1, collate_fn=Stuck, pin_memory=True))
        globals().update(kept=batches)
        time.sleep(0.5)

    main()
"""


def test_a_program_ends_while_its_thread_pins(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    run = functools.partial(subprocess.run, capture_output=True, text=True, timeout=60)
    done = run([sys.executable, str(path)])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
