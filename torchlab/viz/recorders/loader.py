"""Recording data loading: what every worker and the loop did when, batch by batch.

Source of what is recorded: https://docs.pytorch.org/docs/2.13/data.html#multi-process-data-loading
"""

from __future__ import annotations

import multiprocessing
import os
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from torchlab._core import events
from torchlab._core.events import Topic
from torchlab._core.tensor import Tensor
from torchlab.viz.loading import Loading
from torchlab.viz.recorders.common import LiveRecorder, user_source
from torchlab.viz.snapshots.common import VERSION
from torchlab.viz.snapshots.loader import Batch, Blocked, LoaderFacts, LoaderSnapshot, Pass, Stretch
from torchlab.viz.verdicts import Verdict

MOST_INDICES = 64
KEPT = ("start", "idle", "fetch", "collate", "pack", "send", "receive", "pin", "queued")


class LoaderRecorder(LiveRecorder):
    """Records the loading of all data loaders that are iterated over inside `with`.

    Afterwards `verdict` says what holds the loop up and what to do, `explain()` the same in words,
    `loading` has the figures (shares of workers, queue, stalls), `batches` everything about each
    batch; `show()` draws the panel, inside `with` a live one. No batch is kept alive.

    Args: only: the loader to watch; None: all. most: how many batches are kept.
    """

    kind = "loader"

    def __init__(self, only: Any = None, *, most: int = 20_000) -> None:
        super().__init__(interval=0.15)
        self._only = None if only is None else weakref.ref(only)
        self._most = most
        self._zero = time.perf_counter()
        self._stopped: float | None = None
        self._loaders: list[LoaderFacts] = []
        self._known: dict[int, tuple[int, Any]] = {}  # id → place among the loaders, weak reference
        self._passes: list[Pass] = []
        self._place: dict[int, int] = {}  # pass_id → place among the passes
        self._met: set[int] = set()  # passes that have given a batch
        self._batches: dict[tuple[int, int], Batch] = {}
        self._blocked: list[Blocked] = []
        self._waits: dict[int, tuple[int, Stretch]] = {}  # by pass
        self._cut: set[int] = set()  # passes of which not all is kept
        self._process = os.getpid()
        self._loading: Loading | None = None

    # ---- recording -------------------------------------------------------------------------------

    def _listeners(self) -> list[tuple[Topic, Callable[..., None]]]:
        return [
            (events.loader_pass, self._on_pass),
            (events.loader_phase, self._on_phase),
            (events.loader_batch, self._on_batch),
        ]

    def start(self) -> Self:
        """Listen from now on."""
        if not self._subscriptions and not self._passes:
            self._zero = time.perf_counter()
        self._stopped = None
        return super().start()

    def stop(self) -> None:
        """Stop listening; the last state is shown."""
        if self._subscriptions:
            self._stopped = time.perf_counter() - self._zero
            self._loading = None
        super().stop()

    def _run(self, loader: Any, pass_id: int, base_seed: int | None = None) -> int | None:
        """The place of a pass; None if it is of a loader that nobody asked for, or if this is a
        copy of the recorder in a forked process (a worker whose dataset has a loader itself)."""
        if os.getpid() != self._process:
            return None
        place = self._place.get(pass_id)
        if place is not None:
            return place
        if self._only is not None and self._only() is not loader:
            return None
        known = self._known.get(id(loader))
        if known is None or known[1]() is not loader:
            known = (len(self._loaders), weakref.ref(loader))
            self._known[id(loader)] = known
            self._loaders.append(_facts(loader))
        self._place[pass_id] = len(self._passes)
        epoch = sum(p["loader"] == known[0] for p in self._passes)
        self._passes.append(
            Pass(
                loader=known[0],
                epoch=epoch,
                begin=None,
                end=None,
                base_seed=base_seed,
                resumed=0,
            )
        )
        return self._place[pass_id]

    def _span(self, began: float, ended: float) -> Stretch:
        return [round(began - self._zero, 7), round(ended - self._zero, 7)]

    def _on_pass(
        self,
        loader: Any,
        pass_id: int,
        stage: str,
        base_seed: int | None,
        began: float,
        ended: float,
    ) -> None:
        with self._lock:
            self._loading = None
            place = self._run(loader, pass_id, base_seed)
            if place is None:
                return
            run = self._passes[place]
            if stage == "begin":
                run["begin"] = self._span(began, ended)
            elif run["end"] is None and place not in self._cut:
                run["end"] = self._span(began, ended)
        self._changed()

    def _batch(self, place: int, number: int, worker: int | None) -> Batch | None:
        found = self._batches.get((place, number))
        if found is None:
            if len(self._batches) >= self._most:
                self._cut.add(place)
                return None
            found = self._batches[place, number] = Batch(
                run=place,
                number=number,
                index=None,
                worker=worker,
                seed=None,
                indices=None,
                size=0,
                bytes=0,
                pickled=0,
                error="",
                spans={},
                cpu={},
                slowest=None,
                asked=None,
                given=None,
                back=None,
            )
        return found

    def _on_phase(
        self,
        loader: Any,
        pass_id: int,
        phase: str,
        worker: int | None,
        batch: int,
        began: float,
        ended: float,
        cpu: float | None,
        slowest: tuple[Any, float] | None,
    ) -> None:
        with self._lock:
            place = self._run(loader, pass_id)
            if place is None or phase == "wait":
                return
            span = self._span(began, ended)
            if phase == "blocked":
                self._waits[place] = batch, span
                return
            found = self._batch(place, batch, worker)
            if found is None or phase not in KEPT:
                return
            if phase == "receive" and place in self._waits:
                due, waited = self._waits.pop(place)
                self._blocked.append(Blocked(run=place, due=due, came=batch, span=waited))
            found["spans"][phase] = span
            if cpu is not None:
                found["cpu"][phase] = round(cpu, 7)
            if slowest is not None:
                found["slowest"] = [_plain(slowest[0]), round(slowest[1], 7)]

    def _on_batch(
        self,
        loader: Any,
        pass_id: int,
        batch: int,
        index: int,
        worker: int | None,
        seed: int | None,
        indices: Any,
        value: Any,
        error: str,
        began: float,
        ended: float,
    ) -> None:
        with self._lock:
            self._loading = None
            place = self._run(loader, pass_id)
            if place is None:
                return
            found = self._batch(place, batch, worker)
            if found is None:
                return
            many = isinstance(indices, (list, tuple, range, np.ndarray))
            found["size"] = len(indices) if many else 1
            if indices is not None:
                some = list(indices[:MOST_INDICES]) if many else [indices]
                found["indices"] = [_plain(i) for i in some]
            elif error == "":
                found["size"] = _length(value, loader.batch_size)
            found["index"], found["worker"], found["seed"] = index, worker, seed
            found["bytes"], found["pickled"] = _sizes(value)
            found["error"] = error
            found["asked"], found["given"] = self._span(began, ended)
            run = self._passes[place]
            if place not in self._met and run["begin"] is not None:
                run["resumed"] = index
            self._met.add(place)
        self._changed()
        # What listening took is none of the loop's time.
        found["back"] = round(time.perf_counter() - self._zero, 7)

    # ---- what was recorded -----------------------------------------------------------------------

    def snapshot(self) -> LoaderSnapshot:
        """The recording as plain data."""
        with self._lock:
            now = self._stopped
            running = now is None
            if now is None:
                now = time.perf_counter() - self._zero
            return LoaderSnapshot(
                kind="loader",
                version=VERSION,
                seconds=round(now, 7),
                running=running,
                cpus=_processors(),
                loaders=list(self._loaders),
                passes=[Pass(**p) for p in self._passes],
                batches=[
                    Batch(**{**b, "spans": dict(b["spans"]), "cpu": dict(b["cpu"])})  # type: ignore[typeddict-item]
                    for b in self._batches.values()
                ],
                blocked=list(self._blocked),
                cut=bool(self._cut),
            )

    @property
    def loading(self) -> Loading:
        """The figures of what has been recorded so far."""
        if self._loading is None or self._stopped is None:
            self._loading = Loading(self.snapshot())
        return self._loading

    @property
    def batches(self) -> list[Batch]:
        """Every batch, pass by pass in the order in which they were asked for."""
        return sorted(self.loading.batches, key=lambda b: (b["run"], b["number"]))

    @property
    def passes(self) -> list[Pass]:
        """Every pass over a loader."""
        return self.loading.passes

    @property
    def verdict(self) -> Verdict:
        """What holds the loop up: of several loaders the one that costs it most."""
        return self.loading.verdict

    @property
    def verdicts(self) -> list[Verdict]:
        """One verdict for each loader."""
        return self.loading.verdicts

    def explain(self) -> str:
        """In words: the verdicts, remedies, stalls, failures."""
        return self.loading.explain()

    def show(self) -> None:
        """Display the panel, and beside it a static picture for viewers without widgets. While it
        records, drawing takes up to a fifth of the time of this process; the figures leave out what
        they can of it."""
        super().show()  # returns the widget: a cell that ends here would display it twice


