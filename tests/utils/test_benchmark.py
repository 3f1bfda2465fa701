"""Timers: how they measure."""

from __future__ import annotations

import itertools

import pytest

import torchlab as torch
from torchlab.utils import benchmark


def test_timeit_counts_runs_after_a_warm_up() -> None:
    runs: list[int] = []
    m = benchmark.Timer("runs.append(1)", globals={"runs": runs}).timeit(300)
    assert m.number_per_run == 300 and len(m.raw_times) == 1 and len(runs) == 303


def test_a_clock_that_stands_still() -> None:
    assert benchmark.Timer("1", timer=lambda: 3.0).timeit(2).raw_times == [1e-9]


def test_autoranges() -> None:
    seen: list[int] = []
    t = benchmark.Timer("x + x", "x = torch.ones(2)", label="add")
    m = t.blocked_autorange(callback=lambda n, s: seen.append(n), min_run_time=0.01)
    assert sum(m.raw_times) >= 0.01 and set(seen) == {m.number_per_run}
    assert m.title == "add" and len(seen) == len(m.raw_times)
    m = t.adaptive_autorange(threshold=10.0, min_run_time=0.001, max_run_time=1.0)
    assert len(m.raw_times) > 3 and m.meets_confidence(10.0)


def test_threads_are_set_and_put_back() -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    t = benchmark.Timer(
        "seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=before + 1
    )
    t.timeit(1)
    assert set(seen) == {before + 1} and torch.get_num_threads() == before


def test_a_statement_is_unindented() -> None:
    clock = itertools.count()
    t = benchmark.Timer("\n  a = 1\n  b = a\n", timer=lambda: float(next(clock)))
    m = t.timeit(1)
    assert m.task_spec.stmt == "a = 1\nb = a" and m.median == 1.0


def test_what_is_refused() -> None:
    with pytest.raises(NotImplementedError):
        benchmark.Timer("1").repeat()
    with pytest.raises(RuntimeError, match="C\\+\\+"):
        benchmark.Timer("1", language="c++")


def test_what_cannot_be_added_adds_nothing() -> None:
    m = benchmark.Timer("1", label="L", description="d").timeit(2)
    c = benchmark.Compare([m])
    before = str(c)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        c.extend_results(iter([m, 3]))  # type: ignore[list-item]
    assert str(c) == before
    c.extend_results(x for x in [m])
    assert str(c) == before  # one task, one cell: the times are put together
