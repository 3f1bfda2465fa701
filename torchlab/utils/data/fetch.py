"""Getting a batch: by indices from a dataset, or the next samples of a stream. Loaders do it in
their own process or in workers.

Source: https://docs.pytorch.org/docs/2.13/data.html
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core import sharing
from torchlab._core.dispatch.compute import wrap
from torchlab._core.tape import edge_of
from torchlab.utils.data import collate
from torchlab.utils.data.collate import default_collate
from torchlab.utils.data.dataset import TensorDataset
from torchlab.utils.data.watch import Told


class _Marks:
    """What was seen of one call: collating (began, ended, the processor's seconds before and
    after), and the sample that took longest to read."""

    def __init__(self) -> None:
        self.collate: tuple[float, float, float, float] | None = None
        self.slowest: tuple[Any, float] | None = None

    def read(self, dataset: Any, indices: Any) -> list[Any]:
        """`[dataset[i] for i in indices]`, timed one by one."""
        samples = []
        before = time.perf_counter()
        for i in indices:
            samples.append(dataset[i])
            now = time.perf_counter()
            if self.slowest is None or now - before > self.slowest[1]:
                self.slowest = (i, now - before)
            before = now
        return samples


class _Collating:
    collate_fn: Callable[[Any], Any]
    marks: _Marks | None = None
    """Where somebody looks."""

    def _collate(self, samples: Any) -> Any:
        if self.marks is None:
            return self.collate_fn(samples)
        began, before = time.perf_counter(), time.thread_time()
        try:
            return self.collate_fn(samples)
        finally:
            self.marks.collate = began, time.perf_counter(), before, time.thread_time()


def phases(fetch: Any, indices: Any, told: list[Told]) -> Any:
    """The batch, with what was done for it put into `told`, also if it fails."""
    fetch.marks = marks = _Marks()
    began, before = time.perf_counter(), time.thread_time()
    try:
        return fetch(indices)
    finally:
        ended, after = time.perf_counter(), time.thread_time()
        fetch.marks = None
        if marks.collate is None:
            told.append(("fetch", began, ended, after - before, marks.slowest))
        else:
            start, stop, start_cpu, stop_cpu = marks.collate
            told.append(("fetch", began, start, start_cpu - before, marks.slowest))
            told.append(("collate", start, stop, stop_cpu - start_cpu, None))


class FromMap(_Collating):
    """Samples by their indices: `dataset[i]`, or `dataset.__getitems__(indices)` where there is
    one."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any]) -> None:
        self.dataset = dataset
        self.batched = batched
        self.collate_fn = collate_fn

    def __call__(self, indices: Any) -> Any:
        dataset = self.dataset
        if not self.batched:
            return self._collate(dataset[indices])
        if type(dataset) is TensorDataset and self.collate_fn is default_collate:
            whole = _rows(dataset, indices)
            if whole is not None:
                return whole
        fetch = getattr(dataset, "__getitems__", None)
        if fetch is not None:
            return self._collate(fetch(indices))
        if self.marks is not None:
            return self._collate(self.marks.read(dataset, indices))
        return self._collate([dataset[i] for i in indices])


class FromStream(_Collating):
    """The next samples of an iterable dataset, as many as there are indices. StopIteration at its
    end."""

    def __init__(
        self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        self.dataset = dataset
        self.source = iter(dataset)
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def __call__(self, indices: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self._collate(next(self.source))
        samples = []  # with `next` alone: what is its own iterator may start again in iter()
        try:
            for _ in indices:
                samples.append(next(self.source))
        except StopIteration:
            self.ended = True
        if not samples or (self.drop_last and self.ended):
            raise StopIteration
        return self._collate(samples)


def fetcher(loader: Any) -> Any:
    """What gets the batches of a loader."""
    batched = loader.batch_sampler is not None
    if loader._streams:
        return FromStream(loader.dataset, batched, loader.collate_fn, loader.drop_last)
    return FromMap(loader.dataset, batched, loader.collate_fn)


def _rows(dataset: TensorDataset, indices: list[int]) -> list[Any] | None:
    """A batch of a TensorDataset in one gather a tensor; None where only `stack` tells the
    result."""
    tensors = dataset.tensors
    if not indices or any(not t._k.fast or edge_of(t) is not None for t in tensors):
        return None
    chosen = np.asarray(indices)
    if chosen.dtype.kind not in "iu":
        return None
    return [_gather(t._a, chosen) for t in tensors]


def _gather(rows: np.ndarray, chosen: np.ndarray) -> Any:
    """The rows in a new tensor; in a worker where the loader sees it."""
    n, allocate = len(rows), collate.allocate
    if allocate is None or not rows[:1].size or chosen.min() < -n or chosen.max() >= n:
        return wrap(rows.take(chosen, axis=0))
    made = sharing.empty((len(chosen), *rows.shape[1:]), rows.dtype, allocate)
    rows.take(chosen, axis=0, out=made._a, mode="wrap")  # ("raise" goes through a buffer)
    return made


__all__ = ["FromMap", "FromStream", "fetcher", "phases"]