def _facts(loader: Any) -> LoaderFacts:
    dataset = loader.dataset
    name = type(dataset).__name__
    samples = _len(dataset)
    context = loader.multiprocessing_context
    method = ""
    if loader.num_workers:
        method = (context or multiprocessing.get_context()).get_start_method()
    return LoaderFacts(
        label=name if samples is None else f"{name} ({samples:,})",
        dataset=name,
        samples=samples,
        length=None if loader._streams else _len(loader.batch_sampler or loader.sampler),
        batch_size=loader.batch_size,
        num_workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=bool(loader.persistent_workers),
        in_order=bool(loader.in_order),
        streams=bool(loader._streams),
        start_method=method,
        source=user_source(),
    )


def _len(thing: Any) -> int | None:
    try:
        return len(thing)
    except (TypeError, NotImplementedError):
        return None


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _plain(index: Any) -> int | str:
    """An index as JSON has it; a key of another type as a short text."""
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        return int(index)
    if isinstance(index, Tensor) and index.numel() == 1:
        return int(index.item())
    text = index if isinstance(index, str) else repr(index)
    return text if len(text) <= 80 else text[:79] + "…"


def _length(value: Any, batch_size: int | None) -> int:
    """How many samples a stream's batch holds: the length of its first part."""
    if batch_size is None:
        return 1
    while isinstance(value, (list, tuple, Mapping)) and len(value):
        first = next(iter(value.values())) if isinstance(value, Mapping) else value[0]
        if not isinstance(first, (list, tuple, Mapping, Tensor, np.ndarray)):
            return len(value)
        value = first
    try:
        return len(value)
    except TypeError:
        return batch_size


