"""What a loader tells of its passes and of the batches that it gives out."""

from __future__ import annotations

import time

import pytest

import torchlab as torch
from torchlab._core import events
from torchlab.utils import data as D


class Numbers(D.Dataset):
    def __init__(self, bad=-1):
        self.bad = bad

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == self.bad:
            raise KeyError(f"no {i}")
        time.sleep(0.02 if i == 3 else 0.001)
        return i


class Stream(D.IterableDataset):
    def __iter__(self):
        yield from range(5)


def heard(work):
    passes, phases, batches = [], [], []
    with (
        events.loader_pass.subscribe(lambda **facts: passes.append(facts)),
        events.loader_phase.subscribe(lambda **facts: phases.append(facts)),
        events.loader_batch.subscribe(lambda **facts: batches.append(facts)),
    ):
        work()
    return passes, phases, batches


@pytest.mark.parametrize("workers", [0, 2])
def test_passes_and_batches(workers):
    loader = D.DataLoader(Numbers(), 2, num_workers=workers)
    began = time.perf_counter()
    passes, phases, batches = heard(lambda: [list(loader) for _ in range(2)])
    ended = time.perf_counter()
    assert [p["stage"] for p in passes] == ["begin", "end"] * 2
    assert all(p["loader"] is loader and began <= p["began"] <= p["ended"] <= ended for p in passes)
    one, two = passes[0]["pass_id"], passes[2]["pass_id"]
    assert one < two and {p["pass_id"] for p in phases} == {one, two}
    assert [b["indices"] for b in batches] == [[0, 1], [2, 3], [4, 5]] * 2
    assert [b["index"] for b in batches] == [b["batch"] for b in batches] == [0, 1, 2] * 2
    assert [b["value"].tolist() for b in batches[:3]] == [[0, 1], [2, 3], [4, 5]]
    assert all(b["error"] == "" and b["began"] <= b["ended"] for b in batches)
    slowest = [p["slowest"] for p in phases if p["phase"] == "fetch" and p["batch"] == 1]
    assert [s[0] for s in slowest] == [3, 3] and all(s[1] >= 0.02 for s in slowest)
    assert all(0 <= p["cpu"] < 0.02 for p in phases if p["phase"] in ("fetch", "collate"))
    if not workers:
        assert all(b["worker"] is None and b["seed"] is None for b in batches)
        assert passes[0]["base_seed"] is None
        return
    assert [b["worker"] for b in batches] == [0, 1, 0] * 2
    for b, p in zip((batches[1], batches[4]), (passes[0], passes[2]), strict=True):
        assert b["seed"] == p["base_seed"] + 1
    of_one = [p["phase"] for p in phases if p["batch"] == 0 and p["worker"] == 0][:8]
    assert of_one == ["start", "idle", "fetch", "collate", "pack", "send", "receive", "queued"]
    assert [p["phase"] for p in phases].count("start") == 4


def test_workers_that_stay_start_once():
    loader = D.DataLoader(Numbers(), 2, num_workers=1, persistent_workers=True)
    passes, phases, _ = heard(lambda: [list(loader) for _ in range(3)])
    assert len(passes) == 6 and len({p["pass_id"] for p in passes}) == 3
    assert len({p["base_seed"] for p in passes}) == 1
    assert [p["phase"] for p in phases].count("start") == 1


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_and_a_failure(workers):
    passes, _, batches = heard(lambda: list(D.DataLoader(Stream(), 2, num_workers=workers)))
    assert [p["stage"] for p in passes] == ["begin", "end"]
    assert [b["value"].tolist() for b in batches] == [[0, 1], [2, 3], [4]]
    assert all(b["indices"] is None for b in batches)

    def fail():
        with pytest.raises(KeyError, match="no 3"):
            list(D.DataLoader(Numbers(3), 2, num_workers=workers))

    passes, _, batches = heard(fail)
    assert [p["stage"] for p in passes] == ["begin"]
    assert [b["error"] for b in batches] == ["", "KeyError: 'no 3'"]
    assert batches[1]["value"] is None and batches[1]["indices"] == [2, 3]


def test_a_pass_taken_up_goes_on_counting():
    loader = D.DataLoader(Numbers(), 2, num_workers=1)
    batches = iter(loader)
    next(batches)
    again = D.DataLoader(Numbers(), 2, num_workers=1)
    again.load_state_dict(loader.state_dict())
    _, _, told = heard(lambda: list(again))
    assert [(b["index"], b["indices"]) for b in told] == [(1, [2, 3]), (2, [4, 5])]


def test_listening_changes_nothing():
    def draw():
        torch.manual_seed(1)
        loader = D.DataLoader(range(7), 2, shuffle=True, num_workers=2)
        return [b.tolist() for b in loader], torch.rand(2).tolist()

    seen = []
    heard(lambda: seen.append(draw()))
    assert seen == [draw()]
