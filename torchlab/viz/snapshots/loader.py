"""What a recording of data loading holds: loaders, passes over them, and every batch with the
stretches of work that were done for it. Times are seconds since the recording began.

Source: https://docs.pytorch.org/docs/2.13/data.html#torch.utils.data.DataLoader
"""

from __future__ import annotations

from typing import TypedDict

from torchlab.viz.snapshots.common import Source

Stretch = list[float]
"""[began, ended]"""


class LoaderFacts(TypedDict):
    """A loader and its settings. `length` is in batches; None where it is not known."""

    label: str
    dataset: str
    samples: int | None
    length: int | None
    batch_size: int | None
    num_workers: int
    prefetch_factor: int | None
    persistent_workers: bool
    in_order: bool
    streams: bool
    start_method: str
    source: Source | None


class Pass(TypedDict):
    """An epoch. `begin`: the workers were started and first asked; `end`: the last call of `next`,
    None while it runs, or where the loop left early. `resumed`: the batches given before."""

    loader: int
    epoch: int
    begin: Stretch | None
    end: Stretch | None
    base_seed: int | None
    resumed: int


class Batch(TypedDict):
    """A request and its answer.

    `spans`: by phase ('start', 'idle', 'fetch', 'collate', 'pack', 'send', 'receive', 'pin',
    'queued');
    `cpu`: the processor's seconds in 'fetch' and 'collate'; `slowest`: the sample that took longest
    to read, and how long. `asked`, `given`: when the loop called `next` and had the batch; `back`:
    when it went on. `pickled`: the bytes that are no tensor and so go through a pipe.
    """

    run: int  # which pass
    number: int
    index: int | None
    worker: int | None
    seed: int | None
    indices: list[int | str] | None
    size: int
    bytes: int
    pickled: int
    error: str
    spans: dict[str, Stretch]
    cpu: dict[str, float]
    slowest: list[int | str | float] | None
    asked: float | None
    given: float | None
    back: float | None


class Blocked(TypedDict):
    """A stretch in which the loop waited for any worker: for batch `due`, and `came` arrived."""

    run: int
    due: int
    came: int
    span: Stretch


class LoaderSnapshot(TypedDict):
    """A snapshot of kind 'loader'. `seconds`: how long it has been recording; `cut`: there were
    more batches than are kept."""

    kind: str
    version: int
    seconds: float
    running: bool
    cpus: int
    loaders: list[LoaderFacts]
    passes: list[Pass]
    batches: list[Batch]
    blocked: list[Blocked]
    cut: bool


def seconds_text(seconds: float) -> str:
    """`0.0123` → `'12.3 ms'`."""
    size = abs(seconds)
    if size >= 99.95:
        return f"{seconds:,.0f} s"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        value = seconds * scale
        if round(abs(value), 3) >= 1 or unit == "µs":
            digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
            text = f"{value:.{digits}f}"
            return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"
    raise AssertionError


__all__ = [
    "Batch",
    "Blocked",
    "LoaderFacts",
    "LoaderSnapshot",
    "Pass",
    "Stretch",
    "seconds_text",
]