def _sizes(value: Any, depth: int = 0) -> tuple[int, int]:
    """The bytes in a batch, and those of them that are in no tensor. Of long lists of plain values
    the first tells of the rest: this runs in the loop's time."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size(), 0
    if isinstance(value, np.ndarray):
        return value.nbytes, value.nbytes
    if isinstance(value, (bytes, bytearray, str)):
        return len(value), len(value)
    if depth < 6 and isinstance(value, Mapping):
        value = list(value.values())
    if depth < 6 and isinstance(value, (list, tuple)) and len(value):
        if isinstance(value[0], (int, float, bool)):
            return 8 * len(value), 8 * len(value)
        some = value[:64]
        total, pickled = map(sum, zip(*(_sizes(v, depth + 1) for v in some), strict=True))
        scale = len(value) / len(some)
        return int(total * scale), int(pickled * scale)
    return (0, 0) if value is None else (8, 8)


def record_loading(loader: Any = None, *, most: int = 20_000) -> LoaderRecorder:
    """Record what data loaders do, to see what a training loop waits for.

        with viz.record_loading() as recording:
            for x, y in loader:
                train(x, y)
        print(recording.explain())
        recording.verdict.settings   # what to change, as arguments of DataLoader
        recording.show()             # the panel; in a script: recording.picture.to_html("l.html")

    Args:
        loader: the only loader to watch; None: all those that are iterated over in the block.
        most: how many batches are kept.

    Returns:
        A `LoaderRecorder`. It works with any number of workers, map-style and iterable datasets,
        and over several epochs; `recording.show()` inside the block draws it while it runs.
    """
    return LoaderRecorder(loader, most=most)


__all__ = ["LoaderRecorder", "record_loading"]
