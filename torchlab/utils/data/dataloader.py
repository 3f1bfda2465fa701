"""The data loader: batches of a dataset, from this process or from workers.

Source: https://docs.pytorch.org/docs/2.13/data.html#torch.utils.data.DataLoader
"""

from __future__ import annotations

import copy
import itertools
import multiprocessing
import multiprocessing.context
import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from torchlab import accelerator
from torchlab._core import blocks, events
from torchlab._core.generator import Generator
from torchlab._core.lazy import lazy
from torchlab.utils.data import graph_settings, state
from torchlab.utils.data.collate import default_collate, default_convert
from torchlab.utils.data.datapipes.datapipe import IterDataPipe
from torchlab.utils.data.dataset import Dataset, IterableDataset
from torchlab.utils.data.fetch import fetcher, phases
from torchlab.utils.data.passes import _BaseDataLoaderIter, _DatasetKind, known
from torchlab.utils.data.pinning import pin_memory
from torchlab.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    drawn_seed,
)
from torchlab.utils.data.watch import Told, Watch, stretch
from torchlab.utils.data.worker import get_worker_info

workers = lazy("torchlab.utils.data.workers")  # loads what shares memory between processes

_T = TypeVar("_T")
_collate_fn_t = Callable[[list[_T]], Any]
_worker_init_fn_t = Callable[[int], None]
"""Names for annotations, which other libraries' loaders import."""


