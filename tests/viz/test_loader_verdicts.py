"""Verdicts on data loading: loaders that are slow for one reason, and simulated ones with exact
figures."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import pytest

import torchlab as torch
from tests.viz import samples
from torchlab import viz
from torchlab.utils import data as D
from torchlab.viz.loading import Loading
from torchlab.viz.snapshots.loader import seconds_text
from torchlab.viz.verdicts import CAUSES


class Slow(D.Dataset[Any]):
    """Samples that take `seconds` to read, some of them others."""

    def __init__(self, n: int, seconds: float = 0.0, others: dict[int, float] | None = None):
        self.n, self.seconds, self.others = n, seconds, others or {}

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        wait = self.others.get(i, self.seconds)
        if wait:
            time.sleep(wait)
        return torch.full((4,), float(i))


class LameWorker(Slow):
    def __getitem__(self, i: int) -> Any:
        info = D.get_worker_info()
        assert info is not None
        time.sleep(0.05 if info.id == 1 else 0.004)
        return i


def slow_collate(batch: Any) -> Any:
    time.sleep(0.06)
    return torch.stack(batch)


def loader(data: Any, size: int, workers: int, **facts: Any) -> Any:
    """A loader whose workers stay: how long they take to start is up to the machine, and one
    test alone is about that."""
    return D.DataLoader(data, size, num_workers=workers, persistent_workers=workers > 0, **facts)


def record(loader: Any, step: float = 0.0, epochs: int = 1) -> Any:
    if loader.persistent_workers:
        list(loader)  # the workers are there when it counts
    with viz.record_loading() as recording:
        for _ in range(epochs):
            for _batch in loader:
                if step:
                    time.sleep(step)
    return recording


@pytest.mark.parametrize("workers", [0, 2])
def test_a_slow_dataset(workers: int) -> None:
    recording = record(loader(Slow(48, 0.02), 4, workers))
    verdict = recording.verdict
    assert verdict.cause == "fetch" and verdict.share > 0.9
    reads = verdict.figures["fetch"]
    assert reads >= 0.08
    assert f"reading samples is most of it: {seconds_text(reads)} of" in verdict.sentence
    assert "mostly waiting for a disk or a network" in verdict.sentence
    assert verdict.settings["num_workers"] > workers


@pytest.mark.parametrize("workers", [0, 1])
def test_a_slow_collate(workers: int) -> None:
    verdict = record(loader(Slow(48), 4, workers, collate_fn=slow_collate)).verdict
    assert verdict.cause == "collate"
    takes = verdict.figures["collate"]
    assert takes >= 0.06
    assert f"collating is most of it: {seconds_text(takes)} of" in verdict.sentence
    assert "collate_fn" in verdict.remedy


def test_a_slow_loop() -> None:
    verdict = record(loader(Slow(40), 4, 2), step=0.12).verdict
    assert verdict.cause == "loop" and verdict.settings == {}
    assert verdict.sentence.startswith("The training loop itself takes the time: ")
    assert "1 worker of the 2 would do" in verdict.remedy
    verdict = record(D.DataLoader(Slow(40), 4), step=0.06).verdict
    assert verdict.cause == "loop"


def test_one_slow_worker() -> None:
    recording = record(loader(LameWorker(40), 2, 2), step=0.002)
    verdict = recording.verdict
    assert verdict.cause == "slow worker" and verdict.figures["worker"] == 1
    takes = verdict.figures["worker_seconds"]
    assert takes >= 0.1 and takes > verdict.figures["others_seconds"]
    assert f"for worker 1: it takes {seconds_text(takes)} for a batch" in verdict.sentence
    assert verdict.settings == {"in_order": False} and "in_order=False" in verdict.remedy
    stalls = recording.loading.stalls()
    assert stalls and all(recording.loading.batches[s.behind]["worker"] == 1 for s in stalls)
    assert recording.loading.account().lost_to_order > 0.3


@pytest.mark.parametrize("workers", [0, 2])
def test_one_slow_sample(workers: int) -> None:
    verdict = record(loader(Slow(80, 0.0005, {41: 0.5}), 4, workers), step=0.002).verdict
    assert verdict.cause == "slow sample" and verdict.figures["slow"] == [10]
    assert "1 slow batch of" in verdict.sentence and "for sample 41" in verdict.sentence


class Uneven(D.IterableDataset[Any]):
    def __iter__(self) -> Any:
        info = D.get_worker_info()
        assert info is not None
        for i in range(80 if info.id == 0 else 8):
            time.sleep(0.004)
            yield i


def test_uneven_shards() -> None:
    verdict = record(loader(Uneven(), 4, 2)).verdict
    assert verdict.cause == "shards" and verdict.figures["batches_of"] == [20, 2]
    assert "worker 0: it gave 20 batches, the others 2." in verdict.sentence


def test_out_of_order() -> None:
    recording = record(loader(LameWorker(40), 2, 2, in_order=False), 0.002)
    assert recording.loading.stalls() == []
    assert recording.loading.account().lost_to_order == 0
    assert recording.verdict.share > 0.3 and "in_order" not in recording.verdict.settings


def test_tiny_batches() -> None:
    verdict = record(loader(D.TensorDataset(torch.arange(600)), 1, 1)).verdict
    assert verdict.cause == "hand-over"
    assert "for each of 8 B" in verdict.sentence
    assert verdict.settings["batch_size"] > 1 and "num_workers=0" in verdict.remedy
    figures = verdict.figures
    assert figures["hand_over"] > figures["fetch"] + figures["collate"]


def test_workers_that_start_again_each_epoch() -> None:
    verdict = record(D.DataLoader(Slow(8), 4, num_workers=2), 0.001, epochs=6).verdict
    assert verdict.cause == "start" and verdict.settings == {"persistent_workers": True}
    assert "in each of 6 passes of 2 batches" in verdict.sentence


def test_too_few_workers() -> None:
    verdict = record(loader(Slow(96, 0.01), 4, 1), step=0.02).verdict
    assert verdict.cause == "workers"
    assert verdict.settings == {"num_workers": verdict.figures["needed_workers"]}
    assert verdict.figures["needed_workers"] >= 2
    assert "1 worker gives a batch every" in verdict.sentence


# ---- simulated: exact ----------------------------------------------------------------------------


def simulate(
    workers: int,
    fetch: Callable[[int, int], float],
    step: Callable[[int], float],
    *,
    batches: int = 40,
    prefetch: int = 2,
    pack: float = 0.0002,
    receive: float = 0.0002,
    cpu: float = 0.0,
    cpus: int = 8,
    **facts: Any,
) -> Any:
    """A pass in which worker w reads batch k for fetch(k, w) and the loop works step(k) on it; all
    in order."""
    made: dict[int, float] = {}
    given: dict[int, float] = {}
    free = [0.0] * workers
    found, blocked = [], []
    now = 0.0
    for k in range(batches):
        w = k % workers
        ahead = k - prefetch * workers  # it was asked for when this one was given out
        idle = free[w]
        began = max(idle, given[ahead] if ahead >= 0 else 0.0)
        read = began + fetch(k, w)
        made[k] = free[w] = read + pack
        came = max(now, made[k])
        blocked.append({"run": 0, "due": k, "came": k, "span": [now, came]})
        given[k] = came + receive
        spans = {
            "idle": [idle, began],
            "fetch": [began, read],
            "pack": [read, made[k]],
            "receive": [came, given[k]],
        }
        found.append(
            {
                **samples.loader(1, 1, 1)["batches"][0],
                "number": k,
                "index": k,
                "worker": w,
                "spans": spans,
                "cpu": {"fetch": cpu * (read - began)},
                "bytes": 4096,
                "asked": now,
                "given": given[k],
                "back": given[k],
                "slowest": None,
            }  # fmt: skip
        )
        now = given[k] + step(k)
    snapshot = samples.loader(1, 1, 1)
    snapshot["passes"][0] |= {"begin": [0.0, 0.0], "end": [now, now]}
    snapshot["loaders"][0] |= {"num_workers": workers, "prefetch_factor": prefetch, **facts}
    return Loading({**snapshot, "batches": found, "blocked": blocked, "cpus": cpus})


def test_figures_of_too_few_workers() -> None:
    loading = simulate(2, lambda k, w: 0.03, lambda k: 0.0048)
    sums, verdict = loading.account(), loading.verdict
    assert sums.step == pytest.approx(40 * 0.0048)
    assert sums.handling == pytest.approx(40 * 0.0002)
    assert sums.whole == pytest.approx(sums.step + sums.handling + sums.blocked)
    assert sum(sums.blame.values()) == pytest.approx(sums.blocked)
    assert sums.blame["fill"] == pytest.approx(0.03)  # the first batch
    assert sums.blame["fetch"] + 0.03 > 0.95 * sums.blocked
    assert verdict.cause == "workers" and verdict.settings == {"num_workers": 7}
    assert verdict.sentence == (
        f"The loop waits for data {verdict.share:.0%} of its time: 2 workers give a batch every"
        " 15.1 ms, the loop could take one every 5 ms."
    )
    # as many as that are enough
    after = simulate(7, lambda k, w: 0.03, lambda k: 0.0048, batches=200)
    assert after.verdict.cause == "loop"


def test_processors_bound_the_number_of_workers() -> None:
    loading = simulate(2, lambda k, w: 0.03, lambda k: 0.0048, cpu=0.9, cpus=4)
    assert loading.verdict.cause == "fetch" and loading.verdict.settings == {"num_workers": 4}
    assert "mostly computing" in loading.verdict.sentence
    assert "that alone is not enough" in loading.verdict.remedy
    full = simulate(4, lambda k, w: 0.03, lambda k: 0.0048, cpu=0.9, cpus=4)
    assert full.verdict.settings == {} and "more workers do not help" in full.verdict.remedy
    crowd = simulate(8, lambda k, w: 0.06, lambda k: 0.001, cpu=0.4, cpus=4)
    assert crowd.verdict.settings == {"num_workers": 4} and "take turns" in crowd.verdict.remedy


def test_bursts() -> None:
    def step(k: int) -> float:
        return 0.5 if k % 10 == 9 else 0.0005

    loading = simulate(2, lambda k, w: 0.03, step)
    verdict = loading.verdict
    assert verdict.cause == "prefetch" and verdict.settings == {"prefetch_factor": 8}
    assert "in bursts" in verdict.sentence
    better = simulate(2, lambda k, w: 0.03, step, prefetch=8)
    assert better.verdict.share < verdict.share / 2


def test_a_slow_sample_and_its_stall() -> None:
    def read(k: int, w: int) -> float:
        return 0.1 if k == 60 else 0.004

    loading = simulate(2, read, lambda k: 0.004, batches=80)
    verdict = loading.verdict
    assert verdict.cause == "slow sample" and verdict.figures["slow"] == [60]
    stalls = loading.stalls()
    # 62 is the same worker's next, for which 63 has to wait
    assert [(s.batch, s.behind) for s in stalls] == [(61, 60), (63, 62)]
    sums = loading.account()
    # batch 61 was there before the loop asked for 60
    assert stalls[0].lost == pytest.approx(sums.waiting[60] + 0.0002)
    assert sums.lost_to_order == pytest.approx(sum(s.lost for s in stalls))
    assert verdict.settings == {"prefetch_factor": 13}
    better = simulate(2, read, lambda k: 0.004, batches=80, prefetch=13)
    assert better.verdict.cause == "loop" and better.verdict.share < 0.3 * verdict.share


def test_a_worker_that_is_always_slow_among_many() -> None:
    loading = simulate(8, lambda k, w: 0.2 if w == 3 else 0.02, lambda k: 0.004, batches=64)
    verdict = loading.verdict
    assert verdict.cause == "slow worker" and verdict.figures["worker"] == 3
    assert "worker 3: it takes 200 ms for a batch, the others 20 ms" in verdict.sentence


def test_short_passes_that_begin_with_nothing_read() -> None:
    loading = simulate(4, lambda k, w: 0.1, lambda k: 0.03, batches=8, persistent_workers=True)
    verdict = loading.verdict
    assert verdict.cause == "fill" and verdict.settings == {}
    assert "100 ms until a first batch is read" in verdict.sentence
    assert "in a pass of 8 batches:" in verdict.sentence and "longer passes" in verdict.remedy


def test_queue_depth() -> None:
    loading = simulate(2, lambda k, w: 0.001, lambda k: 0.05, batches=10)
    assert max(n for _, n in loading.depth()) == 4  # 2 workers, 2 ahead
    assert loading.depth()[-1][1] == 0
    assert loading.verdict.cause == "loop"


def test_large_batches_that_are_pickled() -> None:
    loading = simulate(2, lambda k, w: 0.001, lambda k: 0.001, pack=0.02, receive=0.02)
    for b in loading.batches:
        b["bytes"], b["pickled"] = 8 << 20, 8 << 20
    again = Loading(loading.snapshot)
    assert again.verdict.cause == "hand-over" and "return tensors" in again.verdict.remedy
    for b in again.batches:
        b["pickled"] = 0
    assert "fewer bytes" in Loading(loading.snapshot).verdict.remedy


def test_every_cause_has_a_name_and_figures() -> None:
    loading = Loading(samples.loader())
    verdict = loading.verdict
    assert verdict.cause in CAUSES
    assert str(verdict) == f"{verdict.sentence} {verdict.remedy}"
    losses = verdict.figures["losses"]
    assert sum(losses.values()) == pytest.approx(verdict.lost, rel=0.1)
    assert verdict.lost == pytest.approx(verdict.share * verdict.figures["seconds"])


def test_the_snapshot_is_left_as_it_is() -> None:
    snapshot = samples.loader()
    before = copy.deepcopy(snapshot)
    Loading(snapshot).explain()
    assert snapshot == before
    with pytest.raises(ValueError, match="kind 'loader'"):
        Loading({"kind": "memory"})


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0 µs"),
        (9.99e-7, "1 µs"),
        (1.5e-6, "1.5 µs"),
        (0.0009996, "1 ms"),
        (0.0123, "12.3 ms"),
        (0.1234, "123 ms"),
        (0.9999, "1 s"),
        (1.234, "1.23 s"),
        (12.34, "12.3 s"),
        (1234, "1,234 s"),
    ],
)
def test_times(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
