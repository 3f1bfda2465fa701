"""torchlab.utils.data: datasets, samplers, collation, the loader."""

from __future__ import annotations

from collections import UserDict, defaultdict, deque, namedtuple

import numpy as np
import pytest

import torchlab as torch
from torchlab._core import events
from torchlab.utils import data as D


class Squares(D.Dataset):
    def __init__(self, n):
        self.n = n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return float(i * i), i

    def __len__(self):
        return self.n


class Stream(D.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


def test_tensor_dataset():
    d = D.TensorDataset(torch.arange(6).reshape(3, 2), torch.tensor([7, 8, 9]))
    assert len(d) == 3 and [t.tolist() for t in d[1]] == [[2, 3], 8]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        D.TensorDataset(torch.ones(2), torch.ones(3))


def test_concatenation_subsets_and_chains():
    both = Squares(2) + Squares(3)
    assert len(both) == 5 and both[3] == (1.0, 1) and both[-1] == (4.0, 2)
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-6]
    part = D.Subset(both, [4, 0])
    assert [part[0], part[1]] == [(4.0, 2), (0.0, 0)] and part.__getitems__([1]) == [(0.0, 0)]
    assert list(Stream(2) + Stream(1)) == [0, 1, 0]
    stacked = D.StackDataset(a=Squares(2), b=Squares(2))
    assert stacked[1] == {"a": (1.0, 1), "b": (1.0, 1)}
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        D.ConcatDataset([])


def test_random_split_as_pytorch():
    torch.manual_seed(3)
    parts = D.random_split(range(7), [0.5, 0.5])
    assert [p.indices for p in parts] == [[5, 3, 4, 6], [0, 2, 1]]
    g = torch.Generator().manual_seed(1)
    assert [len(p) for p in D.random_split(range(5), [2, 3], generator=g)] == [2, 3]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        D.random_split(range(5), [2, 2])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        D.random_split(range(5), [1.5, -0.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        D.random_split(range(1), [0.9, 0.1])


def test_samplers_as_pytorch():
    torch.manual_seed(3)
    assert list(D.RandomSampler(range(4), replacement=True, num_samples=5)) == [3, 0, 3, 3, 2]
    assert list(D.SubsetRandomSampler([5, 6, 7])) == [6, 7, 5]
    assert list(D.WeightedRandomSampler([0.1, 0.9, 0.5], 5)) == [2, 1, 2, 1, 1]
    assert list(D.RandomSampler(range(3), num_samples=7)) == [0, 1, 2, 2, 0, 1, 0]
    assert list(D.SequentialSampler("abc")) == [0, 1, 2]


def test_batch_sampler():
    assert list(D.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    s = D.BatchSampler(D.SequentialSampler(range(5)), 2, True)
    assert list(s) == [[0, 1], [2, 3]] and len(s) == 2


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: D.BatchSampler([], 0, False), ValueError, "batch_size should be a positive"),
        (lambda: D.BatchSampler([], 1, 3), ValueError, "drop_last should be a boolean"),
        (lambda: D.RandomSampler([1], 3), TypeError, "replacement should be a boolean"),
        (lambda: D.RandomSampler([1], num_samples=-1), ValueError, "num_samples should be"),
        (lambda: D.WeightedRandomSampler([[1.0]], 1), ValueError, "should be a 1d sequence"),
        (lambda: D.DataLoader([1], num_workers=-1), ValueError, "should be non-negative"),
        (lambda: D.DataLoader([1], prefetch_factor=2), ValueError, "prefetch_factor option"),
        (lambda: D.DataLoader([1], persistent_workers=True), ValueError, "needs num_workers"),
        (lambda: D.DataLoader([1], shuffle=True, sampler=[0]), ValueError, "exclusive with shuf"),
        (lambda: D.DataLoader([1], 2, batch_sampler=[[0]]), ValueError, "batch_sampler option is"),
        (lambda: D.DataLoader([1], None, drop_last=True), ValueError, "disables auto-batching"),
        (lambda: D.DataLoader(Stream(1), shuffle=True), ValueError, "unspecified shuffle"),
        (lambda: D.default_collate([object()]), TypeError, "found <class 'object'>"),
        (lambda: D.default_collate([[1], [1, 2]]), RuntimeError, "should be of equal size"),
        (lambda: D.default_collate([torch.ones(1), torch.ones(2)]), RuntimeError, "equal size"),
    ],
)
def test_what_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_collation():
    Point = namedtuple("Point", "x y")
    out = D.default_collate([{"a": 1, "b": (0.5, "s"), "c": Point(1, 2)} for _ in range(2)])
    assert out["a"].tolist() == [1, 1] and out["a"].dtype is torch.int64
    assert out["b"][0].dtype is torch.float64 and out["b"][1] == ("s", "s")
    assert type(out["c"]) is Point and out["c"].y.tolist() == [2, 2]
    arrays = D.default_collate([np.ones(2, np.float32), np.zeros(2, np.float32)])
    assert arrays.tolist() == [[1.0, 1.0], [0.0, 0.0]] and arrays.dtype is torch.float32
    assert D.default_collate([np.float32(1), np.float32(2)]).tolist() == [1.0, 2.0]
    assert D.default_collate([True, False]).dtype is torch.bool
    converted = D.default_convert({"a": np.ones(1), "b": "text", "c": (np.zeros(1), 3)})
    assert isinstance(converted["a"], torch.Tensor) and converted["b"] == "text"
    assert converted["c"][0].tolist() == [0.0] and converted["c"][1] == 3


