"""The data of the page that shows data loading: lanes of work over time, the queue, the batches.
No markup; short keys and whole microseconds for thousands of batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchlab.viz.accounts import Stall, made_at
from torchlab.viz.loading import Loading, Span
from torchlab.viz.snapshots.common import bytes_text, count_text, source_text
from torchlab.viz.snapshots.loader import Batch, LoaderFacts, seconds_text
from torchlab.viz.verdicts import CAUSES, Verdict
from torchlab.viz.views.common import Details, Drawing, details

PHASES = ("fetch", "collate", "hand-over", "wait", "step", "start", "stop", "idle")
COLOURS = {
    "idle": "free",
    "start": "p-start",
    "stop": "p-start",
    "fetch": "p-fetch",
    "collate": "p-collate",
    "hand-over": "p-hand-over",
    "wait": "p-wait",
    "step": "p-step",
}
NAMES = {
    "fetch": "read samples",
    "hand-over": "hand over",
    "wait": "loop waits",
    "step": "loop's own step",
}
LEGEND = (
    ("p-fetch", "read samples", "fetch"),
    ("p-collate", "collate", "collate"),
    ("p-hand-over", "hand over", "hand-over"),
    ("p-wait", "loop waits", "wait"),
    ("p-step", "loop's own step", "step"),
    ("p-start", "start, stop", "start"),
    ("free", "idle", "idle"),
)
STRIPS = (("reserved", "batch lies ready"), ("warn", "ready, but a slower one comes first"))
TIMES = (
    ("start", "process start"),
    ("idle", "worker idle"),
    ("fetch", "read"),
    ("collate", "collate"),
    ("pack", "pack"),
    ("send", "in the pipe"),
    ("receive", "receive"),
    ("pin", "pin memory"),
    ("queued", "lay ready"),
    ("wait", "loop waited"),
    ("step", "loop's step"),
)
SHOWN_INDICES = 12


@dataclass(slots=True)
class LanesDrawing(Drawing):
    """A drawing whose page draws lanes from data."""

    lanes: dict[str, Any] = field(default_factory=dict)

    def state(self, kind: str) -> dict[str, Any]:
        """What a page needs, as plain data: no markup."""
        return {
            "kind": kind,
            "title": self.title,
            "subtitle": self.subtitle,
            "panels": [],
            "details": self.details,
            "start": self.start,
            "lanes": self.lanes,
        }


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of the picture: the loop's process (loader -1), or a worker."""

    id: str
    label: str
    loader: int
    worker: int
    spans: list[Span]


def lanes_of(loading: Loading) -> list[Lane]:
    """The rows: the loop first, then every worker of every loader."""
    many = len({loader for loader, _ in loading.lanes}) > 1
    rows = [Lane("loop", "loop", -1, -1, loading.loop)]
    for (loader, worker), spans in loading.lanes.items():
        label = f"{_short(loading, loader)} {worker}" if many else f"worker {worker}"
        rows.append(Lane(f"w{loader}.{worker}", label, loader, worker, spans))
    return rows


def _short(loading: Loading, loader: int) -> str:
    return f"{loading.loaders[loader]['dataset'][:8]} #{loader}"


def end_of(loading: Loading) -> float:
    """Where the time axis ends: the last that was heard of."""
    ends = [loading.ends(run)[1] for run in range(len(loading.passes))]
    return max(ends, default=0.0) or loading.snapshot["seconds"] or 1.0


def begin_of(loading: Loading) -> float:
    """Where it begins."""
    return min((loading.ends(run)[0] for run in range(len(loading.passes))), default=0.0)


def pass_label(loading: Loading, run: int) -> str:
    """`epoch 2`, with the loader's name where there are several."""
    this = loading.passes[run]
    name = f"{_short(loading, this['loader'])}: " if len(loading.loaders) > 1 else ""
    more = f", resumed at batch {this['resumed']}" if this["resumed"] else ""
    return f"{name}epoch {this['epoch'] + 1}{more}"


def subtitle(loading: Loading) -> str:
    """How much was loaded, in a line."""
    given = [b for b in loading.batches if b["given"] is not None]
    samples = sum(b["size"] for b in given)
    mean = sum(b["bytes"] for b in given) // max(1, len(given))
    workers = sum(f["num_workers"] for f in loading.loaders)
    parts = [
        "1 pass" if len(loading.passes) == 1 else f"{len(loading.passes):,} passes",
        "1 batch" if len(given) == 1 else f"{len(given):,} batches",
        count_text(samples, "sample"),
        f"{bytes_text(mean)} a batch",
        count_text(workers, "worker") if workers else "no workers",
        seconds_text(end_of(loading) - begin_of(loading)),
    ]
    if len(loading.loaders) > 1:
        parts.insert(0, count_text(len(loading.loaders), "loader"))
    if loading.snapshot["cut"]:
        parts.append("cut: there were more batches than are kept")
    return " · ".join(parts)


