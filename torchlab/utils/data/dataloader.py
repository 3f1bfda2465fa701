"""The data loader: batches of a dataset, in this process.

Source: https://docs.pytorch.org/docs/2.13/data.html#torch.utils.data.DataLoader
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from torchlab._core import events
from torchlab._core.dispatch.compute import wrap
from torchlab._core.tape import edge_of
from torchlab.utils.data.collate import default_collate, default_convert
from torchlab.utils.data.dataset import Dataset, IterableDataset, TensorDataset
from torchlab.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    drawn_seed,
)

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Endless:
    """The sampler of a stream: it has no indices, and never ends."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader:
    """`for batch in DataLoader(dataset, batch_size, shuffle=True)`.

    batch_size None: single samples. shuffle: a new random order each time, PyTorch's for the same
    seed. sampler, batch_sampler: your own order. collate_fn: list of samples → batch. drop_last: no
    smaller batch at the end. generator: where seeds come from. Samples are fetched in this process:
    num_workers must be 0. Raises ValueError for arguments that exclude one another.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context
        )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.in_order = in_order
        self._streams = isinstance(dataset, IterableDataset)
        if self._streams:
            _check_stream(shuffle, sampler, batch_sampler)
        shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            if self._streams:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if batch_sampler is not None else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__dict__["_ready"] = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__dict__.get("_ready"):
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        # PyTorch draws a seed for its workers even when it has none: the stream stays the same.
        drawn_seed(self.generator)
        return _LoaderIterator(self)

    def __len__(self) -> int:
        """The number of batches (of samples if there is no batch size)."""
        if not self._streams:
            return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)
        n = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class _LoaderIterator:
    """One pass over a loader's batches."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self._batched = loader.batch_sampler is not None
        self._order = iter(loader.batch_sampler if self._batched else loader.sampler)
        self._source = iter(loader.dataset) if loader._streams else None  # type: ignore[call-overload]
        self._ended = False
        self._count = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        indices = next(self._order)
        listeners = events.loader_step.listeners
        began = time.perf_counter() if listeners else 0.0
        batch = self._from_stream(indices) if self._source is not None else self._from_map(indices)
        if listeners:
            size = len(indices) if isinstance(indices, list) else 1
            events.loader_step.emit(
                index=self._count, size=size, seconds=time.perf_counter() - began
            )
        self._count += 1
        if self._source is not None:
            self._warn_length()
        return batch

    def _from_map(self, indices: Any) -> Any:
        loader = self._loader
        dataset = loader.dataset
        if not self._batched:
            return loader.collate_fn(dataset[indices])
        if type(dataset) is TensorDataset and loader.collate_fn is default_collate:
            whole = _rows(dataset, indices)
            if whole is not None:
                return whole
        fetch = getattr(dataset, "__getitems__", None)
        samples = fetch(indices) if fetch is not None else [dataset[i] for i in indices]
        return loader.collate_fn(samples)

    def _from_stream(self, indices: Any) -> Any:
        assert self._source is not None
        loader = self._loader
        if self._ended:
            raise StopIteration
        if not self._batched:
            return loader.collate_fn(next(self._source))
        samples = list(itertools.islice(self._source, len(indices)))
        self._ended = len(samples) < len(indices)
        if not samples or (loader.drop_last and self._ended):
            raise StopIteration
        return loader.collate_fn(samples)

    def _warn_length(self) -> None:
        if not hasattr(self._loader.dataset, "__len__"):
            return
        n = len(self._loader)
        if self._count == n + 1:
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {n} (when "
                "accessing len(dataloader)), "
                f"but {self._count} samples have been fetched.",
                stacklevel=3,
            )


def _rows(dataset: TensorDataset, indices: list[int]) -> list[Any] | None:
    """A batch of a TensorDataset in one gather a tensor; None where only `stack` tells the
    result."""
    tensors = dataset.tensors
    if not indices or any(not t._k.fast or edge_of(t) is not None for t in tensors):
        return None
    chosen = np.asarray(indices)
    return [wrap(t._a.take(chosen, axis=0)) for t in tensors] if chosen.dtype.kind in "iu" else None


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: Any, persistent: bool, context: Any
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers > 0:
        raise ValueError(
            f"DataLoader(num_workers={num_workers}): torchlab fetches samples in the calling "
            "process and starts no "
            "workers. Use num_workers=0; the batches and their order are the same."
        )
    if prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. let num_workers "
            "> 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if persistent:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if context is not None:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > "
            f"0), but got num_workers={num_workers}"
        )


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    if shuffle not in (False, None):
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified shuffle option, but got "
            f"shuffle={shuffle}"
        )
    if sampler is not None:
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified sampler option, but got "
            f"sampler={sampler}"
        )
    if batch_sampler is not None:
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified batch_sampler option, but "
            f"got batch_sampler={batch_sampler}"
        )


def get_worker_info() -> None:
    """None: samples are fetched in the main process."""
    return None


__all__ = ["DataLoader", "get_worker_info"]
