"""What holds a training loop up in loading its data, as data and as a sentence, and the remedy.

Source of the settings: https://docs.pytorch.org/docs/2.13/data.html#torch.utils.data.DataLoader
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from torchlab.viz.accounts import Account, WorkerShare, work_of
from torchlab.viz.snapshots.common import bytes_text, count_text
from torchlab.viz.snapshots.loader import Batch, LoaderFacts, seconds_text

CAUSES = {
    "nothing": "nothing was loaded",
    "loop": "the training loop itself",
    "fetch": "reading samples",
    "collate": "collating",
    "hand-over": "handing batches over",
    "workers": "too few workers",
    "prefetch": "too little ahead",
    "slow worker": "one slow worker",
    "slow sample": "single slow batches",
    "shards": "uneven shards",
    "start": "starting workers",
    "fill": "the beginning of each pass",
}
LITTLE = 0.1
"""The share of its time that a loop may lose to loading before that is worth a word."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What costs a loop its time.

    `cause`: a key of `CAUSES`. `share`: of the loop's time, what it loses to loading in all;
    `lost`: the same in seconds. `settings`: arguments of `DataLoader` to change, empty where no
    setting helps. `figures`: the numbers of the sentence, seconds and counts.
    """

    cause: str
    share: float
    lost: float
    sentence: str
    remedy: str
    settings: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}".strip()


NOTHING = Verdict("nothing", 0.0, 0.0, "No batch was loaded while this was recorded.", "")


class _Case:
    """A loader's figures, with what several judgements need."""

    def __init__(
        self,
        facts: LoaderFacts,
        sums: Account,
        shares: list[WorkerShare],
        batches: Mapping[int, Batch],
        cpus: int,
    ) -> None:
        self.facts, self.sums, self.shares, self.batches, self.cpus = (
            facts,
            sums,
            shares,
            batches,
            cpus,
        )
        self.n = facts["num_workers"]
        # Not `whole`: what listening and drawing took is nobody's.
        self.lost = sums.start + sums.stop + sums.blocked + sums.handling + sums.loading
        self.seconds = self.lost + sums.step
        self.share = self.lost / self.seconds if self.seconds > 0 else 0.0
        self.read = sums.each.get("fetch", 0.0)
        self.collate = sums.each.get("collate", 0.0)
        self.pack = sums.each.get("pack", 0.0)
        self.step = sums.step / max(1, sums.batches)
        self.handling = sums.each.get("handling", 0.0)
        self.hand_over = self.pack + self.handling
        work = sums.work.get("fetch", 0.0) + sums.work.get("collate", 0.0)
        self.computes = sums.cpu / work if work > 0 else 1.0
        # By the processor, not by a disk or a network. Workers may share processors.
        self.bound = self.computes * max(1.0, self.n / cpus) > 0.25
        self.limit = cpus if self.bound else max(8, 2 * cpus)
        period = max(self.step + self.handling, 1e-9)
        self.needed = max(1, math.ceil(1.05 * (self.read + self.collate + self.pack) / period))

    def losses(self) -> dict[str, float]:
        """The seconds that the loop loses, by what keeps it."""
        sums = self.sums
        if not self.n:
            rest = sums.loading - sums.work.get("collate", 0.0)
            return {"fetch": rest, "collate": sums.work.get("collate", 0.0)}
        blame = sums.blame
        return {
            "start": sums.start + sums.stop + blame.get("start", 0.0),
            "fill": blame.get("fill", 0.0),
            "hand-over": sums.handling + blame.get("hand-over", 0.0) + blame.get("idle", 0.0),
            "fetch": blame.get("fetch", 0.0),
            "collate": blame.get("collate", 0.0),
        }

    def crowded(self) -> bool:
        """Whether processors are so busy with reading that what is handed over waits for one, too.
        Then larger batches would not help."""
        losses = self.losses()
        full = self.n >= self.cpus and self.bound and self.hand_over < self.read + self.collate
        return full and losses["fetch"] + losses["collate"] > 0.1 * self.lost

    def figures(self) -> dict[str, Any]:
        sums = self.sums
        return {
            "seconds": self.seconds,
            "batches": sums.batches,
            "passes": sums.passes,
            "step": self.step,
            "fetch": self.read,
            "collate": self.collate,
            "hand_over": self.hand_over,
            "start": (sums.start + sums.stop + sums.blame.get("start", 0.0)) / max(1, sums.passes),
            "computes": self.computes,
            "bytes": sums.bytes / max(1, sums.batches),
            "needed_workers": self.needed,
            "losses": self.losses(),
            "lost_to_order": sums.lost_to_order,
        }

    def verdict(
        self, cause: str, sentence: str, remedy: str, settings: dict[str, Any] | None = None,
        **more: Any,
    ) -> Verdict:  # fmt: skip
        return Verdict(
            cause,
            self.share,
            self.lost,
            sentence,
            remedy,
            settings or {},
            self.figures() | more,
        )


