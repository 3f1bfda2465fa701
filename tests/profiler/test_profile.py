"""`torchlab.profiler`: schedules, cycles, traces, module calls, execution traces."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import torchlab
from torchlab.profiler import (
    ExecutionTraceObserver,
    KinetoStepTracker,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

CPU = [ProfilerActivity.CPU]


def _letters(**numbers: int) -> str:
    of = schedule(**numbers)  # type: ignore[arg-type]
    return "".join({0: ".", 1: "w", 2: "r", 3: "S"}[of(i).value] for i in range(10))


def test_schedules() -> None:
    assert _letters(wait=1, warmup=1, active=2) == ".wrS.wrS.w"
    assert _letters(wait=1, warmup=1, active=2, repeat=2) == ".wrS.wrS.."
    assert _letters(wait=2, warmup=1, active=1, repeat=1, skip_first=3) == ".....wS..."
    assert (
        _letters(wait=2, warmup=1, active=1, repeat=2, skip_first=3, skip_first_wait=1)
        == "...wS..wS."
    )
    with pytest.raises(AssertionError, match="need > 0"):
        schedule(wait=0, warmup=1, active=0)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)
    with pytest.raises(AssertionError, match="non-negative"):
        schedule(wait=1, warmup=1, active=1)(-1)


def _run(steps: int, **settings: Any) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []

    def ready(p: profile) -> None:
        sines = [e.count for e in p.key_averages() if e.key == "aten::sin"]
        found.append((p.step_num, sum(sines)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with profile(activities=CPU, on_trace_ready=ready, **settings) as p:
            for _ in range(steps):
                torchlab.ones(2).sin()
                p.step()
    return found


def test_cycles() -> None:
    of = schedule(wait=1, warmup=1, active=2)
    assert _run(3) == [(3, 3)]
    assert _run(8, schedule=of) == [(4, 2), (8, 2)]
    assert _run(3, schedule=of) == [(3, 1)]
    again = schedule(wait=0, warmup=1, active=1, repeat=3)
    assert _run(8, schedule=again, acc_events=True) == [(2, 1), (4, 2), (6, 3)]
    before = KinetoStepTracker.current_step()
    _run(2)
    assert KinetoStepTracker.current_step() == before + 2


def test_steps_have_one_name() -> None:
    with profile(schedule=schedule(wait=0, warmup=1, active=3, repeat=1)) as p:
        for _ in range(4):
            p.step()
    (steps,) = [e for e in p.key_averages() if e.key.startswith("ProfilerStep")]
    assert steps.key == "ProfilerStep*" and steps.count == 3


def test_what_is_asked_too_early() -> None:
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        profile(activities=[]).start()
    p = profile(activities=CPU)
    for ask in (p.events, p.key_averages, p.stop, lambda: p.export_chrome_trace("x")):
        with pytest.raises(AssertionError, match="must be initialized"):
            ask()
    p.start()
    assert p.key_averages() == [] and len(p.get_trace_id() or "") == 32
    p.stop()
    assert ProfilerActivity.CPU in supported_activities()


def test_a_trace_with_modules(tmp_path: Path) -> None:
    model = torchlab.nn.Sequential(torchlab.nn.Linear(2, 3), torchlab.nn.Linear(3, 1))
    p = profile(activities=CPU, with_modules=True, profile_memory=True)
    p.preset_metadata_json("before", "[1]")
    with p:
        p.add_metadata("text", "value")
        with record_function("block"):
            model(torchlab.ones(1, 2))
    names = {e.name: e.cpu_parent.name for e in p.events() if e.cpu_parent is not None}
    assert names["nn.Module: Linear_1"] == "nn.Module: Sequential_0"
    assert names["aten::linear"].startswith("nn.Module: Linear_")
    path = tmp_path / "trace.json.gz"
    p.export_chrome_trace(str(path))
    with gzip.open(path, "rt") as f:
        trace = json.load(f)
    assert trace["text"] == "value" and trace["before"] == [1] and trace["with_modules"] == 1
    kinds = {(e["ph"], e.get("cat")) for e in trace["traceEvents"]}
    assert {("X", "cpu_op"), ("X", "python_function"), ("X", "user_annotation"), ("M", None),
            ("i", "cpu_instant_event"), ("X", "Trace")} <= kinds  # fmt: skip
    memory = [e["args"] for e in trace["traceEvents"] if e["name"] == "[memory]"]
    assert sum(m["Bytes"] for m in memory) == memory[-1]["Total Allocated"]


def test_files_for_tensorboard(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "a"
    handler = tensorboard_trace_handler(str(folder), "worker", use_gzip=True)
    with profile(activities=CPU, on_trace_ready=handler):
        torchlab.ones(1)
    (path,) = folder.iterdir()
    assert path.name.startswith("worker.") and path.name.endswith(".pt.trace.json.gz")


def test_collection_is_switched_off_and_on() -> None:
    with profile(activities=CPU) as p:
        torchlab.ones(1).sin()
        p.toggle_collection_dynamic(False, CPU)
        torchlab.ones(1).cos()
        p.toggle_collection_dynamic(True, CPU)
        torchlab.ones(1).tan()
    names = {e.name for e in p.events()}
    assert {"aten::sin", "aten::tan"} <= names and "aten::cos" not in names


def test_a_timeline_of_memory(tmp_path: Path) -> None:
    with profile(activities=CPU) as p:
        pass
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="profile_memory=True"):
        p.export_memory_timeline(str(tmp_path / "m.json"))
    with profile(activities=CPU, profile_memory=True, record_shapes=True, with_stack=True) as p:
        x = torchlab.ones(4)
        y = x.sin()
    with pytest.warns(FutureWarning):
        p.export_memory_timeline(str(tmp_path / "m.json"))
    times, sizes = json.loads((tmp_path / "m.json").read_text())
    assert len(times) == 2 and [s[-1] for s in sizes] == [16, 32] and y.numel() == 4


def test_an_execution_trace(tmp_path: Path) -> None:
    path = str(tmp_path / "et.json")
    observer = ExecutionTraceObserver().register_callback(path)
    assert observer.is_registered and not observer.is_running()
    x = torchlab.ones(3, requires_grad=True)
    observer.start()
    with record_function("block"):
        torchlab.cat([x * 2, x]).sum().backward()
    observer.stop()
    torchlab.ones(1)
    observer.unregister_callback()
    with open(path) as f:
        nodes = {n["name"]: n for n in json.load(f)["nodes"]}
    block = nodes["block"]["id"]
    assert nodes["aten::cat"]["ctrl_deps"] == block and "aten::ones" not in nodes
    assert nodes["CatBackward0"]["ctrl_deps"] == block
    assert nodes["aten::narrow"]["ctrl_deps"] == nodes["CatBackward0"]["id"]
    cat = nodes["aten::cat"]["inputs"]
    assert cat["types"] == ["GenericList[Tensor(float),Tensor(float)]", "Int"]
    assert cat["values"][0][0] == nodes["aten::mul"]["outputs"]["values"][0]
