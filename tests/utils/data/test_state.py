"""A pass over a loader saved in the middle and taken up, here and in a fresh process."""

from __future__ import annotations

import gc
import itertools
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

import torchlab as torch
from torchlab.utils import data as D


class Noisy(D.Dataset):
    """Samples that draw from every random stream."""

    def __init__(self, n=37):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i, torch.rand(2), random.random(), np.random.rand(3)


class Plain(D.IterableDataset):
    """A stream without a state: it is read again."""

    def __init__(self, n=41):
        self.n = n

    def __iter__(self):
        info = D.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.n - 9 * first, step):
            yield i, torch.rand(2), random.random()


class Stateful(D.IterableDataset):
    """A stream with a state, and a count of what it was asked to read."""

    def __init__(self, n=41):
        self.n = n
        self.where = [0]

    def __iter__(self):
        info = D.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        while (i := first + step * self.where[0]) < self.n:
            self.where[0] += 1
            yield i, torch.rand(2), self.reads()
        self.where = [0]

    def reads(self):
        self.__dict__["read"] = self.__dict__.get("read", 0) + 1
        return 0

    def state_dict(self):
        return {"where": self.where}  # its own list, which it goes on changing

    def load_state_dict(self, state):
        self.where = list(state["where"])


class OwnIterator(D.IterableDataset):
    """The iterator, not the dataset, has the state."""

    class Walk:
        def __init__(self):
            self.i = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.i == 20:
                raise StopIteration
            self.i += 1
            return self.i, torch.rand(1)

        def state_dict(self):
            return {"i": self.i}

        def load_state_dict(self, state):
            self.i = state["i"]

    def __iter__(self):
        return self.Walk()


class Eager(D.Sampler):
    """Draws when it is asked for an iterator."""

    def __iter__(self):
        order = torch.randperm(37).tolist()
        random.shuffle(order)
        return iter(order)

    def __len__(self):
        return 37