def judge(
    facts: LoaderFacts,
    sums: Account,
    shares: list[WorkerShare],
    batches: Mapping[int, Batch],
    cpus: int,
) -> Verdict:
    """What costs the loop over a loader its time. `batches`: all of its, by their places."""
    if not sums.batches or sums.whole <= 0:
        return NOTHING
    case = _Case(facts, sums, shares, batches, cpus)
    if case.share < LITTLE:
        return _loop(case)
    losses = case.losses()
    if case.crowded():
        del losses["hand-over"]
    start = losses.pop("start", 0.0) + losses.pop("fill", 0.0)
    top = max(losses, key=lambda k: losses[k])
    if start > losses[top]:
        return _start(case)
    if top == "hand-over":
        return _hand_over(case)
    return (
        _slow_sample(case)
        or _shards(case)
        or _slow_worker(case)
        or _prefetch(case)
        or _workers(case)
        or _work(case, "collate" if case.collate > case.read else "fetch")
    )


def _head(case: _Case) -> str:
    verb = "waits for data" if case.n else "loads data"
    return f"The loop {verb} {case.share:.0%} of its time"


def _loop(case: _Case) -> Verdict:
    spent = 1 - case.share
    sentence = (
        f"The training loop itself takes the time: {spent:.0%} of it,"
        f" {seconds_text(case.step)} a batch; loading costs it"
        f" {seconds_text(case.lost / case.sums.batches)} a batch."
    )
    spare = case.n > case.needed
    remedy = "Remedy: none is needed in loading; make the loop's own step faster."
    if spare:
        remedy += f" {count_text(case.needed, 'worker')} of the {case.n} would do."
    return case.verdict("loop", sentence, remedy)


def _start(case: _Case) -> Verdict:
    sums, facts = case.sums, case.facts
    start, fill = case.losses()["start"], case.losses()["fill"]
    each = (start + fill) / sums.passes
    size = _batches(round(sums.batches / sums.passes))
    passes = f"each of {sums.passes:,} passes of {size}" if sums.passes > 1 else f"a pass of {size}"
    if fill < 0.3 * start:
        cause = "start"
        sentence = (
            f"{_head(case)}, most of it for starting workers, warming them up and stopping them:"
            f" {seconds_text(start)} of {seconds_text(case.seconds)},"
            f" {seconds_text(start / sums.passes)} in {passes}."
        )
    else:
        cause = "start" if start > fill else "fill"
        sentence = (
            f"{_head(case)}, most of it at the beginning of passes, {seconds_text(each)} in"
            f" {passes}: {seconds_text(start)} for starting and stopping workers,"
            f" {seconds_text(fill)} until a first batch is read."
        )
    if sums.passes > 1 and not facts["persistent_workers"] and start > 0.5 * fill:
        remedy = "Remedy: persistent_workers=True starts them once."
        return case.verdict(cause, sentence, remedy, {"persistent_workers": True})
    alone = (case.read + case.collate) * sums.batches
    if alone < start + fill:
        remedy = (
            "Remedy: num_workers=0; reading all of these batches in the loop's own process takes"
            f" {seconds_text(alone)}."
        )
        return case.verdict(cause, sentence, remedy, {"num_workers": 0})
    remedy = "Remedy: longer passes, since nothing is read before one begins"
    if start > fill:
        remedy += "; less to do in a worker's start (worker_init_fn, what the dataset carries)"
    elif (facts["batch_size"] or 1) > 1:
        remedy += ", or smaller batches, of which the first comes sooner"
    return case.verdict(cause, sentence, remedy + ".")


def _hand_over(case: _Case) -> Verdict:
    sums, facts = case.sums, case.facts
    each = sums.bytes / sums.batches
    work = case.read + case.collate
    sentence = (
        f"{_head(case)}, most of it for handing batches over: {seconds_text(case.hand_over)} for"
        f" each of {bytes_text(round(each))}, against {seconds_text(work)} for reading and"
        " collating it."
    )
    size = facts["batch_size"]
    if each > 1 << 20:
        piped = sums.pickled / sums.batches
        if piped > each / 2:
            remedy = (
                f"Remedy: return tensors: {bytes_text(round(piped))} of each batch are pickled and"
                " copied through a pipe, tensors would go through shared memory."
            )
        else:
            remedy = (
                "Remedy: hand over fewer bytes: bytes (uint8) instead of floats, converted in the"
                " loop."
            )
        return case.verdict("hand-over", sentence, remedy)
    alone = work < case.hand_over
    settings: dict[str, Any] = {}
    remedy = "Remedy:"
    if size is not None:
        factor = min(64, max(2, math.ceil(4 * case.hand_over / max(work, 1e-6))))
        room = (facts["samples"] or size * factor) // size
        if room >= 2:
            settings["batch_size"] = size * min(factor, room)
            remedy += f" larger batches (batch_size={settings['batch_size']})"
            remedy += " share the cost" if not alone else ","
    if alone:
        if not settings:
            settings["num_workers"] = 0
        remedy += (" or" if "batch_size" in settings else "") + " num_workers=0, which hands"
        remedy += " nothing over"
    return case.verdict("hand-over", sentence, remedy.rstrip(",") + ".", settings)


