"""torchlab.utils.data.passes: PyTorch's iterators over loaders, by their names, and loaders of
others."""

from __future__ import annotations

import itertools

import pytest

import torchlab as torch
from torchlab.utils.data import DataLoader, IterableDataset
from torchlab.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(4))


def test_a_loader_says_what_it_is() -> None:
    loader = DataLoader([1, 2, 3], 2)
    assert loader._dataset_kind == _DatasetKind.Map == 0
    assert loader._auto_collation and loader._index_sampler is loader.batch_sampler
    loader = DataLoader(Stream(), None)
    assert loader._dataset_kind == _DatasetKind.Iterable == 1
    assert not loader._auto_collation and loader._index_sampler is loader.sampler


def test_iterators_have_a_common_base() -> None:
    loader = DataLoader([1, 2, 3], 2)
    assert type(iter(loader)) is _SingleProcessDataLoaderIter
    assert issubclass(_SingleProcessDataLoaderIter, _BaseDataLoaderIter)
    assert issubclass(_MultiProcessingDataLoaderIter, _BaseDataLoaderIter)
    assert [b.tolist() for b in _SingleProcessDataLoaderIter(loader)] == [[1, 2], [3]]
    with pytest.raises(ImportError):
        from torchlab.utils.data.dataloader import _no_such_thing  # noqa: F401


def test_an_iterator_made_by_hand_draws_what_a_loop_draws() -> None:
    loader = DataLoader(range(6), 2, shuffle=True)
    torch.manual_seed(0)
    loop = [b.tolist() for b in loader]
    after = torch.rand(1).item()
    torch.manual_seed(0)
    assert loop == [b.tolist() for b in _SingleProcessDataLoaderIter(loader)]
    assert after == torch.rand(1).item()


class Foreign:
    """A loader with the attributes that PyTorch's iterators read, and nothing else."""

    dataset_kind = _dataset_kind = _DatasetKind.Iterable
    _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
    generator, prefetch_factor, worker_init_fn, multiprocessing_context = None, 2, None, None
    timeout, pin_memory, persistent_workers, pin_memory_device = 0, False, False, ""

    def __init__(self, num_workers: int) -> None:
        self.dataset = self
        self.num_workers = num_workers
        self._index_sampler = itertools.count()

    def collate_fn(self, batch):
        return batch * 10

    def _get_shared_seed(self):
        return self  # asked for with data pipes only

    def __iter__(self):
        return iter(range(5))


def test_loaders_of_others() -> None:
    assert list(_SingleProcessDataLoaderIter(Foreign(0))) == [0, 10, 20, 30, 40]
    torch.manual_seed(0)
    list(_SingleProcessDataLoaderIter(Foreign(0)))
    # PyTorch has drawn one number, too.
    assert torch.rand(1).item() == pytest.approx(0.088477433, abs=1e-8)


def test_workers_of_loaders_of_others(monkeypatch) -> None:
    loader = Foreign(1)
    loader.multiprocessing_context = torch.multiprocessing.get_context("fork")
    assert list(_MultiProcessingDataLoaderIter(loader)) == [0, 10, 20, 30, 40]


def test_maps_of_others() -> None:
    class Maps(Foreign):
        _dataset_kind, _auto_collation = _DatasetKind.Map, True

    loader = Maps(0)
    loader.dataset, loader._index_sampler = [1, 2, 3], [[0, 2], [1]]
    passed = _SingleProcessDataLoaderIter(loader)
    assert len(passed) == 2 and list(passed) == [[1, 3] * 10, [2] * 10]
