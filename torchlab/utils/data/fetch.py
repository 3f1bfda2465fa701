"""Getting a batch: by indices from a dataset, or the next samples of a stream. Loaders do it in
their own process or in workers.

Source: https://docs.pytorch.org/docs/2.13/data.html
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.dispatch.compute import wrap
from torchlab._core.tape import edge_of
from torchlab.utils.data.collate import default_collate
from torchlab.utils.data.dataset import TensorDataset


class _Collating:
    collate_fn: Callable[[Any], Any]
    marks: list[tuple[float, float]] | None = None
    """Where somebody looks: when collating began and ended."""

    def _collate(self, samples: Any) -> Any:
        if self.marks is None:
            return self.collate_fn(samples)
        began = time.perf_counter()
        batch = self.collate_fn(samples)
        self.marks.append((began, time.perf_counter()))
        return batch


def phases(fetch: Any, indices: Any, told: list[tuple[str, float, float]]) -> Any:
    """The batch, with (phase, began, ended) of what was done for it put into `told`, also if it
    fails."""
    marks: list[tuple[float, float]] = []
    fetch.marks = marks
    began = time.perf_counter()
    try:
        return fetch(indices)
    finally:
        ended = time.perf_counter()
        fetch.marks = None
        told.append(("fetch", began, marks[0][0] if marks else ended))
        told += [("collate", *mark) for mark in marks]


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
        samples = fetch(indices) if fetch is not None else [dataset[i] for i in indices]
        return self._collate(samples)


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
        samples = list(itertools.islice(self.source, len(indices)))
        self.ended = len(samples) < len(indices)
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
    return [wrap(t._a.take(chosen, axis=0)) for t in tensors] if chosen.dtype.kind in "iu" else None


__all__ = ["FromMap", "FromStream", "fetcher", "phases"]