def _slow_worker(case: _Case) -> Verdict | None:
    shares = [s for s in case.shares if s.batches >= 2]
    blame = sum(case.sums.late.values())
    if len(shares) < 2 or blame <= 0:
        return None
    worst = max(shares, key=lambda s: s.work)
    others = median(s.work for s in shares if s is not worst)
    late = case.sums.late.get(worst.worker, 0.0) / blame
    if worst.work < 2 * others or late < 0.6:
        return None
    sentence = (
        f"{_head(case)}, {late:.0%} of that for worker {worst.worker}: it takes"
        f" {seconds_text(worst.work)} for a batch, the others {seconds_text(others)}."
    )
    remedy = (
        f"Remedy: find what worker {worst.worker} does differently (worker_init_fn, its shard, its"
        " part of the disk)"
    )
    settings: dict[str, Any] = {}
    if case.facts["in_order"] and case.sums.lost_to_order > 0.3 * case.sums.blocked:
        settings["in_order"] = False
        remedy += (
            "; if the order of batches does not matter, in_order=False lets the others go ahead:"
            f" {seconds_text(case.sums.lost_to_order)} were lost while finished batches lay behind"
            " its own"
        )
    return case.verdict(
        "slow worker", sentence, remedy + ".", settings,
        worker=worst.worker, worker_seconds=worst.work, others_seconds=others,
    )  # fmt: skip


def _shards(case: _Case) -> Verdict | None:
    """The stream of one worker is much longer than those of the others."""
    blame = sum(case.sums.late.values())
    if not case.facts["streams"] or len(case.shares) < 2 or blame <= 0:
        return None
    most = max(case.shares, key=lambda s: s.batches)
    others = median(s.batches for s in case.shares if s is not most)
    late = case.sums.late.get(most.worker, 0.0) / blame
    if most.batches < 2 * others + 2 or late < 0.6:
        return None
    sentence = (
        f"{_head(case)}, {late:.0%} of that for worker {most.worker}: it gave"
        f" {_batches(most.batches)}, the others {others:g}. Their parts of the stream end sooner,"
        " and then it works alone."
    )
    return case.verdict(
        "shards",
        sentence,
        "Remedy: give every worker an equal part of the stream (get_worker_info), for instance by"
        " many small shards.",
        worker=most.worker,
        batches_of=[s.batches for s in case.shares],
    )