def settings_text(settings: Mapping[str, Any]) -> str:
    """`num_workers=4, prefetch_factor=8`."""
    return ", ".join(f"{k}={v!r}" for k, v in settings.items())


def indices_text(batch: Batch) -> str:
    """The first indices of a batch, and how many there are."""
    found = batch["indices"]
    if found is None:
        return ""
    some = ", ".join(str(i) for i in found[:SHOWN_INDICES])
    return f"{some}, … ({batch['size']:,})" if batch["size"] > SHOWN_INDICES else some


def legend(loading: Loading) -> list[tuple[str, str]]:
    """Colours and what they mean, of what there is."""
    seen = {span[2] for row in lanes_of(loading) for span in row.spans}
    return [(colour, text) for colour, text, phase in LEGEND if phase in seen]


def strips_legend(loading: Loading) -> list[tuple[str, str]]:
    """The same for the strips below the lanes of workers."""
    if not any(f["num_workers"] for f in loading.loaders):
        return []
    return list(STRIPS if all_stalls(loading) else STRIPS[:1])


def _micro(seconds: float) -> int:
    return round(seconds * 1e6)


def _flat(spans: Sequence[Span], zero: float) -> list[int]:
    """Four numbers a span: began, ended (µs), the phase's number, the batch's."""
    found: list[int] = []
    for began, ended, phase, batch in spans:
        found += (_micro(began - zero), _micro(ended - zero), PHASES.index(phase), batch)
    return found


def ready_strips(loading: Loading, lane: Lane, stalls: Mapping[int, Stall]) -> list[Span]:
    """When batches of a worker lay finished: 'ready', and 'held' while it was behind a slower
    one."""
    found: list[Span] = []
    for i, batch in enumerate(loading.batches):
        if batch["worker"] != lane.worker:
            continue
        if loading.passes[batch["run"]]["loader"] != lane.loader:
            continue
        made, given = made_at(batch), batch["given"]
        if made is None or given is None:
            continue
        held = min(given, made + stalls[i].seconds) if i in stalls else made
        if held > made:
            found.append((made, held, "held", i))
        if given > held:
            found.append((held, given, "ready", i))
    return sorted(found)


def all_stalls(loading: Loading) -> dict[int, Stall]:
    """Every stall, by the place of the batch that waited."""
    return {s.batch: s for k in range(len(loading.loaders)) for s in loading.stalls(k)}


def page_data(loading: Loading) -> dict[str, Any]:
    """What the page draws."""
    zero = begin_of(loading)
    stalls = all_stalls(loading)
    rows = lanes_of(loading)
    after = _steps(loading)
    loaders = [f for f in loading.loaders if f["num_workers"]]
    return {
        "end": max(1, _micro(end_of(loading) - zero)),
        "running": loading.snapshot["running"],
        "phases": list(PHASES),
        "colours": [COLOURS[p] for p in PHASES],
        "times": [name for _, name in TIMES],
        "names": [NAMES.get(p, p) for p in PHASES],
        "legend": [list(entry) for entry in legend(loading)],
        "strips": [list(entry) for entry in strips_legend(loading)],
        "verdicts": [
            verdict_data(v, loading.loaders[k]["label"] if len(loading.loaders) > 1 else "")
            for k, v in enumerate(loading.verdicts)
        ],
        "notes": failures(loading),
        "rows": [
            {
                "id": row.id,
                "label": row.label,
                "spans": _flat(row.spans, zero),
                "ready": [
                    n
                    for began, ended, kind, i in ready_strips(loading, row, stalls)
                    for n in (_micro(began - zero), _micro(ended - zero), kind == "held", i)
                ]
                if row.worker >= 0
                else [],
            }
            for row in rows
        ],
        "depth": [[_micro(t - zero), n] for t, n in loading.depth()],
        "capacity": sum((f["prefetch_factor"] or 0) * f["num_workers"] for f in loaders),
        "passes": [
            [*(_micro(t - zero) for t in loading.ends(run)), pass_label(loading, run)]
            for run in range(len(loading.passes))
        ],
        "batches": [_batch(loading, i, stalls, after) for i in range(len(loading.batches))],
    }


def verdict_data(verdict: Verdict, label: str) -> dict[str, Any]:
    """A verdict as texts."""
    return {
        "loader": label,
        "cause": CAUSES[verdict.cause],
        "good": verdict.cause == "loop",
        "share": f"{verdict.share:.0%}",
        "sentence": verdict.sentence,
        "remedy": verdict.remedy,
        "settings": settings_text(verdict.settings),
    }


def failures(loading: Loading) -> list[str]:
    """Exceptions that came instead of batches."""
    found = []
    for batch in loading.batches:
        if batch["error"]:
            who = "The loop's process" if batch["worker"] is None else f"Worker {batch['worker']}"
            found.append(f"{who} failed in batch {batch['number']}: {batch['error']}")
    return found


