"""The figures of a recording of data loading: who did what for how long, what the loop waited for,
how many batches lay ready, which finished batch had to wait for a slower one. Needs no loader.

Note [What the loop waits for]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
While the loop waits, every worker does something, but only one of them keeps it: the worker that
has to give the next batch (with `in_order=False`, the first that gave any). What *that* worker did
in that stretch is what the loop waited for: it was being started, read samples, collated, moved the
batch into shared memory, or had just been asked. A phase that takes long while batches lie ready
costs the loop nothing, and is not counted.

A worker's first batch often takes longer than all others: modules are loaded, files opened, caches
filled. What it takes beyond twice the usual is counted as part of the worker's start, for it comes
again with every start. The first batch of a pass is waited for by everybody, since nothing is read
before a pass begins: 'fill'.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from statistics import fmean, median
from typing import Any, cast

from torchlab.viz.accounts import Account, Stall, WorkerShare, made_at, work_of
from torchlab.viz.snapshots.common import check
from torchlab.viz.snapshots.loader import (
    Batch,
    Blocked,
    LoaderFacts,
    LoaderSnapshot,
    Pass,
    Stretch,
    seconds_text,
)
from torchlab.viz.verdicts import NOTHING, Verdict, judge

ON_LANE = ("start", "idle", "fetch", "collate", "pack")
WARMS = ("fetch", "collate", "hand-over")

Span = tuple[float, float, str, int]
"""(began, ended, phase, place of the batch among all, -1 for none)"""


class Loading:
    """The figures of a snapshot of kind 'loader'.

    Raises:
        ValueError: another kind or version of snapshot.
    """

    def __init__(self, snapshot: Mapping[str, Any]) -> None:
        check(snapshot, "loader")
        self.snapshot = cast(LoaderSnapshot, snapshot)
        self.loaders: list[LoaderFacts] = self.snapshot["loaders"]
        self.passes: list[Pass] = self.snapshot["passes"]
        self.batches: list[Batch] = self.snapshot["batches"]
        self._by_pass: dict[int, list[int]] = {}
        for i, batch in enumerate(self.batches):
            self._by_pass.setdefault(batch["run"], []).append(i)
        self._place = {(b["run"], b["number"]): i for i, b in enumerate(self.batches)}
        self._ends: dict[int, tuple[float, float]] = {}
        self._blocked: dict[int, list[Blocked]] = {}
        for wait in self.snapshot["blocked"]:
            self._blocked.setdefault(wait["run"], []).append(wait)

    def of(self, loader: int) -> list[int]:
        """The places of a loader's passes."""
        return [i for i, p in enumerate(self.passes) if p["loader"] == loader]

    def in_pass(self, run: int) -> list[int]:
        """The places of a pass's batches."""
        return self._by_pass.get(run, [])

    def given(self, run: int) -> list[int]:
        """The places of the batches that a pass gave out, in that order."""
        some = [i for i in self.in_pass(run) if self.batches[i]["asked"] is not None]
        return sorted(some, key=lambda i: self.batches[i]["asked"] or 0.0)

    def ends(self, run: int) -> tuple[float, float]:
        """When a pass began and ended; while it runs, the last that was heard of it."""
        found = self._ends.get(run)
        if found is None:
            found = self._ends[run] = self._find_ends(run)
        return found

    def _find_ends(self, run: int) -> tuple[float, float]:
        this = self.passes[run]
        times = [t for i in self.in_pass(run) for t in _times(self.batches[i])]
        began = this["begin"][0] if this["begin"] else min(times, default=0.0)
        if this["end"]:
            return began, this["end"][1]
        return began, max([*times, this["begin"][1] if this["begin"] else began])

    @cached_property
    def lanes(self) -> dict[tuple[int, int], list[Span]]:
        """What each worker did, in order, by (loader, worker). 'pack' is called 'hand-over'."""
        lanes: dict[tuple[int, int], list[Span]] = {}
        for run, this in enumerate(self.passes):
            for i in self.in_pass(run):
                batch = self.batches[i]
                if batch["worker"] is None:
                    continue
                lane = lanes.setdefault((this["loader"], batch["worker"]), [])
                for phase in ON_LANE:
                    if phase in batch["spans"]:
                        began, ended = batch["spans"][phase]
                        lane.append((began, ended, "hand-over" if phase == "pack" else phase, i))
        for loader, facts in enumerate(self.loaders):
            if any(key[0] == loader for key in lanes) or self.of(loader):
                for worker in range(facts["num_workers"]):
                    lanes.setdefault((loader, worker), [])
        for lane in lanes.values():
            lane.sort()
        return dict(sorted(lanes.items()))

    @cached_property
    def loop(self) -> list[Span]:
        """What the loop's process did: 'start', 'wait', 'hand-over', 'step', 'stop', and without
        workers 'fetch' and 'collate'."""
        found: list[Span] = []
        for run in range(len(self.passes)):
            found += self._loop(run)
        return sorted(found, key=lambda s: (s[2] != "step", s[0]))  # steps lie below

    def _loop(self, run: int) -> Iterator[Span]:
        this, given = self.passes[run], self.given(run)
        waits = self._waits(run)
        if this["begin"] and self.loaders[this["loader"]]["num_workers"]:
            yield (*_two(this["begin"]), "start", -1)
        for k, i in enumerate(given):
            batch = self.batches[i]
            asked, had = batch["asked"] or 0.0, batch["given"] or 0.0
            if batch["worker"] is None:
                for phase in ("fetch", "collate"):
                    if phase in batch["spans"]:
                        yield (*_two(batch["spans"][phase]), phase, i)
            else:
                yield from _split(asked, had, waits, i)
            after = self.batches[given[k + 1]]["asked"] if k + 1 < len(given) else None
            if after is None and this["end"]:
                after = this["end"][0]
            if batch["back"] is not None and after is not None:
                yield batch["back"], after, "step", i
        if this["end"] and self.loaders[this["loader"]]["num_workers"]:
            for began, ended, phase, _ in _split(*_two(this["end"]), waits, -1):
                yield began, ended, "stop" if phase == "hand-over" else phase, -1

    def _waits(self, run: int) -> list[tuple[float, float]]:
        return sorted(_two(b["span"]) for b in self._blocked.get(run, []))

    def depth(self, loader: int | None = None) -> list[tuple[float, int]]:
        """How many batches lie finished and not yet given out: (time, batches) at every change."""
        changes: list[tuple[float, int]] = []
        for batch in self.batches:
            run = self.passes[batch["run"]]
            if batch["worker"] is None or (loader is not None and run["loader"] != loader):
                continue
            made, given = made_at(batch), batch["given"]
            if made is None:
                continue
            if given is None and run["end"]:
                continue  # the end of a stream: there is no batch
            until = given if given is not None else max(made, self.ends(batch["run"])[1])
            changes += [(made, 1), (until, -1)]
        changes.sort()
        found: list[tuple[float, int]] = []
        level = 0
        for time, by in changes:
            level += by
            if found and found[-1][0] == time:
                found[-1] = (time, level)
            else:
                found.append((time, level))
        return found

    def workers(self, loader: int = 0) -> list[WorkerShare]:
        """What each worker of a loader did."""
        found = []
        for (at, worker), lane in self.lanes.items():
            if at != loader:
                continue
            seconds: dict[str, float] = {}
            for began, ended, phase, _ in lane:
                seconds[phase] = seconds.get(phase, 0.0) + ended - began
            mine = [
                self.batches[i]
                for run in self.of(loader)
                for i in self.in_pass(run)
                if self.batches[i]["worker"] == worker and self.batches[i]["given"] is not None
            ]
            work = median(map(work_of, mine)) if mine else 0.0
            found.append(WorkerShare(worker, len(mine), seconds, work))
        return found

    def stalls(self, loader: int = 0) -> list[Stall]:
        """The finished batches that waited for a slower earlier one (with `in_order`)."""
        if not self.loaders or not self.loaders[loader]["in_order"]:
            return []
        found = []
        for run in self.of(loader):
            slowest, behind = -1.0, -1
            for i in sorted(self.in_pass(run), key=lambda i: self.batches[i]["number"]):
                batch = self.batches[i]
                made = made_at(batch)
                if batch["worker"] is None or batch["given"] is None or made is None:
                    continue
                if made < slowest:
                    wait = self.batches[behind]
                    lost = slowest - max(made, wait["asked"] or slowest)
                    found.append(Stall(i, behind, slowest - made, max(0.0, lost)))
                else:
                    slowest, behind = made, i
        return found

    def account(self, loader: int = 0) -> Account:
        """Where the loop's time went."""
        if loader not in self._accounts:
            self._accounts[loader] = self._account(loader)
        return self._accounts[loader]

    @cached_property
    def _accounts(self) -> dict[int, Account]:
        return {}

    def _account(self, loader: int) -> Account:
        sums = Account()
        workers = self.loaders[loader]["num_workers"]
        handling: dict[int, float] = {}
        warm: dict[str, list[float]] = {}
        for run in self.of(loader):
            began, ended = self.ends(run)
            sums.passes += 1
            sums.whole += ended - began
            for began, ended, phase, i in self._loop(run):
                if phase in ("step", "start", "stop"):
                    setattr(sums, phase, getattr(sums, phase) + ended - began)
                elif phase == "wait":
                    sums.blocked += ended - began
                elif phase == "hand-over":
                    handling[i] = handling.get(i, 0.0) + ended - began
            for i in self.in_pass(run):
                batch = self.batches[i]
                for phase, (began, ended) in batch["spans"].items():
                    sums.work[phase] = sums.work.get(phase, 0.0) + ended - began
                    if batch["given"] is not None and not _is_first(batch):
                        warm.setdefault(phase, []).append(ended - began)
                sums.cpu += sum(batch["cpu"].values())
                if batch["given"] is None:
                    continue
                sums.batches += 1
                sums.samples += batch["size"]
                sums.bytes += batch["bytes"]
                sums.pickled += batch["pickled"]
                if not workers:
                    sums.loading += batch["given"] - (batch["asked"] or 0.0)
        warm["handling"] = [t for i, t in handling.items() if not _is_first(self.batches[i])]
        for phase in (*sums.work, "handling"):
            whole = sum(handling.values()) if phase == "handling" else sums.work[phase]
            some = warm.get(phase, [])
            middle = median if phase in ("pack", "handling") else fmean
            sums.each[phase] = middle(some) if len(some) > 2 else whole / max(1, sums.batches)
        usual = {p: 2 * median(t) for p, t in warm.items() if len(t) > 2}
        for i, seconds in handling.items():
            most = (
                usual.get("handling", seconds) if i >= 0 and _is_first(self.batches[i]) else seconds
            )
            sums.handling += min(seconds, most)
            sums.start += max(0.0, seconds - most)
        for run in self.of(loader):
            self._blame(run, sums, usual)
        return sums

    def _blame(self, run: int, sums: Account, usual: Mapping[str, float]) -> None:
        """What the worker that kept the loop did meanwhile."""
        loader = self.passes[run]["loader"]
        in_order = self.loaders[loader]["in_order"]
        later = self._ready_after(run)
        given = self.given(run)
        first = self.batches[given[0]]["number"] if given else -1
        blame = sums.blame
        for wait in self._blocked.get(run, []):
            at = self._place.get((run, wait["due"] if in_order else wait["came"]))
            if at is None:
                continue
            worker = self.batches[at]["worker"] or 0
            began, ended = wait["span"]
            rest = ended - began
            for since, until, phase, i in _overlaps(self.lanes[loader, worker], began, ended):
                seconds = until - since
                rest -= seconds
                if phase in WARMS and i >= 0 and _is_first(self.batches[i]):
                    span = self.batches[i]["spans"]["pack" if phase == "hand-over" else phase]
                    took = span[1] - span[0]
                    most = usual.get("pack" if phase == "hand-over" else phase, took)
                    extra = seconds * max(0.0, 1 - most / took) if took > 0 else 0.0
                    blame["start"] = blame.get("start", 0.0) + extra
                    seconds -= extra
                if phase in ("fetch", "collate") and wait["due"] == first:
                    blame["fill"] = blame.get("fill", 0.0) + seconds
                    continue
                blame[phase] = blame.get(phase, 0.0) + seconds
                if phase in ("fetch", "collate"):
                    sums.waiting[i] = sums.waiting.get(i, 0.0) + seconds
                    sums.late[worker] = sums.late.get(worker, 0.0) + seconds
            blame["hand-over"] = blame.get("hand-over", 0.0) + max(0.0, rest)
            if in_order:
                ready = later.get(wait["due"], ended)
                sums.lost_to_order += max(0.0, ended - max(began, ready))

    def _ready_after(self, run: int) -> dict[int, float]:
        """By number: when the first of the batches after that one was ready."""
        found: dict[int, float] = {}
        first = float("inf")
        some = [self.batches[i] for i in self.in_pass(run)]
        for batch in sorted(some, key=lambda b: -b["number"]):
            found[batch["number"]] = first
            made = made_at(batch)
            if made is not None and batch["given"] is not None:
                first = min(first, made)
        return found

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """One verdict for each loader."""
        return [
            judge(
                facts,
                self.account(i),
                self.workers(i),
                {k: self.batches[k] for run in self.of(i) for k in self.in_pass(run)},
                self.snapshot["cpus"],
            )
            for i, facts in enumerate(self.loaders)
        ]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the loader that costs its loop most."""
        if not self.verdicts:
            return NOTHING
        return max(self.verdicts, key=lambda v: v.lost)

    def explain(self) -> str:
        """The verdicts and what else is to be said, one paragraph for each thing."""
        found = []
        for i, verdict in enumerate(self.verdicts):
            name = f"{self.loaders[i]['label']}: " if len(self.loaders) > 1 else ""
            found.append(f"{name}{verdict.sentence} {verdict.remedy}".strip())
            stalls = self.stalls(i)
            lost = self.account(i).lost_to_order
            if stalls and lost > 0.02 * self.account(i).whole:
                longest = max(stalls, key=lambda s: s.seconds)
                found.append(
                    f"{_finished(len(stalls))} waited for a slower"
                    f" earlier one, which cost the loop {seconds_text(lost)}; the longest was batch"
                    f" {self.batches[longest.batch]['number']}, {seconds_text(longest.seconds)}"
                    f" behind batch {self.batches[longest.behind]['number']}."
                )
        for batch in self.batches:
            if batch["error"]:
                who = (
                    "The loop's process" if batch["worker"] is None else f"Worker {batch['worker']}"
                )
                found.append(f"{who} failed in batch {batch['number']}: {batch['error']}.")
        return "\n".join(found) if found else NOTHING.sentence


def _is_first(batch: Batch) -> bool:
    """Whether it is a worker's first since it was started."""
    return "start" in batch["spans"]