def _slow_sample(case: _Case) -> Verdict | None:
    seen = {
        i: work_of(b)
        for i, b in case.batches.items()
        if b["given"] is not None and "start" not in b["spans"]
    }
    if len(seen) < 6:
        return None
    usual = median(seen.values())
    least = usual + max(1e-3, 3 * usual, 0.2 * (max(seen.values()) - usual))
    slow = sorted((i for i, t in seen.items() if t > least), key=lambda i: -seen[i])
    if not slow or len(slow) > max(1, len(seen) // 6):
        return None
    for share in case.shares:  # a worker that is always slow is another matter
        mine = sum(case.batches[i]["worker"] == share.worker for i in slow)
        if len(case.shares) > 1 and mine > max(1, share.batches // 2):
            return None
    if case.n:
        cost = sum(case.sums.waiting.get(i, 0.0) for i in slow)
        whole = sum(case.sums.waiting.values())
    else:
        cost, whole = sum(seen[i] - usual for i in slow), sum(seen.values())
    if cost < 0.5 * whole:
        return None
    first = case.batches[slow[0]]
    which = ""
    if first["slowest"] is not None and float(first["slowest"][1]) > 0.5 * seen[slow[0]]:
        index, seconds = first["slowest"]
        which = f", {seconds_text(float(seconds))} of it for sample {index}"
    sentence = (
        f"{_head(case)}, most of it for {_slow(len(slow))} of {len(seen):,}: batch"
        f" {first['number']} took {seconds_text(seen[slow[0]])}{which}, the usual batch"
        f" {seconds_text(usual)}."
    )
    remedy = "Remedy: look at what is slow there (a large file, a cold disk, a retry)"
    settings: dict[str, Any] = {}
    if case.n:
        period = max(case.step + case.handling, 1e-6)
        ahead = math.ceil(seen[slow[0]] / period / case.n) + 1
        if case.step > usual / case.n and (case.facts["prefetch_factor"] or 0) < ahead <= 32:
            settings["prefetch_factor"] = ahead
            remedy += f"; prefetch_factor={ahead} keeps enough ready to bridge it"
    else:
        settings["num_workers"] = min(case.limit, 2)
        remedy += f"; with num_workers={settings['num_workers']} the loop goes on meanwhile"
    return case.verdict(
        "slow sample", sentence, remedy + ".", settings,
        slow=[case.batches[i]["number"] for i in slow], usual=usual, slowest=seen[slow[0]],
    )  # fmt: skip


def _prefetch(case: _Case) -> Verdict | None:
    """Workers could keep up on average, but stand still while the loop rests, and lag when it
    hurries."""
    if not case.n or case.sums.batches < 6:
        return None
    idle = sum(s.seconds.get("idle", 0.0) for s in case.shares)
    whole = sum(sum(s.seconds.values()) - s.seconds.get("start", 0.0) for s in case.shares)
    able = (case.read + case.collate + case.pack) / case.n
    if whole <= 0 or idle / whole < 0.35 or able > 0.8 * (case.step + case.handling):
        return None
    ahead = 4 * (case.facts["prefetch_factor"] or 2)
    sentence = (
        f"{_head(case)} although its workers are idle {idle / whole:.0%} of theirs: the loop takes"
        " batches in bursts, and too few are ready for one."
    )
    remedy = f"Remedy: prefetch_factor={ahead} lets workers get more ahead while the loop rests."
    return case.verdict("prefetch", sentence, remedy, {"prefetch_factor": ahead}, idle=idle / whole)


def _workers(case: _Case) -> Verdict | None:
    if not case.n or not case.n < case.needed <= case.limit:
        return None
    work = case.read + case.collate + case.pack
    sentence = (
        f"{_head(case)}: {count_text(case.n, 'worker')} give{'s' if case.n == 1 else ''} a batch"
        f" every {seconds_text(work / case.n)}, the loop could take one every"
        f" {seconds_text(case.step + case.handling)}."
    )
    remedy = f"Remedy: num_workers={case.needed}."
    if case.needed > case.cpus:
        remedy = (
            f"Remedy: num_workers={case.needed}; reading waits and does not compute, so that more"
            f" workers than processors ({case.cpus}) help."
        )
    return case.verdict("workers", sentence, remedy, {"num_workers": case.needed})


def _work(case: _Case, phase: str) -> Verdict:
    """Reading or collating is slow, and the number of workers is not what is wrong."""
    each, whole = (case.read, case.read + case.collate)
    what = "reading samples"
    if phase == "collate":
        each, what = case.collate, "collating"
    slow = f"{what} is most of it: {seconds_text(each)} of {seconds_text(whole)} a batch"
    by = "computing" if case.bound else "waiting for a disk or a network"
    if case.n:
        sentence = (
            f"{_head(case)}: {slow}, mostly {by}, in {count_text(case.n, 'worker')}; the loop's"
            f" own step takes {seconds_text(case.step)}."
        )
    else:
        sentence = (
            f"{_head(case)}, and {slow}, mostly {by}; the loop's own step takes"
            f" {seconds_text(case.step)}."
        )
    wanted = min(case.needed, case.limit)
    settings: dict[str, Any] = {}
    better = (
        "do less for each sample in the dataset (decode smaller, keep results)"
        if phase == "fetch"
        else "do less in collate_fn: stack arrays whole, leave single samples to the dataset"
    )
    if wanted > case.n:
        settings["num_workers"] = wanted
        remedy = f"Remedy: num_workers={wanted}, so that batches are made while the loop works"
        if case.needed > case.limit:
            remedy += f"; that alone is not enough, so {better}"
    elif case.bound and case.n > case.cpus:
        settings["num_workers"] = case.cpus
        remedy = (
            f"Remedy: {better}; {case.n} workers share {count_text(case.cpus, 'processor')},"
            " more of them only take turns"
        )
    else:
        remedy = f"Remedy: {better}; more workers do not help"
        remedy += f" with {count_text(case.cpus, 'processor')}" if case.bound else ""
    return case.verdict(phase, sentence, remedy + ".", settings)


def _batches(n: int) -> str:
    return "1 batch" if n == 1 else f"{n:,} batches"


def _slow(n: int) -> str:
    return "1 slow batch" if n == 1 else f"{n:,} slow batches"


__all__ = ["CAUSES", "NOTHING", "Verdict", "judge"]
