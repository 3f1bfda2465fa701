"""What a loader tells of its work: reading, collating, waiting, idling, in this process's time."""

from __future__ import annotations

import time

import pytest

import torchlab as torch
from torchlab._core import events
from torchlab.utils import data as D


class Slow(D.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        time.sleep(0.01)
        return i


def collate(samples):
    time.sleep(0.02)
    return torch.tensor(samples)


def watched(loader, pause=0.0):
    seen = []
    with events.loader_phase.subscribe(lambda **facts: seen.append(facts)):
        began = time.perf_counter()
        for _ in loader:
            time.sleep(pause)
        ended = time.perf_counter()
    assert all(began <= e["began"] <= e["ended"] <= ended for e in seen)
    return seen


def of(seen, phase):
    found = sorted((e for e in seen if e["phase"] == phase), key=lambda e: e["batch"])
    return [(e["batch"], e["worker"], e["ended"] - e["began"]) for e in found]


def test_in_the_process():
    seen = watched(D.DataLoader(Slow(), 2, collate_fn=collate))
    assert [e["phase"] for e in seen] == ["fetch", "collate"] * 4
    assert [(b, w) for b, w, _ in of(seen, "fetch")] == [(i, None) for i in range(4)]
    assert all(t >= 0.02 for _, _, t in of(seen, "fetch") + of(seen, "collate"))
    fast = watched(D.DataLoader(D.TensorDataset(torch.arange(4)), 2))
    assert [e["phase"] for e in fast] == ["fetch", "fetch"]  # one gather does both


@pytest.mark.parametrize("in_order", [True, False])
def test_of_workers(in_order):
    loader = D.DataLoader(Slow(), 2, num_workers=2, collate_fn=collate, in_order=in_order)
    seen = watched(loader)
    for phase in ("idle", "fetch", "collate", "queued"):
        told = of(seen, phase)
        assert [b for b, _, _ in told] == [0, 1, 2, 3] and {w for _, w, _ in told} == {0, 1}
    assert all(t >= 0.02 for _, _, t in of(seen, "fetch") + of(seen, "collate"))
    waits = of(seen, "wait")
    assert [(b, w) for b, w, _ in waits] == [(i, None) for i in range(4)]
    assert max(t for _, _, t in waits) > 0.03


def test_batches_lie_ready_where_the_loop_is_slow():
    seen = watched(D.DataLoader(range(6), None, num_workers=1), pause=0.1)
    assert max(t for _, _, t in of(seen, "queued")[2:]) > 0.05
    assert sum(t for _, _, t in of(seen, "idle")) > 0.1


def test_streams_failures_and_who_comes_late():
    class Stream(D.IterableDataset):
        def __iter__(self):
            yield from (1, 2)
            raise ValueError("no more")

    seen = []
    with events.loader_phase.subscribe(lambda **facts: seen.append(facts["phase"])):
        for workers in (0, 1):
            with pytest.raises(ValueError, match="no more"):
                list(D.DataLoader(Stream(), None, num_workers=workers))
    assert seen.count("fetch") >= 6
    batches = iter(D.DataLoader(Slow(), 1, num_workers=1))
    next(batches)
    late = []
    with events.loader_phase.subscribe(lambda **facts: late.append(facts["phase"])):
        rest = list(batches)
    assert len(rest) == 7 and late.count("wait") == 7 and 0 < late.count("fetch") < 7
