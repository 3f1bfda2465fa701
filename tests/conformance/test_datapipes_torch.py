"""Data pipes against PyTorch: what they yield, their lengths, and their errors."""

from __future__ import annotations

import copy
import functools
import operator
import pickle
import warnings
from collections.abc import Iterator

import pytest

import torchlab

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.data.datapipes.iter")
pytest.importorskip("torch.utils.data.datapipes.map")
warnings.filterwarnings("ignore", message="(Local function|Unlimited buffer).*")


def odd(x):
    return x % 2


def first_letter(x):
    return x[0]


def positive(x):
    return x > 0


def ten_times(x):
    return x * 10


WORDS = ["a1", "b1", "a2", "b2", "b3"]
ITER = [
    lambda I, W, D: list(I(range(3))),
    lambda I, W, D: (len(I([1, 2])), len(I([1, 2]).map(abs))),
    lambda I, W, D: len(I(iter([1, 2]))),
    lambda I, W, D: len(I([1]).filter(bool)),
    lambda I, W, D: (repr(I([1])), str(I([1]).map(str))),
    lambda I, W, D: I([1]).nothing,
    lambda I, W, D: list(I([(1, 2), (3, 4)]).map(ten_times, input_col=1)),
    lambda I, W, D: list(I([[1, 2], [3, 4]]).map(operator.add, input_col=[0, 1])),
    lambda I, W, D: list(I([(1, 2, 3)]).map(operator.add, input_col=[0, 2])),
    lambda I, W, D: list(I([(1, 2), (3, 4)]).map(ten_times, input_col=0, output_col=-1)),
    lambda I, W, D: list(I([{"a": 1}]).map(ten_times, input_col="a", output_col="b")),
    lambda I, W, D: list(I([{"a": 1}]).map(ten_times, input_col="a")),
    lambda I, W, D: I([{"a": 1}]).map(ten_times, output_col="b"),
    lambda I, W, D: list(I([1]).map(operator.add)),
    lambda I, W, D: list(I(range(-3, 3)).filter(positive)),
    lambda I, W, D: list(I(range(3)).filter(odd)),
    lambda I, W, D: list(I([(1, 0), (2, 1)]).filter(positive, input_col=1)),
    lambda I, W, D: list(I(range(5)).batch(2)),
    lambda I, W, D: (len(I(range(5)).batch(2)), len(I(range(5)).batch(2, drop_last=True))),
    lambda I, W, D: list(I(range(5)).batch(2, drop_last=True)),
    lambda I, W, D: I([1]).batch(0),
    lambda I, W, D: list(I([[1, [2]], [3]]).unbatch()),
    lambda I, W, D: list(I([[[1], [2]], [[3]]]).unbatch(2)),
    lambda I, W, D: list(I([[[1], [2]], [[3]]]).unbatch(-1)),
    lambda I, W, D: list(I([1]).unbatch(-2)),
    lambda I, W, D: list(I([1]).unbatch()),
    lambda I, W, D: [list(I(range(8)).shuffle()), list(I(range(9)).shuffle(buffer_size=3))],
    lambda I, W, D: [list(I(range(8)).shuffle().set_seed(3)) for _ in range(2)],
    lambda I, W, D: list(I([[1, 2], [3]]).shuffle(unbatch_level=1).set_shuffle(False)),
    lambda I, W, D: I([1]).shuffle(buffer_size=0),
    lambda I, W, D: (list(I([1, 2]).zip(I([3, 4, 5]))), len(I([1, 2]).zip(I([3, 4, 5])))),
    lambda I, W, D: (list(I([1, 2]).mux(I([3, 4, 5]))), len(I([1, 2]).mux(I([3, 4, 5])))),
    lambda I, W, D: (list(I([1, 2]).concat(I([3]), I([]))), len(I([1, 2]).concat(I([3])))),
    lambda I, W, D: I([1]).zip([1]),
    lambda I, W, D: I([1]).concat([1]),
    lambda I, W, D: [list(x) for x in I(range(4)).fork(2)],
    lambda I, W, D: [list(x) for x in I(range(4)).fork(2)[::-1]],
    lambda I, W, D: [len(x) for x in I(range(4)).fork(3)],
    lambda I, W, D: list(I(range(4)).fork(2, buffer_size=2)[0]),
    lambda I, W, D: list(I(range(4)).fork(2, buffer_size=-1)[0]),
    lambda I, W, D: list(I([[1]]).fork(2, copy="deep")[0]),
    lambda I, W, D: I([1]).fork(2, copy="x"),
    lambda I, W, D: I([1]).fork(0),
    lambda I, W, D: [list(x) for x in I(range(5)).demux(2, odd)],
    lambda I, W, D: list(I(range(5)).demux(2, ten_times)[0]),
    lambda I, W, D: list(I(range(5)).demux(2, {1: 0}.get, drop_none=True)[0]),
    lambda I, W, D: list(I(range(5)).demux(2, {1: 0}.get)[0]),
    lambda I, W, D: list(I(range(0, 9, 2)).demux(2, odd, buffer_size=2)[1]),
    lambda I, W, D: I([1]).demux(0, odd),
    lambda I, W, D: list(I(WORDS).groupby(first_letter)),
    lambda I, W, D: list(I(WORDS).groupby(first_letter, keep_key=True, group_size=2)),
    lambda I, W, D: list(I(WORDS).groupby(first_letter, buffer_size=2)),
    lambda I, W, D: list(
        I(WORDS).groupby(first_letter, buffer_size=3, group_size=2, drop_remaining=True)
    ),
    lambda I, W, D: list(I(WORDS).groupby(first_letter, buffer_size=2, group_size=2)),
    lambda I, W, D: I(WORDS).groupby(first_letter, buffer_size=2, group_size=3),
    lambda I, W, D: I(WORDS).groupby(first_letter, guaranteed_group_size=2),
    lambda I, W, D: list(I(range(5)).sharding_filter()),
    lambda I, W, D: [b.tolist() for b in I([[1, 2], [3, 4]]).collate()],
    lambda I, W, D: list(pickle.loads(pickle.dumps(I(range(3)).batch(2)))),
    lambda I, W, D: list(copy.deepcopy(I(range(3)).batch(2).map(sum))),
    lambda I, W, D: (repr(D.DataChunk([1, 2])), D.DataChunk([1, 2]).as_str(">"), D.DataChunk([1])),
]
MAP = [
    lambda I, W, D: (list(W([1, 2]).map(ten_times)), len(W([1, 2]).map(ten_times)), repr(W([1]))),
    lambda I, W, D: (list(W([1, 2, 3]).batch(2)), len(W([1, 2, 3]).batch(2))),
    lambda I, W, D: list(W([1, 2, 3]).batch(2, drop_last=True)),
    lambda I, W, D: W([1, 2]).batch(2)[1],
    lambda I, W, D: W([1, 2]).batch(0),
    lambda I, W, D: (W([1, 2]).concat(W([3]))[2], len(W([1, 2]).concat(W([3])))),
    lambda I, W, D: W([1, 2]).concat(W([3]))[3],
    lambda I, W, D: W([1, 2]).concat([3]),
    lambda I, W, D: (W([1]).zip(W([2]))[0], len(W([1]).zip(W([2, 3])))),
    lambda I, W, D: W([1, 2]).zip(W([3]))[1],
    lambda I, W, D: W({"a": 1})["a"],
    lambda I, W, D: list(W(range(6)).shuffle()),
    lambda I, W, D: list(W(range(6)).shuffle().set_shuffle(False)),
    lambda I, W, D: list(W({"a": 1, "b": 2}).shuffle(indices=["a", "b"]).set_seed(1)),
    lambda I, W, D: W([1]).nothing,
]
LOADERS = [
    lambda I, W, D: D.DataLoader(I(range(9)).shuffle(), 2, shuffle=True),
    lambda I, W, D: D.DataLoader(I(range(9)).shuffle(), 2),
    lambda I, W, D: D.DataLoader(I(range(9)).shuffle(), 2, shuffle=False),
    lambda I, W, D: D.DataLoader(I(range(9)).map(ten_times).batch(2), None),
    lambda I, W, D: D.DataLoader(I(range(9)).shuffle().sharding_filter(), 2, num_workers=2),
    lambda I, W, D: D.DataLoader(
        I(range(9)).shuffle().sharding_filter(), 2, num_workers=2, persistent_workers=True
    ),
    lambda I, W, D: D.DataLoader(I(range(9)).map(ten_times), 2, num_workers=2),
    lambda I, W, D: D.DataLoader(W(range(9)).map(ten_times), 2, shuffle=True, num_workers=2),
    lambda I, W, D: D.DataLoader(W(range(9)).shuffle(), 2, num_workers=1),
]


