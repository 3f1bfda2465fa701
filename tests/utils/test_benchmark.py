"""Timers, measurements and tables. The texts are PyTorch 2.13's for the same times."""

from __future__ import annotations

import pickle

import pytest

import torchlab as torch
from torchlab.utils import benchmark
from torchlab.utils.benchmark import Compare, Measurement, TaskSpec, Timer


def measured(label: str, row: str, column: str, t: float, env: str | None = None, threads: int = 1):
    spec = TaskSpec(
        stmt="x",
        setup="pass",
        label=label,
        sub_label=row,
        description=column,
        env=env,
        num_threads=threads,
    )
    return Measurement(1, [t] * 4, spec)


def test_a_timer_times_a_statement() -> None:
    timer = Timer("x + x", globals={"x": torch.ones(3)}, label="sum", description="here")
    once = timer.timeit(5)
    assert once.number_per_run == 5 and len(once.times) == 1 and once.median > 0
    many = timer.blocked_autorange(min_run_time=0.01)
    assert sum(many.raw_times) >= 0.01 and many.title == "sum"
    assert timer.adaptive_autorange(max_run_time=0.1).mean > 0
    assert pickle.loads(pickle.dumps(many)).task_spec == many.task_spec
    with pytest.raises(NotImplementedError):
        timer.repeat(2, 2)
    with pytest.raises(NotImplementedError, match="only Python"):
        Timer("x", language="c++")
    with pytest.raises(ValueError, match="Invalid language"):
        Timer("x", language="foo")


def test_a_measurement_says_what_its_times_bear() -> None:
    m = Measurement(2, [1.0, 2.0, 3.0, 4.0], TaskSpec("x+1", "pass", label="L", sub_label="s"))
    assert (m.times, m.median, m.mean, m.iqr) == ([0.5, 1.0, 1.5, 2.0], 1.25, 1.25, 0.75)
    assert m.significant_figures == 1 and m.has_warnings
    assert repr(m).splitlines()[1:] == [
        "L: s",
        "  Median: 1.25 s",
        "  IQR:    0.75 s (0.88 to 1.62)",
        "  4 measurements, 2 runs per measurement, 1 thread",
        "  WARNING: Interquartile range is 60.0% of the median measurement.",
        "           This suggests significant environmental influence.",
    ]
    steady = Measurement(2, [1.0, 1.001, 1.002, 1.003, 1.0], m.task_spec)
    assert steady.significant_figures == 3 and not steady.has_warnings
    assert len(Measurement.merge([m, m, measured("a", "b", "c", 1.0)])) == 2


def test_tables() -> None:
    table = Compare(
        [
            measured("A", "r1", "c1", 1e-6),
            measured("A", "r2", "c1", 2.5e-5),
            measured("A", "r1", "c2", 3e-6),
            measured("A", "r1", "c2", 3e-3, threads=4),
            measured("B", "r1", "c1", 0.2, "env1"),
            measured("B", "r1", "c1", 0.1, "env2"),
        ]
    )
    table.trim_significant_figures()
    assert str(table) == (
        "[---------- A -----------]\n"
        "          |   c1   |   c2 \n"
        "1 threads: ---------------\n"
        "      r1  |   1.0  |     3\n"
        "      r2  |  25.0  |      \n"
        "4 threads: ---------------\n"
        "      r1  |        |  3000\n"
        "\n"
        "Times are in microseconds (us).\n"
        "\n"
        "[-------- B ---------]\n"
        "              |    c1 \n"
        "1 threads: -----------\n"
        "  (env1)  r1  |  200.0\n"
        "  (env2)  r1  |  100.0\n"
        "\n"
        "Times are in milliseconds (ms).\n"
    )
    table.colorize()
    assert "\033[92m\033[1m 1.0\033[0m\033[0m  |" in str(table)
    assert "\033[31m\033[1m25.0\033[0m\033[0m" in str(table)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        Compare([1])  # type: ignore[list-item]


def test_small_helpers() -> None:
    assert benchmark.select_unit(1e-5) == ("us", 1e-6)
    assert benchmark.unit_to_english("us") == "microsecond"
    assert benchmark.trim_sigfig(123.456, 2) == 120.0
    assert benchmark.ordered_unique([1, 2, 1]) == [1, 2]
    before = torch.get_num_threads()
    with benchmark.set_torch_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
