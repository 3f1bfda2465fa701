"""What PyTorch's loaders and the iterators over them tell one another, for libraries that bring a
loader of their own and let PyTorch's iterators run over it.

Source: https://docs.pytorch.org/docs/2.13/data.html#single-and-multi-process-data-loading
"""

from __future__ import annotations

from typing import Any

from torchlab import accelerator
from torchlab.utils.data.datapipes.datapipe import IterDataPipe


class _DatasetKind:
    """The kinds of datasets."""

    Map = 0
    Iterable = 1


class _BaseDataLoaderIter:
    """A pass over a loader's batches."""


class ForeignLoader:
    """A loader that is no `DataLoader` but has the attributes by which PyTorch's iterators know
    one (`_dataset_kind`, `_auto_collation`, `_index_sampler`, `_get_shared_seed` …), in the terms
    of this package's."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.dataset = loader.dataset
        self.num_workers = loader.num_workers
        self.collate_fn = loader.collate_fn
        self.drop_last = loader.drop_last
        self.generator = loader.generator
        self.timeout = loader.timeout
        self.prefetch_factor = loader.prefetch_factor
        self.persistent_workers = loader.persistent_workers
        self.worker_init_fn = loader.worker_init_fn
        self.multiprocessing_context = loader.multiprocessing_context
        self.in_order = loader.in_order
        self.sampler = loader._index_sampler
        self.batch_sampler = loader._index_sampler if loader._auto_collation else None
        self.batch_size = getattr(loader, "batch_size", None)
        self._streams = loader._dataset_kind == _DatasetKind.Iterable
        self._length_told = None
        self._pass: Any = None

    def _pins(self) -> bool:
        return self.loader.pin_memory and accelerator.is_available()

    def _shared_seed(self) -> Any:
        piped = isinstance(self.dataset, IterDataPipe)
        return self.loader._get_shared_seed() if piped else None

    def _length(self) -> int:
        return len(self.sampler)

    def _warn_length(self, count: int, n: int | None) -> None:
        """Nobody asked this loader for its length."""


def known(loader: Any) -> Any:
    """The loader itself if it is of this package, else what it is in the package's terms."""
    return loader if hasattr(loader, "_streams") else ForeignLoader(loader)


__all__ = ["ForeignLoader", "known"]
