"""The profiler of operators: events, averages, tables, traces."""

from __future__ import annotations

import gc
import json
import sqlite3
from pathlib import Path

import pytest

import torchlab
from torchlab.autograd import profiler
from torchlab.autograd.profiler_util import FunctionEvent


def test_operators_are_counted_and_timed(tmp_path: Path) -> None:
    x = torchlab.ones(3, 4, requires_grad=True)
    with profiler.profile(record_shapes=True) as prof:
        with profiler.record_function("mine"):
            (x @ x.t()).sum().backward()
        torchlab.sin(x)
    averages = {e.key: e for e in prof.key_averages()}
    assert averages["aten::mm"].count == 3 and averages["aten::sin"].count == 1
    mine = averages["mine"]
    inside = {e.name: e.cpu_parent.name for e in prof.function_events if e.cpu_parent is not None}
    assert inside["aten::sum"] == "mine" and inside["MmBackward0"] == "mine"
    assert {e.name for e in prof.function_events if e.cpu_parent and e.cpu_parent.name ==
            "aten::matmul"} == {"aten::mm"}  # fmt: skip
    assert 0 < mine.self_cpu_time_total < mine.cpu_time_total
    total = sum(e.cpu_time_total for e in prof.function_events if e.cpu_parent is None)
    assert prof.self_cpu_time_total == pytest.approx(total)
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert [[3, 4], [4, 3]] in [e.input_shapes for e in by_shape if e.key == "aten::mm"]
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=3)
    assert "# of Calls" in text and text.count("\n") == 8
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "cpu_op"]
    assert len(spans) == len(prof.function_events) - 1 and trace["record_shapes"] == 1
    arrows = [e for e in trace["traceEvents"] if e.get("cat") == "fwdbwd"]
    assert {e["ph"] for e in arrows} == {"s", "f"}


def test_memory_of_tensors_is_what_they_hold() -> None:
    with profiler.profile(profile_memory=True) as prof:
        x = torchlab.ones(256)
        with profiler.record_function("block"):
            y = x.sin()
            del y
            gc.collect()
    found = {e.key: e for e in prof.key_averages()}
    assert found["aten::ones"].self_cpu_memory_usage == 1024
    assert found["aten::sin"].cpu_memory_usage == 1024
    assert found["block"].cpu_memory_usage == 0
    assert found["block"].self_cpu_memory_usage == -1024  # given back in it, taken further in
    assert "Self CPU Mem" in prof.key_averages().table()


def test_memory_of_the_simulated_accelerator() -> None:
    with profiler.profile(profile_memory=True, use_device="sim") as prof:
        x = torchlab.ones(1024, device="sim")
    total = prof.total_average()
    assert total.device_memory_usage >= 4096 and total.cpu_memory_usage == 0
    assert "SIM Mem" in prof.key_averages().table() and x.device.type == "sim"


def test_operations_are_counted_and_stacks_kept(tmp_path: Path) -> None:
    conv = torchlab.nn.Conv2d(3, 4, 3, padding=1, stride=2)
    with profiler.profile(with_flops=True, with_stack=True) as prof:
        torchlab.ones(3, 4) @ torchlab.ones(4, 5)
        conv(torchlab.ones(5, 3, 8, 8))
    found = {e.key: e for e in prof.key_averages()}
    assert found["aten::mm"].flops == 2 * 3 * 4 * 5
    assert found["aten::convolution"].flops == 2 * 5 * 4 * 4 * 4 * 3 * 9
    assert "FLOPs" in prof.key_averages().table()
    mm = next(e for e in prof.function_events if e.name == "aten::mm")
    assert "test_operations_are_counted_and_stacks_kept" in mm.stack[0]
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    line = (tmp_path / "stacks.txt").read_text().splitlines()[0]
    assert line.rpartition(" ")[2].isdigit() and "test_profiler.py" in line
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks.txt"), "weight")


def test_nothing_is_recorded_outside() -> None:
    with profiler.profile(enabled=False) as off, profiler.record_function("a"):
        torchlab.ones(1).sin()
    assert off is None
    running = profiler.profile()
    assert running.function_events is None
    with pytest.raises(RuntimeError, match="didn't finish"):
        running.key_averages()

    @profiler.record_function("named")
    def f() -> None:
        torchlab.ones(1).cos()

    f()
    with profiler.profile() as prof:
        f()
    assert prof.key_averages()[0].key == "named" and prof.total_average().count >= 2
    x = torchlab.ones(2)
    assert x.sin()._base is None  # the mode is off again
    with profiler.profile() as twice, pytest.raises(RuntimeError, match="not reentrant"):
        twice.__enter__()


def test_what_the_settings_cannot_be() -> None:
    with pytest.raises(NotImplementedError, match="experimental_config"):
        profiler.profile(experimental_config=object())
    with pytest.warns(UserWarning, match="not a valid device option"):
        profiler.profile(use_device="toaster")
    with pytest.raises(AssertionError, match="No activities"):
        profiler.profile(use_cpu=False)


def test_ranges_need_the_vendors_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    with profiler.emit_nvtx(enabled=False), profiler.emit_itt(enabled=False):
        torchlab.ones(1)
    if not torchlab.cuda.is_available():
        with pytest.raises(AssertionError, match="not compiled with CUDA"):
            profiler.emit_nvtx().__enter__()
    told: list[str] = []
    monkeypatch.setattr(profiler.emit_itt, "ready", lambda self: None)
    monkeypatch.setattr(profiler.emit_itt, "push", lambda self, name: told.append(name))
    monkeypatch.setattr(profiler.emit_itt, "pop", lambda self: told.append("."))
    with profiler.emit_itt(record_shapes=True), profiler.record_function("block"):
        torchlab.ones(2).sin()
    assert told[0] == "block" and told[-1] == "." and told.count(".") == 3
    assert told[3].startswith("aten::sin, seq = ") and told[3].endswith("sizes = [[2]]")


def test_lists_of_events_by_hand() -> None:
    def event(number: int, name: str, start: float, end: float) -> FunctionEvent:
        return FunctionEvent(number, name, 1, start, end, overload_name="", input_shapes=[])

    events = profiler.EventList(
        [event(1, "a", 0, 100), event(2, "b", 10, 60), event(3, "b", 10, 60), event(4, "c", 20, 30)]
    )
    events._build_tree()
    assert [e.name for e in events] == ["a", "b", "c"]  # one b did nothing but call the other
    assert [e.self_cpu_time_total for e in events] == [50, 40, 10]
    table = events.table(sort_by="cpu_time_total", time_unit="us", top_level_events_only=True)
    assert "top-level" in table and "100.000us" in table
    seen = profiler.EnforceUnique()
    seen.see("a", 1)
    with pytest.raises(RuntimeError, match="duplicate key"):
        seen.see("a", 1)


def test_a_trace_of_nvprof(tmp_path: Path) -> None:
    path = str(tmp_path / "prof.db")
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(id INT, name INT, timestamp INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(
            _id_ INTEGER PRIMARY KEY, cbid INT, start INT, end INT, correlationId INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(
            start INT, end INT, correlationId INT, name INT);
        INSERT INTO StringTable VALUES (1, 'add'), (2, 'mul');
        INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES
            (7, 1, 1000), (7, 0, 5000), (8, 2, 6000), (8, 0, 7000);
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 1600, 1700, 5);
        INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (2000, 2600, 5, 1);
    """)
    db.commit()
    db.close()
    events = profiler.load_nvprof(path)
    assert [e.name for e in events] == ["add", "mul"]
    assert [k.duration for k in events[0].kernels] == [600] and not events[1].kernels