def test_loader_batches():
    loader = D.DataLoader(Squares(5), batch_size=2)
    batches = [[t.tolist() for t in b] for b in loader]
    assert batches == [[[0.0, 1.0], [0, 1]], [[4.0, 9.0], [2, 3]], [[16.0], [4]]]
    assert len(loader) == 3 and len(D.DataLoader(Squares(5), 2, drop_last=True)) == 2
    single = [x[1] for x in D.DataLoader(Squares(3), batch_size=None)]
    assert single == [0, 1, 2]
    own = D.DataLoader(
        Squares(5), batch_sampler=[[4, 0], [1]], collate_fn=lambda b: [x[1] for x in b]
    )
    assert list(own) == [[4, 0], [1]] and len(own) == 2
    with pytest.raises(ValueError, match="batch_size attribute should not be set after"):
        loader.batch_size = 3


def test_loader_shuffles_and_draws_as_pytorch():
    torch.manual_seed(3)
    loader = D.DataLoader(D.TensorDataset(torch.arange(6)), 2, shuffle=True)
    assert [b[0].tolist() for b in loader] == [[2, 4], [0, 1], [3, 5]]
    assert torch.rand(1).item() == 0.47161436080932617
    first = [
        b.tolist()
        for b in D.DataLoader(range(8), 4, True, generator=torch.Generator().manual_seed(1))
    ]
    again = [
        b.tolist()
        for b in D.DataLoader(range(8), 4, True, generator=torch.Generator().manual_seed(1))
    ]
    assert first == again and sorted(sum(first, [])) == list(range(8))


def test_loader_of_tensors_equals_stacking():
    x = torch.arange(12.0).reshape(6, 2)
    quick = D.DataLoader(D.TensorDataset(x), 4)
    plain = D.DataLoader(D.TensorDataset(x.requires_grad_()), 4)
    for a, b in zip(quick, plain, strict=True):
        assert type(a) is list and a[0].tolist() == b[0].tolist()
    batch = next(iter(plain))[0]
    assert batch.requires_grad


