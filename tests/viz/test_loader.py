"""Recording data loading: batches, workers, seeds, epochs, streams, failures, and what is kept."""

from __future__ import annotations

import gc
import json
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import torchlab as torch
from torchlab import viz
from torchlab._core import events
from torchlab.utils import data as D
from torchlab.viz.pictures import read_html


@pytest.fixture(autouse=True)
def nobody_listens_afterwards() -> Iterator[None]:
    before = {name: topic.listeners for name, topic in events.TOPICS.items()}
    yield
    assert {name: topic.listeners for name, topic in events.TOPICS.items()} == before


class Squares(D.Dataset[Any]):
    def __init__(self, n: int = 12, bad: int = -1) -> None:
        self.n, self.bad = n, bad

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        if i == self.bad:
            raise ValueError(f"sample {i} is broken")
        time.sleep(0.002 if i != 5 else 0.02)
        return torch.full((3,), float(i)), i * i


class Stream(D.IterableDataset[Any]):
    """Worker i of n gives i, i + n, i + 2n …"""

    def __iter__(self) -> Iterator[Any]:
        info = D.get_worker_info()
        yield from range(info.id if info else 0, 10, info.num_workers if info else 1)


def record(loader: Any, epochs: int = 1) -> viz.LoaderRecorder:
    with viz.record_loading() as recording:
        for _ in range(epochs):
            for _batch in loader:
                time.sleep(0.001)
    return recording


def ordered(recording: viz.LoaderRecorder) -> list[Any]:
    return sorted(recording.batches, key=lambda b: (b["run"], b["index"]))


def test_in_the_process() -> None:
    recording = record(D.DataLoader(Squares(), 4), 2)
    batches = ordered(recording)
    assert [(b["run"], b["number"], b["worker"], b["seed"]) for b in batches] == [
        (run, k, None, None) for run in (0, 1) for k in range(3)
    ]
    assert batches[1]["indices"] == [4, 5, 6, 7] and batches[1]["size"] == 4
    # 4 × 3 float32, and 4 int64
    assert all(b["bytes"] == 48 + 32 and b["pickled"] == 0 for b in batches)
    assert batches[1]["slowest"][0] == 5 and batches[1]["slowest"][1] >= 0.02
    for b in batches:
        fetch, collate = b["spans"]["fetch"], b["spans"]["collate"]
        assert b["asked"] <= fetch[0] <= fetch[1] == collate[0] <= collate[1] <= b["given"]
        assert b["given"] <= b["back"] and fetch[1] - fetch[0] >= 0.008
        assert 0 <= b["cpu"]["fetch"] < 0.006
    assert [p["epoch"] for p in recording.passes] == [0, 1]
    assert all(p["begin"] and p["end"] and not p["resumed"] for p in recording.passes)
    assert recording.loading.depth() == [] and recording.loading.workers() == []
    phases = {phase for _, _, phase, _ in recording.loading.loop}
    assert phases == {"fetch", "collate", "step"}
    json.dumps(recording.snapshot(), allow_nan=False)


@pytest.mark.parametrize("persistent", [False, True])
def test_of_workers(persistent: bool) -> None:
    torch.manual_seed(3)
    loader = D.DataLoader(Squares(), 3, shuffle=True, num_workers=2, persistent_workers=persistent)
    seeds, order = [], []
    with viz.record_loading() as recording:
        for _ in range(2):
            for values, _squares in loader:
                order.append([int(v) for v in values[:, 0]])
    batches = ordered(recording)
    assert [b["indices"] for b in batches] == order
    assert [b["worker"] for b in batches] == [0, 1, 0, 1] * 2
    for b in batches:
        base = recording.passes[b["run"]]["base_seed"]
        assert base is not None and b["seed"] == base + b["worker"]
        seeds.append(base)
        spans = b["spans"]
        assert {"idle", "fetch", "collate", "pack", "send", "receive", "queued"} <= set(spans)
        for earlier, later in (("idle", "fetch"), ("fetch", "collate"), ("collate", "pack")):
            assert spans[earlier][1] <= spans[later][0] + 1e-9
        assert spans["pack"][1] <= b["given"]
        assert ("start" in spans) == (b["number"] < 2 and (b["run"] == 0 or not persistent))
    assert len(set(seeds)) == (1 if persistent else 2)
    shares = recording.loading.workers()
    assert [s.batches for s in shares] == [4, 4]
    assert all(0 < s.busy <= 1 and s.seconds["fetch"] > 0.01 for s in shares)
    depth = recording.loading.depth()
    assert depth[-1][1] == 0 and max(n for _, n in depth) <= 4 and min(n for _, n in depth) == 0
    assert [t for t, _ in depth] == sorted(t for t, _ in depth)
    sums = recording.loading.account()
    parts = sums.step + sums.start + sums.stop + sums.blocked + sums.handling
    assert parts == pytest.approx(sums.whole, abs=0.25 * sums.whole)
    assert sum(sums.blame.values()) == pytest.approx(sums.blocked, rel=0.05)