def attempt(fn, lib):
    lib.manual_seed(7)
    D = lib.utils.data
    try:
        result = plain(fn(D.datapipes.iter.IterableWrapper, D.datapipes.map.SequenceWrapper, D))
    except Exception as error:
        text = str(error.args[0] if error.args else "").split("\nThis exception")[0]
        return type(error).__name__, text
    return result, lib.rand(1).tolist()


def plain(x):
    if hasattr(x, "tolist"):
        return x.tolist()
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [plain(v) for v in x]
    return x


@pytest.mark.parametrize("fn", [*ITER, *MAP])
def test_pipes(fn):
    assert attempt(fn, torchlab) == attempt(fn, torch)


def keyword(a, *, b):
    return a


def with_default(a, b=1):
    return a


FUNCTIONS = [
    operator.add, keyword, with_default, max, lambda *a: a, lambda: 1,
    functools.partial(operator.add, 1), functools.partial(with_default, b=3),
]  # fmt: skip


@pytest.mark.parametrize("columns", [None, 0, [0, 1], [0, 1, 2]])
@pytest.mark.parametrize("fn", FUNCTIONS)
def test_functions_and_columns(fn, columns):
    for name in ("map", "filter"):

        def make(I, W, D, name=name):
            return repr(getattr(I([1]), name)(fn, input_col=columns))

        assert attempt(make, torchlab) == attempt(make, torch)