class OwnSampler(D.Sampler):
    """Keeps account of itself; it draws all the time, so that running it again would not do."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        while self.at < 30:
            self.at += 1
            yield random.randrange(37)
        self.at = 0

    def __len__(self):
        return 30

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def generator():
    return torch.Generator().manual_seed(11)


WAYS = {
    "in order": lambda **k: D.DataLoader(Noisy(), 3, **k),
    "shuffled": lambda **k: D.DataLoader(Noisy(), 3, shuffle=True, **k),
    "generator": lambda **k: D.DataLoader(Noisy(), 4, shuffle=True, generator=generator(), **k),
    "weighted": lambda **k: D.DataLoader(
        Noisy(), 3, sampler=D.WeightedRandomSampler([i + 1.0 for i in range(37)], 50), **k
    ),
    "lazy": lambda **k: D.DataLoader(
        Noisy(), 5, sampler=D.RandomSampler(Noisy(), True, 100, generator()), **k
    ),
    "subset": lambda **k: D.DataLoader(
        Noisy(), 3, sampler=D.SubsetRandomSampler(range(30), generator()), drop_last=True, **k
    ),
    "distributed": lambda **k: D.DataLoader(
        Noisy(), 3, sampler=D.DistributedSampler(Noisy(), 2, 1, seed=4), **k
    ),
    "eager": lambda **k: D.DataLoader(Noisy(), 3, sampler=Eager(), **k),
    "own sampler": lambda **k: D.DataLoader(Noisy(), 3, sampler=OwnSampler(), **k),
    "batch sampler": lambda **k: D.DataLoader(
        Noisy(), batch_sampler=D.BatchSampler(D.RandomSampler(Noisy()), 4, False), **k
    ),
    "single": lambda **k: D.DataLoader(Noisy(), None, shuffle=True, **k),
    "replayed stream": lambda **k: D.DataLoader(Plain(), 3, **k),
    "stateful stream": lambda **k: D.DataLoader(Stateful(), 3, **k),
    "own iterator": lambda **k: D.DataLoader(OwnIterator(), 3, **k),
}


def flat(batches):
    """Batches bit for bit."""
    return [
        [x.numpy().tobytes() if isinstance(x, torch.Tensor) else x for x in batch]
        for batch in batches
    ]


def seed(n):
    torch.manual_seed(n)
    random.seed(n)
    np.random.seed(n)


def interrupted(make, after, through_a_file, **options):
    """(what comes after `after` batches and in the next pass, the same by a resumed loader)."""
    seed(5)
    loader = make(**options)
    batches = iter(loader)
    for _ in range(after):
        next(batches)
    state = through_a_file(loader.state_dict())
    expected = flat(batches) + flat(loader) + [torch.rand(2).tolist()]
    seed(99)
    other = make(**options)
    other.load_state_dict(state)
    return expected, flat(other) + flat(other) + [torch.rand(2).tolist()]


@pytest.fixture
def through_a_file(tmp_path):
    def travel(state):
        torch.save(state, tmp_path / "state.pt")
        return torch.load(tmp_path / "state.pt", weights_only=True)

    return travel


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("after", [0, 1, 5])
def test_resumed_in_the_process(way, after, through_a_file):
    expected, got = interrupted(WAYS[way], after, through_a_file)
    assert got == expected and len(got) > 8


@pytest.mark.parametrize("way", WAYS)
def test_resumed_with_workers(way, through_a_file):
    expected, got = interrupted(WAYS[way], 3, through_a_file, num_workers=2)
    assert got == expected and len(got) > 6


@pytest.mark.parametrize("way", ["shuffled", "replayed stream", "stateful stream"])
def test_resumed_where_workers_stay(way, through_a_file):
    seed(1)
    options = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "fork"}
    loader = WAYS[way](**options)
    list(loader)
    batches = iter(loader)
    first = flat(itertools.islice(batches, 4))
    state = through_a_file(loader.state_dict())
    expected = flat(batches)
    other = WAYS[way](**options)
    other.load_state_dict(state)
    assert flat(other) == expected and len(first) == 4


@pytest.mark.parametrize("way", ["shuffled", "replayed stream", "stateful stream"])
def test_between_two_passes_of_workers_that_stay(way, through_a_file):
    seed(1)
    options = {"num_workers": 2, "persistent_workers": True}
    loader = WAYS[way](**options)
    list(loader)
    state = through_a_file(loader.state_dict())
    assert state["pass"] is None and len(state["workers"]["workers"]) == 2
    expected = flat(loader) + flat(loader)
    seed(50)
    other = WAYS[way](**options)
    other.load_state_dict(state)
    batches = iter(other)
    got = flat(itertools.islice(batches, 2))
    third = WAYS[way](**options)
    third.load_state_dict(through_a_file(other.state_dict()))
    assert got + flat(third) + flat(third) == expected


def test_every_place_with_uneven_streams(through_a_file):
    for after in range(11):
        expected, got = interrupted(WAYS["replayed stream"], after, through_a_file, num_workers=3)
        assert got == expected


def test_resumed_twice_and_told_without_a_step(through_a_file):
    seed(3)
    make = WAYS["shuffled"]
    whole = make()
    batches = iter(whole)
    for _ in range(2):
        next(batches)
    state = through_a_file(whole.state_dict())
    expected = flat(batches)
    a = make()
    a.load_state_dict(state)
    b = make()
    b.load_state_dict(a.state_dict())  # nothing was read in between
    seed(8)
    again = iter(b)
    third = flat([next(again)])
    c = make()
    c.load_state_dict(through_a_file(b.state_dict()))
    assert third + flat(c) == expected


@pytest.mark.parametrize("way", ["shuffled", "replayed stream", "stateful stream"])
def test_a_loop_that_was_left_is_resumed(way, through_a_file):
    seed(2)
    whole = flat(WAYS[way](num_workers=2))
    seed(2)
    loader = WAYS[way](num_workers=2)
    for i, _ in enumerate(loader):
        if i == 3:
            break
    gc.collect()
    state = through_a_file(loader.state_dict())
    assert state["pass"]["workers"] is None
    seed(77)
    other = WAYS[way](num_workers=2)
    other.load_state_dict(state)
    assert flat(other) == whole[4:]


def test_out_of_order_nothing_is_lost_or_given_twice(through_a_file):
    def make():
        return D.DataLoader(
            range(40), 2, shuffle=True, num_workers=2, in_order=False, prefetch_factor=3
        )

    loader = make()
    batches = iter(loader)
    before = [next(batches).tolist() for _ in range(7)]
    state = through_a_file(loader.state_dict())
    after = sorted(b.tolist() for b in batches)
    other = make()
    other.load_state_dict(state)
    assert sorted(b.tolist() for b in other) == after
    assert sorted(sum(before + after, [])) == list(range(40))


def test_a_stateful_stream_is_not_read_again(through_a_file):
    loader = D.DataLoader(Stateful(), 3)
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    other = D.DataLoader(Stateful(), 3)
    other.load_state_dict(through_a_file(loader.state_dict()))
    next(iter(other))
    assert other.dataset.read == 3


def test_a_map_style_dataset_is_not_read_again():
    class Counting(Noisy):
        read = 0

        def __getitem__(self, i):
            self.read += 1
            return i

    loader = D.DataLoader(Counting(), 4)
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    other = D.DataLoader(Counting(), 4)
    other.load_state_dict(loader.state_dict())
    next(iter(other))
    assert other.dataset.read == 4


def test_between_two_passes(through_a_file):
    seed(4)
    loader = WAYS["shuffled"]()
    list(loader)
    state = through_a_file(loader.state_dict())
    assert state["pass"] is None
    expected = flat(loader)
    other = WAYS["shuffled"]()
    other.load_state_dict(state)
    assert flat(other) == expected


def test_data_pipes(through_a_file):
    def make(**options):
        pipe = D.datapipes.iter.IterableWrapper(range(30)).shuffle(buffer_size=8)
        return D.DataLoader(pipe.sharding_filter(), 3, shuffle=True, **options)

    for options in ({}, {"num_workers": 2}):
        seed(6)
        loader = make(**options)
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        state = through_a_file(loader.state_dict())
        expected = [b.tolist() for b in batches]
        other = make(**options)
        other.load_state_dict(state)
        assert [b.tolist() for b in other] == expected


def test_a_loader_in_the_middle_of_a_pass_can_be_pickled():
    loader = D.DataLoader(Plain(6), 2)
    batches = iter(loader)
    next(batches)
    copied = pickle.loads(pickle.dumps(loader))
    assert [b[0].tolist() for b in copied] == [[0, 1], [2, 3], [4, 5]]
    assert len(list(batches)) == 2


def test_states_that_do_not_fit():
    loader = D.DataLoader(range(20), 2)
    batches = iter(loader)
    for _ in range(6):
        next(batches)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="num_workers=0, this one has num_workers=2"):
        D.DataLoader(range(20), 2, num_workers=2).load_state_dict(state)
    with pytest.raises(ValueError, match="no state that DataLoader"):
        loader.load_state_dict({"epoch": 3})
    with pytest.raises(ValueError, match="IterableDataset"):
        D.DataLoader(Plain(), 2).load_state_dict(state)
    with pytest.raises(ValueError, match="how many generators"):
        D.DataLoader(range(20), 2, generator=generator()).load_state_dict(state)
    short = D.DataLoader(range(4), 2)
    short.load_state_dict(state)
    with pytest.raises(ValueError, match=r"6 batches into a pass.* only 2"):
        iter(short)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import test_state as t
import torchlab as torch

if __name__ == "__main__":
    torch.manual_seed(123)
    state = torch.load(sys.argv[3], weights_only=True)
    loader = t.WAYS[sys.argv[2]](num_workers=int(sys.argv[4]))
    loader.load_state_dict(state)
    print(repr(t.flat(loader) + t.flat(loader)))
"""


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("way", ["shuffled", "weighted", "replayed stream", "stateful stream"])
def test_resumed_in_a_fresh_process(way, workers, tmp_path):
    seed(7)
    loader = WAYS[way](num_workers=workers)
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    torch.save(loader.state_dict(), tmp_path / "state.pt")
    expected = repr(flat(batches) + flat(loader))
    script = tmp_path / "resume.py"
    script.write_text(SCRIPT)
    arguments = [__file__.rpartition("/")[0], way, str(tmp_path / "state.pt"), str(workers)]
    out = subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert out.stderr == "" and out.stdout == expected + "\n"