@pytest.mark.parametrize("workers", [0, 1])
def test_pinning_is_told_apart(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHLAB_ACCELERATOR", "sim")
    for b in record(D.DataLoader(Squares(), 4, num_workers=workers, pin_memory=True)).batches:
        spans = b["spans"]
        assert spans["receive" if workers else "collate"][1] <= spans["pin"][0] + 1e-6
        assert spans["pin"][1] <= b["given"] + 1e-6


def test_seeds_are_the_workers() -> None:
    class Seeds(D.Dataset[Any]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> str:
            info = D.get_worker_info()
            assert info is not None
            return str(info.seed)

    told = []
    with viz.record_loading() as recording:
        for batch in D.DataLoader(Seeds(), 1, num_workers=2):
            told.append(int(batch[0]))
    assert [b["seed"] for b in ordered(recording)] == told


@pytest.mark.parametrize("workers", [0, 2])
def test_of_a_stream(workers: int) -> None:
    recording = record(D.DataLoader(Stream(), 2, num_workers=workers))
    given = [b for b in recording.batches if b["given"] is not None]
    assert all(b["indices"] is None for b in given)
    assert sum(b["size"] for b in given) == 10
    assert recording.passes[0]["end"] is not None
    assert recording.snapshot()["loaders"][0]["length"] is None
    assert recording.verdict.cause != "nothing"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_failure_is_recorded(workers: int) -> None:
    loader = D.DataLoader(Squares(bad=4), 2, num_workers=workers)
    with viz.record_loading() as recording, pytest.raises(ValueError, match="sample 4 is broken"):
        list(loader)
    failed = [b for b in recording.batches if b["error"]]
    assert [b["number"] for b in failed] == [2] and failed[0]["bytes"] == 0
    assert failed[0]["error"] == "ValueError: sample 4 is broken"
    who = "Worker 0" if workers else "The loop's process"
    assert f"{who} failed in batch 2: ValueError: sample 4 is broken." in recording.explain()
    assert "sample 4 is broken" in recording.picture.svg


def test_a_pass_that_is_resumed() -> None:
    loader = D.DataLoader(Squares(), 2, num_workers=1)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    again = D.DataLoader(Squares(), 2, num_workers=1)
    again.load_state_dict(loader.state_dict())
    recording = record(again)
    assert recording.passes[0]["resumed"] == 2
    assert [b["indices"][0] for b in ordered(recording)] == [4, 6, 8, 10]
    assert "resumed at batch 2" in recording.picture.svg


def test_one_loader_of_two_and_both() -> None:
    one, two = D.DataLoader(Squares(4), 2), D.DataLoader(Squares(6), 2, num_workers=1)
    with viz.record_loading() as both, viz.record_loading(two) as single:
        for loader in (one, two, one):
            list(loader)
    assert [p["loader"] for p in both.passes] == [0, 1, 0]
    assert [p["epoch"] for p in both.passes] == [0, 0, 1]
    assert [f["num_workers"] for f in both.snapshot()["loaders"]] == [0, 1]
    assert len(both.verdicts) == 2 and both.verdict in both.verdicts
    assert "Squares (4):" in both.explain() and "Squares (6):" in both.explain()
    assert [b["size"] for b in single.batches] == [2, 2, 2] and len(single.passes) == 1


def test_who_comes_late_and_leaves_early() -> None:
    batches = iter(D.DataLoader(Squares(), 1, num_workers=1))
    next(batches)
    with viz.record_loading() as recording:
        for _ in range(6):
            next(batches)
    list(batches)
    assert len([b for b in recording.batches if b["given"] is not None]) == 6
    assert recording.passes[0]["begin"] is None and recording.passes[0]["end"] is None
    assert recording.passes[0]["resumed"] == 0
    began, ended = recording.loading.ends(0)
    assert 0 <= began < ended <= recording.snapshot()["seconds"]
    assert recording.explain() and recording.picture.svg


def test_a_loop_that_breaks() -> None:
    loader = D.DataLoader(Squares(), 1, num_workers=2)
    with viz.record_loading() as recording:
        for _ in range(2):
            for k, _batch in enumerate(loader):
                if k == 3:
                    break
    assert [p["end"] for p in recording.passes] == [None, None]
    loading = recording.loading
    assert loading.ends(0)[1] <= loading.ends(1)[0]
    assert loading.depth()[-1][1] == 0  # what was left behind is gone
    assert loading.account().batches == 8 and recording.picture.svg


class Inner(D.Dataset[Any]):
    """A data set that uses a loader itself."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> int:
        return sum(int(b) for b in D.DataLoader(range(i), 1))


def test_a_loader_inside_a_worker_is_not_the_recordings() -> None:
    with viz.record_loading() as recording:
        assert [int(b) for b in D.DataLoader(Inner(), 1, num_workers=1)] == [0, 0, 1, 3]
    assert len(recording.passes) == 1 and len(recording.batches) == 4


def test_nothing_is_kept_alive() -> None:
    class Batch:
        def __init__(self, samples: Any) -> None:
            made.append(weakref.ref(self))

    made: list[Any] = []
    loader = D.DataLoader(Squares(4), 2, collate_fn=Batch)
    dataset = weakref.ref(loader.dataset)
    recording = record(loader)
    del loader
    gc.collect()
    assert dataset() is None and len(made) == 2 and all(r() is None for r in made)
    assert len(recording.batches) == 2


def test_the_most_that_is_kept() -> None:
    with viz.record_loading(most=3) as recording:
        list(D.DataLoader(range(10), 1))
    assert len(recording.batches) == 3 and recording.snapshot()["cut"]
    assert "cut" in recording.picture.svg
    assert recording.passes[0]["end"] is None  # or what is not kept would be the loop's own step


def test_bytes_of_all_kinds_of_batches() -> None:
    def sizes(value: Any) -> tuple[int, int]:
        with viz.record_loading() as recording:
            list(D.DataLoader([0], 1, collate_fn=lambda _: value))
        (b,) = recording.batches
        return b["bytes"], b["pickled"]

    assert sizes(torch.zeros(3, 2)) == (24, 0)
    assert sizes(np.zeros(5)) == (40, 40)
    assert sizes({"x": torch.zeros(2), "name": ["ab", "cde"]}) == (13, 5)
    assert sizes((torch.zeros(2, dtype=torch.uint8), [1.0, 2.0], None)) == (18, 16)
    assert sizes([b"abc"] * 1000) == (3000, 3000)


def test_nothing_at_all() -> None:
    with viz.record_loading() as recording:
        pass
    assert recording.verdict.cause == "nothing" and recording.verdicts == []
    assert recording.explain() == "No batch was loaded while this was recorded."
    assert "No batch was loaded yet." in recording.picture.svg
    with viz.record_loading() as recording:
        list(D.DataLoader([], 1))
    assert recording.verdict.cause == "nothing"
    assert "1 pass · 0 batches" in recording.picture.svg


def test_it_survives_a_page(tmp_path: Any) -> None:
    recording = record(D.DataLoader(Squares(), 2, num_workers=2))
    recording.picture.to_html(tmp_path / "loading.html")
    again = read_html(tmp_path / "loading.html")
    assert again.loading.verdict == recording.verdict  # type: ignore[attr-defined]
    assert again.loading.explain() == recording.explain()  # type: ignore[attr-defined]


def test_a_live_widget_follows() -> None:
    pytest.importorskip("anywidget")
    widget = viz.record_loading().picture.widget()
    with viz.record_loading() as recording:
        recording.widget = widget
        for _ in D.DataLoader(Squares(20), 1):
            pass
        assert recording.snapshot()["running"]
    widget.flush()
    lanes = widget.state["lanes"]
    assert not lanes["running"] and len(lanes["batches"]) == 20
    assert 1 <= widget.published < 12
    widget.close()