def _steps(loading: Loading) -> dict[int, float]:
    """What the loop did after each batch, in seconds."""
    return {i: ended - began for began, ended, phase, i in loading.loop if phase == "step"}


def _batch(
    loading: Loading, i: int, stalls: Mapping[int, Stall], after: Mapping[int, float]
) -> dict[str, Any]:
    """What the inspector says of a batch. `t`: the microseconds of `TIMES`, -1 for none; `cpu`: of
    reading and collating the processor's."""
    batch = loading.batches[i]
    spans, cpu = batch["spans"], batch["cpu"]
    asked, given = batch["asked"], batch["given"]
    times = [_micro(spans[key][1] - spans[key][0]) if key in spans else -1 for key, _ in TIMES[:-2]]
    waits = asked is not None and given is not None and batch["worker"] is not None
    times.append(_micro((given or 0.0) - (asked or 0.0)) if waits else -1)
    times.append(_micro(after[i]) if i in after else -1)
    holds = ""
    if given is not None and not batch["error"]:
        holds = f"{count_text(batch['size'], 'sample')}, {bytes_text(batch['bytes'])}"
        if batch["pickled"]:
            holds += f", {bytes_text(batch['pickled'])} of it not in tensors"
    slow, stall = batch["slowest"], stalls.get(i)
    return {
        "n": batch["number"],
        "w": -1 if batch["worker"] is None else batch["worker"],
        "run": batch["run"],
        "seed": "" if batch["seed"] is None else str(batch["seed"]),
        "indices": indices_text(batch),
        "holds": holds,
        "t": times,
        "cpu": [_micro(cpu[key]) if key in cpu else -1 for key in ("fetch", "collate")],
        "slow": [str(slow[0]), _micro(float(slow[1]))] if slow and batch["size"] > 1 else None,
        "held": [_micro(stall.seconds), loading.batches[stall.behind]["number"]] if stall else None,
        "error": batch["error"],
        "order": _micro(asked) if asked is not None else -1,
    }


def lane_details(loading: Loading) -> dict[str, Details]:
    """What a click on the name of a lane shows."""
    found = {"loop": _loop_details(loading)}
    for loader in range(len(loading.loaders)):
        facts = loading.loaders[loader]
        seeds = [loading.passes[r]["base_seed"] for r in loading.of(loader)]
        for share in loading.workers(loader):
            mine = [None if s is None else s + share.worker for s in seeds]
            names = {"pack": "hand over"}
            found[f"w{loader}.{share.worker}"] = details(
                f"Worker {share.worker}",
                facts["label"],
                [
                    ("batches", f"{share.batches:,}"),
                    ("busy", f"{share.busy:.0%} of its time"),
                    ("usual batch", seconds_text(share.work)),
                    *(
                        (names.get(p, p), seconds_text(share.seconds[p]))
                        for p in PHASES
                        if p in share.seconds
                    ),
                    ("seeds", ", ".join(dict.fromkeys(str(s) for s in mine if s is not None))),
                ],
            )
    return found


def _loop_details(loading: Loading) -> Details:
    rows: list[tuple[str, str]] = []
    for k, facts in enumerate(loading.loaders):
        sums = loading.account(k)
        if len(loading.loaders) > 1:
            rows.append((f"loader {k}", facts["label"]))
        rows.append(("loader", _settings(facts)))
        rows.append(("line", source_text(facts["source"])))
        rows += [
            (name, f"{seconds_text(value)}, {value / sums.whole:.0%}")
            for name, value in (
                ("own steps", sums.step),
                ("waited", sums.blocked),
                ("handed over", sums.handling),
                ("loaded", sums.loading),
                ("started", sums.start),
                ("stopped", sums.stop),
            )
            if value > 1e-3 * sums.whole > 0
        ]
    return details("The loop's process", "what takes its time", rows)


def _settings(facts: LoaderFacts) -> str:
    """The arguments that matter."""
    parts = [f"batch_size={facts['batch_size']}", f"num_workers={facts['num_workers']}"]
    if facts["num_workers"]:
        parts.append(f"prefetch_factor={facts['prefetch_factor']}")
        if facts["persistent_workers"]:
            parts.append("persistent_workers=True")
        if not facts["in_order"]:
            parts.append("in_order=False")
        parts.append(f"start method {facts['start_method']}")
    return ", ".join(parts)


__all__ = [
    "COLOURS",
    "LEGEND",
    "PHASES",
    "Lane",
    "LanesDrawing",
    "all_stalls",
    "begin_of",
    "end_of",
    "failures",
    "indices_text",
    "legend",
    "strips_legend",
    "lane_details",
    "lanes_of",
    "page_data",
    "pass_label",
    "ready_strips",
    "settings_text",
    "subtitle",
    "verdict_data",
]
