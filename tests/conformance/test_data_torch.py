"""torch.utils.data against PyTorch: order, splits and what is left of the random stream."""

from __future__ import annotations

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torchlab  # noqa: E402

pytest.importorskip("torch.utils.data")


def lists(x):
    if hasattr(x, "tolist"):
        return x.tolist()
    if isinstance(x, dict):
        return {k: lists(v) for k, v in x.items()}
    return [lists(v) for v in x] if isinstance(x, (list, tuple)) else x


def both(fn):
    found = []
    for T in (torchlab, torch):
        T.manual_seed(11)
        result = lists(fn(T, T.utils.data))
        found.append((result, T.rand(2).tolist()))
    assert found[0] == found[1]


SAMPLERS = [
    lambda T, D: list(D.RandomSampler(range(37))),
    lambda T, D: list(D.RandomSampler(range(5), num_samples=13)),
    lambda T, D: list(D.RandomSampler(range(5), num_samples=10)),
    lambda T, D: list(D.RandomSampler(range(50), replacement=True, num_samples=70)),
    lambda T, D: list(D.RandomSampler(range(9), generator=T.Generator().manual_seed(2))),
    lambda T, D: list(D.SubsetRandomSampler([3, 1, 4, 1, 5])),
    lambda T, D: list(D.WeightedRandomSampler([0.1, 0.9, 0.4, 0.0], 9)),
    lambda T, D: list(D.WeightedRandomSampler([0.1, 0.9, 0.4], 2, replacement=False)),
    lambda T, D: list(D.BatchSampler(D.RandomSampler(range(10)), 3, False)),
    lambda T, D: [s.indices for s in D.random_split(range(20), [0.3, 0.3, 0.4])],
    lambda T, D: [
        s.indices for s in D.random_split(range(9), [4, 5], T.Generator().manual_seed(1))
    ],
]


@pytest.mark.parametrize("draw", SAMPLERS)
def test_samplers_and_splits(draw):
    both(draw)


class Mixed:
    def __len__(self):
        return 7

    def __getitem__(self, i):
        return {"x": np.full((2,), i, np.float32), "y": (i, float(i)), "z": str(i), "b": i % 2 == 0}


LOADERS = [
    lambda T, D: [D.DataLoader(Mixed(), 3)],
    lambda T, D: [D.DataLoader(Mixed(), 3, shuffle=True, drop_last=True)],
    lambda T, D: [D.DataLoader(Mixed(), batch_size=None, shuffle=True)],
    lambda T, D: [D.DataLoader(D.TensorDataset(T.arange(10), T.ones(10, 2)), 4, shuffle=True)],
    lambda T, D: [D.DataLoader(range(10), 4, True, generator=T.Generator().manual_seed(3))],
    lambda T, D: [D.DataLoader(range(6), sampler=[3, 1, 2], batch_size=2)],
    lambda T, D: [D.DataLoader(D.Subset(Mixed(), [2, 5, 6]), 2, shuffle=True)],
    lambda T, D: [D.DataLoader(D.ConcatDataset([range(4), range(5)]), 3, shuffle=True)],
]


@pytest.mark.parametrize("make", LOADERS)
def test_loaders(make):
    # two passes: each draws anew
    both(lambda T, D: [[list(loader) for _ in range(2)] for loader in make(T, D)])


class Drawn:
    """Samples that depend on the seeds of the workers."""

    def __init__(self, T):
        self.T = T

    def __len__(self):
        return 7

    def __getitem__(self, i):
        info = self.T.utils.data.get_worker_info()
        drawn = (
            random.random(),
            float(np.random.rand()),
            float(self.T.rand(())),
            int(self.T.randint(9, ())),
        )
        return i, info.id, info.seed, *drawn


def stream(T, D):
    class Stream(D.IterableDataset):
        def __iter__(self):
            info = D.get_worker_info()
            start = 0 if info is None else info.id * 100
            return iter(range(start, start + 3 + start // 30))

    return Stream()


WORKERS = [
    lambda T, D: D.DataLoader(Mixed(), 3, num_workers=2),
    lambda T, D: D.DataLoader(Mixed(), 3, shuffle=True, drop_last=True, num_workers=1),
    lambda T, D: D.DataLoader(Mixed(), None, shuffle=True, num_workers=2, prefetch_factor=1),
    lambda T, D: D.DataLoader(range(9), 2, True, num_workers=2, persistent_workers=True),
    lambda T, D: D.DataLoader(Drawn(T), 2, num_workers=2, collate_fn=list),
    lambda T, D: D.DataLoader(Drawn(T), 2, num_workers=2, collate_fn=list, persistent_workers=True),
    lambda T, D: D.DataLoader(
        Drawn(T), None, num_workers=1, generator=T.Generator().manual_seed(3), collate_fn=list
    ),
    lambda T, D: D.DataLoader(stream(T, D), 2, num_workers=2),
    lambda T, D: D.DataLoader(stream(T, D), 2, num_workers=2, drop_last=True, prefetch_factor=3),
    lambda T, D: D.DataLoader(stream(T, D), None, num_workers=2, persistent_workers=True),
]


@pytest.mark.parametrize("make", WORKERS)
def test_loaders_with_workers(make):
    def passes(T, D):
        loader = make(T, D)
        return [list(loader) for _ in range(2)], float(T.rand(()))

    both(passes)


BATCHES = [
    [1, 2, 3],
    [1.5, 2.0],
    [True, False],
    ["a", "b"],
    [(1, 2.0), (3, 4.0)],
    [[1, 2], [3, 4]],
    [{"a": 1, "b": [1.0, 2]}, {"a": 2, "b": [3.0, 4]}],
    [np.ones((2, 2)), np.zeros((2, 2))],
    [np.float32(1), np.float32(2)],
    [np.int16(1), np.int16(2)],
    [np.array(3), np.array(4)],
]


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_collation(batch):
    def described(x):
        if hasattr(x, "dtype"):
            return str(x.dtype), list(x.shape), x.tolist()
        if isinstance(x, dict):
            return {k: described(v) for k, v in x.items()}
        return (type(x).__name__, [described(v) for v in x]) if isinstance(x, (list, tuple)) else x

    for name in ("default_collate", "default_convert"):
        a = described(getattr(torchlab.utils.data, name)(batch))
        b = described(getattr(torch.utils.data, name)(batch))
        assert a == b, name