def __getattr__(name: str) -> Any:
    if name != "_MultiProcessingDataLoaderIter":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return workers.WorkersIterator


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Endless:
    """The sampler of a stream: it has no indices, and never ends."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader:
    """`for batch in DataLoader(dataset, batch_size, shuffle=True)`.

    batch_size None: single samples. shuffle: a new random order each time, PyTorch's for the same
    seed. sampler, batch_sampler: your own order. collate_fn: list of samples → batch. drop_last: no
    smaller batch at the end. generator: where seeds come from. Raises ValueError for arguments that
    exclude one another.

    num_workers: how many processes get batches; 0: this one. prefetch_factor: how many batches each
    gets ahead (2). timeout: seconds that a batch may take, 0: any. worker_init_fn(id): called in
    every worker first. persistent_workers: they stay for the next pass. multiprocessing_context:
    how they are started. in_order: False gives batches as they are ready. A worker's exception
    arrives as one of its class with its traceback in the text; RuntimeError if a worker is gone.
    pin_memory: batches come in page-locked memory, from which an accelerator copies without the
    host's help; with workers a thread sees to that while the loop works on an earlier batch. What
    it pins: torchlab.utils.data.pinning. Where there is no accelerator a warning says so.
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
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        self.prefetch_factor = prefetch_factor
        self.multiprocessing_context = multiprocessing_context
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.in_order = in_order
        self._streams = isinstance(dataset, IterableDataset)
        if isinstance(dataset, IterDataPipe):
            self.dataset = dataset = graph_settings.apply_shuffle_settings(dataset, shuffle)
            shuffle = False
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
        self._iterator: Any = None
        self._pass: Any = None  # what knows how far the pass under way is
        self._resume: Any = None  # a state from which the next pass is taken up
        self._length_told: int | None = None
        self.__dict__["_ready"] = True
        if num_workers > 0:
            self.check_worker_number_rationality()

    def __getstate__(self) -> dict[str, Any]:
        # A pass stays where it is: a copy of the loader begins its own.
        return self.__dict__ | {"_pass": None, "_iterator": None}

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__dict__.get("_ready"):
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """What starts the workers; None: the default start method. It may be set to the name of
        one."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        self._context = _context(value, self.num_workers)

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory and self._iterator is None:
            self._warn_of_pinning()
        resume, self._resume = self._resume, None
        if resume is None:
            return self._new_pass(None)
        now = state.unpack(resume["rng"])
        if resume["pass"] is None:  # between two passes
            for name, owner in self._owners().items():
                if owner is not None and resume[name] is not None:
                    owner.load_state_dict(copy.deepcopy(resume[name]))
            state.restore(now, state.generators_of(self))
            return self._new_pass(resume["workers"] if self.persistent_workers else None)
        iterator = self._new_pass(resume["pass"])
        state.restore(now, state.generators_of(self))
        return iterator

    def _pins(self) -> bool:
        """Whether batches go into page-locked memory."""
        return self.pin_memory and accelerator.is_available()

    def _warn_of_pinning(self) -> None:
        if self.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the "
                f"device,ignore pin_memory_device='{self.pin_memory_device}'.",
                stacklevel=3,
            )
        if not self._pins():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=3,
            )

    def _new_pass(self, saved: Any) -> Iterator[Any]:
        if self.num_workers == 0:
            self._pass = iterator = _SingleProcessDataLoaderIter(self, saved)
            return iterator
        if self._iterator is None or not self.persistent_workers:
            made = workers.WorkersIterator(self, saved)
            if not self.persistent_workers:
                return made
            self._iterator = made
        else:
            self._iterator.restart()
        return self._iterator

    def state_dict(self) -> dict[str, Any]:
        """How far the last pass is, with all random numbers: a loader made alike, in another
        process too, gives after `load_state_dict` the batches that come next here, bit for bit.

        Tensors and plain containers (and what the dataset's own `state_dict` gives), so that
        `torch.save` and `torch.load` pass it on. With workers it waits for the batches that are
        being got. If the iterator over workers is gone in the middle of a pass, the pass taken up
        reads again what was given out. See Note [Resuming a pass] in torchlab.utils.data.state.
        """
        if self._resume is not None:
            return copy.deepcopy(self._resume)
        where = None if self._pass is None else self._pass.state()
        return {
            "loader_version": state.VERSION,
            "num_workers": self.num_workers,
            "streams": self._streams,
            "rng": state.pack(state.capture(state.generators_of(self))),
            "pass": where,
            "workers": workers.between(self._iterator)
            if where is None and self._iterator is not None
            else None,
            **{
                name: copy.deepcopy(owner.state_dict())
                if where is None and state.stateful(owner)
                else None
                for name, owner in self._owners().items()
            },
        }

    def _owners(self) -> dict[str, Any]:
        """What may know of more than one pass."""
        samplers = self.batch_sampler, self.sampler
        sampler = next((s for s in samplers if state.stateful(s)), None)
        return {"dataset": self.dataset if self.num_workers == 0 else None, "sampler": sampler}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next pass be the rest of the one of which `state_dict` told. The dataset,
        sampler and arguments are those of the loader that it is of; ValueError if that cannot be.
        """
        state.check(self, state_dict)
        self._resume = copy.deepcopy(state_dict)
        self._iterator = self._pass = None

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors."""
        n = self.num_workers
        if hasattr(os, "sched_getaffinity"):
            most = len(os.sched_getaffinity(0))
        else:
            most = os.cpu_count() or n
        if n > most:
            warnings.warn(
                f"This DataLoader will create {n} worker processes in total. Our suggested max "
                f"number of worker in current system is {most}, which is smaller than what this "
                "DataLoader is going to create. Please be aware that excessive worker creation "
                "might get DataLoader running slow or even freeze, lower the worker number to "
                "avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )

    @property
    def _dataset_kind(self) -> int:
        return _DatasetKind.Iterable if self._streams else _DatasetKind.Map

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _shared_seed(self) -> int | None:
        """For data pipes the seed from which all workers seed their shufflers alike."""
        return drawn_seed(self.generator) if isinstance(self.dataset, IterDataPipe) else None

    def __len__(self) -> int:
        """The number of batches (of samples if there is no batch size)."""
        n = self._length()
        self._length_told = n if self._streams else None
        return n

    def _length(self) -> int:
        if not self._streams:
            return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)
        n = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def _warn_length(self, count: int, n: int | None) -> None:
        """Warn if a stream gives more than `n`: the length that somebody had asked for when the
        pass began. (`list(loader)` asks after it.)"""
        if n is None or count <= n:
            return
        text = (
            f"Length of IterableDataset {self.dataset} was reported to be {n} (when accessing "
            f"len(dataloader)), but {count} samples have been fetched. "
        )
        if self.num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for "
                "examples."
            )
        warnings.warn(text, stacklevel=4)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """One pass over a loader's batches, in this process."""

    def __init__(self, loader: Any, saved: Any = None) -> None:
        began = time.perf_counter()
        self._loader = loader = known(loader)
        seed = loader._shared_seed() if saved is None else saved["shared_seed"]
        if seed is not None:
            graph_settings.apply_random_seed(loader.dataset, Generator().manual_seed(seed))
        if saved is None:
            # PyTorch draws a seed for its workers even when it has none: the stream stays the same.
            drawn_seed(loader.generator)
        self._told = loader._length_told
        self._pins = loader._pins()
        self._watch = Watch(loader, None)
        self._shared_seed = seed
        self._order = state.Order(loader, saved and saved["order"])
        self._count = 0
        if saved is None:
            self._fetch = fetcher(loader)
        else:
            self._take_up(saved)
        self._watch.passed("begin", began)

    def _take_up(self, saved: Any) -> None:
        loader = self._loader
        self._count = saved["given"]
        self._fetch = state.taken_up(
            lambda: fetcher(loader), loader.dataset, saved["dataset"], saved["ended"]
        )
        if not loader._streams:
            self._order.replay(saved["order"])
        elif saved["dataset"] is None and not saved["ended"]:
            self._order.rewind(saved["order"])
            for _ in range(saved["given"]):
                self._fetch(next(self._order)[1])

    def state(self) -> dict[str, Any]:
        """Where the pass is."""
        return {
            "given": self._count,
            "order": self._order.state([]),
            "shared_seed": self._shared_seed,
            "dataset": copy.deepcopy(state.dataset_state(self._fetch)),
            "ended": getattr(self._fetch, "ended", False),
        }

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return self._loader._length()

    def __next__(self) -> Any:
        if blocks.LISTENERS:
            with blocks.block("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
                return self._give()
        return self._give()

    def _give(self) -> Any:
        began = time.perf_counter()
        try:
            return self._next(began)
        except StopIteration:
            if self._loader._pass is self:
                self._loader._pass = None
            self._watch.passed("end", began)
            raise

    def _next(self, began: float) -> Any:
        number, indices = next(self._order)
        listeners = events.loader_step.listeners
        if self._watch.on:
            batch = self._watched(number, indices, began)
        else:
            batch = self._fetch(indices)
            if self._pins:
                batch = pin_memory(batch)
        if listeners:
            size = len(indices) if isinstance(indices, list) else 1
            events.loader_step.emit(
                index=self._count, size=size, seconds=time.perf_counter() - began
            )
        self._count += 1
        if self._loader._streams:
            self._loader._warn_length(self._count, self._told)
        return batch

    def _watched(self, number: int, indices: Any, began: float) -> Any:
        told: list[Told] = []
        batch, error, gives = None, "", True
        try:
            batch = phases(self._fetch, indices, told)
            if self._pins:
                since = time.perf_counter()
                batch = pin_memory(batch)
                told.append(stretch("pin", since, time.perf_counter()))
            return batch
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
            gives = not isinstance(raised, StopIteration)
            raise
        finally:
            for item in told:
                self._watch.phase(None, number, item)
            if gives:
                self._watch.gave(number, self._count, None, indices, batch, error, began)


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: Any, persistent: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers "
            "> 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _context(given: Any, num_workers: int) -> Any:
    """The context of `multiprocessing` that starts the workers; None: the default one."""
    if given is None:
        return None
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > "
            f"0), but got num_workers={num_workers}"
        )
    if isinstance(given, str):
        known = multiprocessing.get_all_start_methods()
        if given not in known:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{known!r}, but got multiprocessing_context={given!r}"
            )
        return multiprocessing.get_context(given)
    if not isinstance(given, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={given}"
        )
    return given


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


__all__ = ["DataLoader", "get_worker_info"]