@pytest.mark.parametrize("make", LOADERS)
def test_loaders(make):
    def passes(*given):
        loader = make(*given)
        return [list(loader) for _ in range(2)]

    assert attempt(passes, torchlab) == attempt(passes, torch)


def test_one_iterator_at_a_time():
    texts = []
    for lib in (torchlab, torch):
        pipe = lib.utils.data.datapipes.iter.IterableWrapper(range(3))
        first = iter(pipe)
        assert next(first) == 0
        second = iter(pipe)
        assert next(second) == 0
        with pytest.raises(RuntimeError, match="has been invalidated") as found:
            next(first)
        assert list(second) == [1, 2]
        texts.append(str(found.value))
    assert texts[0] == texts[1]


def test_own_pipes_and_decorators():
    found = []
    for lib in (torchlab, torch):
        D = lib.utils.data

        @D.functional_datapipe(f"twice_{lib.__name__}")
        class Twice(D.IterDataPipe):
            def __init__(self, source, times=2):
                self.source, self.times, self.resets = source, times, 0

            def reset(self):
                self.resets += 1

            def __iter__(self):
                for x in self.source:
                    yield from [x] * self.times

        @D.non_deterministic
        class Odd(D.IterDataPipe):
            def __iter__(self):
                yield 1

        source = D.datapipes.iter.IterableWrapper([1, 2])
        pipe = getattr(source, f"twice_{lib.__name__}")(times=3)
        values = [list(pipe), list(pipe), pipe.resets, list(Odd())]
        with D.guaranteed_datapipes_determinism(), pytest.raises(TypeError) as error:
            Odd()
        for bad in (3, int):
            with pytest.raises(TypeError) as other:
                D.non_deterministic(bad)
            values.append(str(other.value))
        found.append([*values, str(error.value)])
    assert found[0] == found[1]


def test_what_a_pipe_yields_is_checked():
    D = torchlab.utils.data

    class Numbers(D.IterDataPipe):
        @D.runtime_validation
        def __iter__(self) -> Iterator[int]:
            yield from [1, "a"]

    with pytest.raises(RuntimeError, match="Expected an instance as subtype of <class 'int'>"):
        list(Numbers())
    with D.runtime_validation_disabled():
        assert list(Numbers()) == [1, "a"]


def test_files(tmp_path):
    (tmp_path / "in").mkdir()
    for name, text in (("b.txt", "two"), ("a.txt", "one"), ("c.md", "three"), ("in/d.txt", "four")):
        (tmp_path / name).write_text(text)
    found = []
    for lib in (torchlab, torch):
        pipes = lib.utils.data.datapipes.iter
        texts = pipes.FileLister(str(tmp_path), "*.txt").open_files().read_from_stream()
        chunks = pipes.FileLister([str(tmp_path)], recursive=True).open_files("b")
        found.append((sorted(texts), sorted(chunks.read_from_stream(chunk=2))))
    assert found[0] == found[1]
    assert len(found[0][0]) == 2
