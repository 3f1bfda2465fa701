"""IterableDatasetAdapter: streams with the interface of Hugging Face's."""

from __future__ import annotations

import pytest

from torchlab.utils import data as D


class Source:
    """What `datasets.IterableDataset` offers; once told a state, it begins there every time."""

    def __init__(self, shards, start=(0, 0)):
        self.shards = shards
        self.num_shards = len(shards)
        self.start = start
        self.at = start
        self.epoch = 0

    def __iter__(self):
        first, place = self.start
        for k in range(first, len(self.shards)):
            for i in range(place, len(self.shards[k])):
                self.at = (k, i + 1)
                yield {"x": self.shards[k][i]}
            place = 0

    def shard(self, num_shards, index):
        return Source(self.shards[index::num_shards])

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.start = state["at"]

    def set_epoch(self, epoch):
        self.epoch = epoch


class Bare:
    """Can only be iterated over."""

    def __iter__(self):
        return iter([{"x": i} for i in range(20)])

    def __len__(self):
        return 20


def source():
    return Source([list(range(s * 5, s * 5 + 5)) for s in range(4)])


def xs(loader):
    return [b["x"].tolist() for b in loader]


@pytest.mark.parametrize("workers", [0, 1, 2, 5])
@pytest.mark.parametrize("make", [source, Bare])
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_every_sample_once_and_resumed(make, workers):
    loader = D.DataLoader(D.IterableDatasetAdapter(make()), 3, num_workers=workers)
    whole = xs(loader)
    assert sorted(sum(whole, [])) == list(range(20))
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    assert xs(batches) == whole[2:]
    other = D.DataLoader(D.IterableDatasetAdapter(make()), 3, num_workers=workers)
    other.load_state_dict(state)
    assert xs(other) == whole[2:] and xs(other) == whole


def test_what_it_passes_on():
    adapter = D.IterableDatasetAdapter(source())
    adapter.set_epoch(3)
    assert adapter.source.epoch == 3
    assert len(D.DataLoader(D.IterableDatasetAdapter(Bare()), 6)) == 4
    for wrong in (iter([1]), 3):
        with pytest.raises(TypeError, match="iterable anew for every pass"):
            D.IterableDatasetAdapter(wrong)