def test_loader_of_a_stream():
    assert [b.tolist() for b in D.DataLoader(Stream(5), 2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in D.DataLoader(Stream(5), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(D.DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert list(D.DataLoader(Stream(0), 2)) == []


def test_loader_tells_who_listens():
    seen = []
    with events.loader_step.subscribe(
        lambda **e: seen.append((e["index"], e["size"], e["seconds"] >= 0))
    ):
        list(D.DataLoader(range(3), 2))
    list(D.DataLoader(range(3), 2))
    assert seen == [(0, 2, True), (1, 1, True)]
    assert D.get_worker_info() is None


def test_a_class_that_default_collate_is_taught() -> None:
    from torchlab.utils.data._utils.collate import collate, default_collate_fn_map

    class Point:
        def __init__(self, x: float) -> None:
            self.x = x

    with pytest.raises(TypeError, match="found"):
        D.default_collate([Point(1.0), Point(2.0)])

    def points(batch, *, collate_fn_map=None):
        return collate([p.x for p in batch], collate_fn_map=collate_fn_map)

    taught = {**default_collate_fn_map, Point: points}
    made = collate([{"p": Point(1.0), "i": 1}, {"p": Point(2.0), "i": 2}], collate_fn_map=taught)
    assert made["p"].tolist() == [1, 2] and made["i"].tolist() == [1, 2]
    default_collate_fn_map[Point] = points
    try:
        loaded = next(iter(D.DataLoader([Point(1.0), Point(2.0)], batch_size=2)))
        assert loaded.tolist() == [1, 2] and loaded.dtype == torch.float64
    finally:
        del default_collate_fn_map[Point]


def test_texts_of_numpy_are_collated_as_texts() -> None:
    assert D.default_collate([np.str_("a"), np.str_("b")]) == ["a", "b"]


def test_names_for_annotations():
    from torchlab.serialization import MAP_LOCATION
    from torchlab.utils.data.dataloader import _collate_fn_t, _worker_init_fn_t

    assert "Storage" in str(MAP_LOCATION | int) and "list" in str(_collate_fn_t | None)
    assert _worker_init_fn_t.__args__ == (int, None)


def test_a_stream_that_is_its_own_iterator_is_asked_once() -> None:
    class Own(D.IterableDataset):
        began = 0

        def __iter__(self):
            self.began += 1
            self.at = 0
            return self

        def __next__(self):
            if self.at == 3:
                raise StopIteration
            self.at += 1
            return self.at

    own = Own()
    assert list(D.DataLoader(own, batch_size=1, collate_fn=list)) == [[1], [2], [3]]
    assert own.began == 1
    assert list(D.DataLoader(own, batch_size=2, collate_fn=list)) == [[1, 2], [3]]
    assert list(D.DataLoader(own, batch_size=2, collate_fn=list, drop_last=True)) == [[1, 2]]
    assert list(D.DataLoader(own, batch_size=None)) == [1, 2, 3]


def test_containers_that_can_change_are_copied_and_filled() -> None:
    class Encoding(UserDict):
        def __init__(self, data, origin):
            super().__init__(data)
            self.origin = origin

    out = D.default_collate([Encoding({"a": 1}, "here"), Encoding({"a": 2}, "there")])
    assert type(out) is Encoding and out.origin == "here" and out["a"].tolist() == [1, 2]
    kept = D.default_collate([defaultdict(int, a=1)])
    assert kept.default_factory is int and kept["a"].tolist() == [1]
    kept = D.default_convert(defaultdict(list, a=np.arange(2)))
    assert kept.default_factory is list and kept["a"].tolist() == [0, 1]
    queues = D.default_collate([deque([1, 2], maxlen=4), deque([3, 4], maxlen=4)])
    assert queues.maxlen == 4 and [q.tolist() for q in queues] == [[1, 3], [2, 4]]


def test_a_stream_without_iter_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract class IterableDataset .*__iter__"):
        D.IterableDataset()


def test_pipes_that_shuffle_are_found_where_libraries_look() -> None:
    from torchlab.utils.data.datapipes.iter import IterableWrapper, Shuffler, combinatorics

    assert combinatorics.ShufflerIterDataPipe is Shuffler
    assert isinstance(IterableWrapper([1]).shuffle(), combinatorics.ShufflerIterDataPipe)
