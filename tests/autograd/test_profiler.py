"""The profiler of operators."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import torchlab
from torchlab.autograd import profiler


def test_operators_are_counted_and_timed(tmp_path: Path) -> None:
    x = torchlab.ones(3, 4, requires_grad=True)
    with profiler.profile(record_shapes=True) as prof:
        with profiler.record_function("mine"):
            (x @ x.t()).sum().backward()
        torchlab.sin(x)
    averages = {e.key: e for e in prof.key_averages()}
    assert averages["aten::mm"].count == 3 and averages["aten::sin"].count == 1
    mine = averages["mine"]
    inside = [e for e in prof.function_events if e.cpu_parent is not None]
    assert {e.cpu_parent.name for e in inside} == {"mine"} and mine.cpu_time_total > 0
    assert mine.self_cpu_time_total < mine.cpu_time_total
    total = sum(e.cpu_time_total for e in prof.function_events if e.cpu_parent is None)
    assert prof.self_cpu_time_total == pytest.approx(total)
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert [[3, 4], [4, 3]] in [e.input_shapes for e in by_shape if e.key == "aten::mm"]
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=3)
    assert "# of Calls" in text and text.count("\n") == 8
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert len(trace) == len(prof.function_events)


def test_nothing_is_recorded_outside() -> None:
    with profiler.profile(enabled=False) as off, profiler.record_function("a"):
        torchlab.ones(1).sin()
    assert off.function_events is None
    with pytest.raises(RuntimeError, match="didn't finish"):
        off.key_averages()

    @profiler.record_function("named")
    def f() -> None:
        torchlab.ones(1).cos()

    f()
    with profiler.profile() as prof:
        f()
    assert prof.key_averages()[0].key == "named" and prof.total_average().count >= 2
    x = torchlab.ones(2)
    assert x.sin()._base is None  # the mode is off again


def test_what_is_not_measured_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="profile_memory"):
        profiler.profile(profile_memory=True)