def _finished(n: int) -> str:
    return "1 finished batch" if n == 1 else f"{n:,} finished batches"


def _two(span: Stretch) -> tuple[float, float]:
    return span[0], span[1]


def _times(batch: Batch) -> Iterator[float]:
    for began, ended in batch["spans"].values():
        yield from (began, ended)
    yield from (t for t in (batch["asked"], batch["given"], batch["back"]) if t is not None)


def _split(began: float, ended: float, waits: list[tuple[float, float]], i: int) -> Iterator[Span]:
    """A stretch cut into what lies in `waits` and the rest, the hand-over."""
    k = max(0, bisect_right(waits, (began, began)) - 1)
    at = began
    for since, until in waits[k:]:
        if since >= ended:
            break
        since, until = max(since, at), min(until, ended)
        if until <= since:
            continue
        if since > at:
            yield at, since, "hand-over", i
        yield since, until, "wait", i
        at = until
    if ended > at:
        yield at, ended, "hand-over", i


def _overlaps(lane: list[Span], began: float, ended: float) -> Iterator[Span]:
    """The parts of a lane within a stretch."""
    k = max(0, bisect_right(lane, (began, began, "", -1)) - 1)
    for since, until, phase, i in lane[k:]:
        if since >= ended:
            break
        since, until = max(since, began), min(until, ended)
        if until > since:
            yield since, until, phase, i


__all__ = ["Loading", "Span"]
