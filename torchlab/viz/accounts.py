"""Where the time of data loading went, in seconds: what `Loading` works out and verdicts need."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchlab.viz.snapshots.loader import Batch


@dataclass(frozen=True, slots=True)
class WorkerShare:
    """What a worker of a loader did over all passes, in seconds; `work`: the median of reading and
    collating a batch."""

    worker: int
    batches: int
    seconds: dict[str, float]  # by phase
    work: float

    @property
    def busy(self) -> float:
        """The share of its time in which it read, collated and handed over."""
        whole = sum(self.seconds.values()) - self.seconds.get("start", 0.0)
        return 1 - self.seconds.get("idle", 0.0) / whole if whole > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Stall:
    """A finished batch that waited for a slower earlier one. `lost`: how long the loop stood still
    meanwhile."""

    batch: int  # places among all batches
    behind: int
    seconds: float
    lost: float


@dataclass(slots=True)
class Account:
    """Where the loop's time over all passes of a loader went, in seconds.

    whole = step + start + stop + blocked + handling + loading, up to a remainder. `blame`: what
    `blocked` was spent on (see Note [What the loop waits for] in torchlab.viz.loading), by phase;
    `lost_to_order`: how much of it while another batch lay ready. `each`: what a phase takes for a
    batch of a worker that has warmed up (the mean; of 'pack' and 'handling' the median).
    """

    passes: int = 0
    batches: int = 0
    samples: int = 0
    bytes: int = 0
    pickled: int = 0
    whole: float = 0.0
    step: float = 0.0  # the loop's own work between two batches
    start: float = 0.0
    stop: float = 0.0
    blocked: float = 0.0
    handling: float = 0.0  # the loop's process receives batches and asks for more
    loading: float = 0.0  # without workers: reading and collating
    blame: dict[str, float] = field(default_factory=dict)
    lost_to_order: float = 0.0
    work: dict[str, float] = field(default_factory=dict)  # all batches' seconds, by phase
    each: dict[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    waiting: dict[int, float] = field(default_factory=dict)  # by batch: blocked on its work
    late: dict[int, float] = field(default_factory=dict)  # by worker: blocked on its work


def made_at(batch: Batch) -> float | None:
    """When a batch was ready to be taken."""
    for phase in ("pack", "collate", "fetch"):
        if phase in batch["spans"]:
            return batch["spans"][phase][1]
    return None


def work_of(batch: Batch) -> float:
    """The seconds of reading and collating a batch."""
    return sum(
        ended - began
        for began, ended in (batch["spans"].get(p, (0.0, 0.0)) for p in ("fetch", "collate"))
    )


__all__ = ["Account", "Stall", "WorkerShare", "made_at", "work_of"]
