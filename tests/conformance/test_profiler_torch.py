"""The profiler against real PyTorch: tables of made-up events to the letter, schedules, cycles,
the keys of a trace, and what operators are said to cost."""

from __future__ import annotations

import importlib
import io
import json
import random
import warnings
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest

import torchlab

torch = pytest.importorskip("torch")

SETTINGS: list[dict[str, bool]] = [
    {},
    {"shapes": True},
    {"memory": True},
    {"flops": True},
    {"stacks": True},
    {"device": True, "memory": True, "shapes": True},
    {"overloads": True, "shapes": True},
]
SORTS = [None, "self_cpu_time_total", "cpu_time_total", "count", "cpu_memory_usage"]
TABLES: list[dict[str, Any]] = [
    {},
    {"row_limit": 5},
    {"row_limit": -1, "time_unit": "ms"},
    {"top_level_events_only": True, "header": "HEAD"},
    {"max_name_column_width": 20, "max_shapes_column_width": 25, "max_src_column_width": 30},
]


def made_up(lib: Any, seed: int, **has: bool) -> Any:
    """The same tree of events in both libraries."""
    util = importlib.import_module(f"{lib.__name__}.autograd.profiler_util")
    device_type = importlib.import_module(f"{lib.__name__}.profiler").DeviceType
    rng = random.Random(seed)
    device = "cuda" if has.get("device") else None
    found: list[Any] = []

    def add(first: float, last: float, depth: int) -> None:
        while first < last - 8 and len(found) < 20:
            start = first + rng.random() * 3
            end = min(last - 1, start + rng.random() * (last - first) / 2 + 2)
            if end <= start:
                return
            name = "aten::" + rng.choice(["mm", "addmm", "add", "long" * rng.choice([1, 20])])
            many = rng.choice([1, 50])
            e = util.FunctionEvent(
                id=len(found) + 1, name=name, thread=1, start_us=start, end_us=end,
                trace_name=name, use_device=device, sequence_nr=-1,
                overload_name=rng.choice(["", "out"]) if has.get("overloads") else "",
                input_shapes=[[rng.randint(1, 3), 4], [], [2] * many] if has.get("shapes") else [],
                stack=[f"a.py({rng.randint(0, 1)}): f", "b" * 90] if has.get("stacks") else [],
                cpu_memory_usage=rng.choice([0, 100, -50, 5000, 2**31]) * has.get("memory", False),
                device_memory_usage=rng.choice([0, 1000]) * has.get("memory", False),
                flops=rng.choice([0, 1000, 2_000_000]) * has.get("flops", False),
            )  # fmt: skip
            found.append(e)
            if device and rng.random() < 0.5:
                e.append_kernel("k", 0, rng.randint(1, 9))
            if depth < 3 and rng.random() < 0.7:
                add(start, end, depth + 1)
            first = end + 0.5

    add(0, 300, 0)
    for k in range(3 if device else 0):
        found.append(
            util.FunctionEvent(
                id=len(found) + 1,
                name=f"kernel{k}",
                thread=7,
                start_us=5 * k,
                end_us=5 * k + 3.5,
                use_device=device,
                device_type=device_type.CUDA,
                input_shapes=[],
                stack=[],
                flops=0,
                trace_name="kernel",
                overload_name="",
            )  # fmt: skip
        )
    events = util.EventList(
        found,
        use_device=device,
        profile_memory=has.get("memory", False),
        with_flops=has.get("flops", False),
    )
    events._build_tree()
    return events


@pytest.mark.parametrize("has", SETTINGS, ids=lambda has: " ".join(has) or "plain")
def test_tables_and_traces_of_events(has: dict[str, bool], tmp_path: Path) -> None:
    for seed in range(2):
        ours, theirs = made_up(torchlab, seed, **has), made_up(torch, seed, **has)
        assert [repr(e) for e in ours] == [repr(e) for e in theirs]
        groups = [
            {}, {"group_by_input_shapes": True}, {"group_by_stack_n": 1},
            {"group_by_overload_name": True},
        ]  # fmt: skip
        pairs = [
            (ours, theirs),
            *((ours.key_averages(**g), theirs.key_averages(**g)) for g in groups),
        ]
        for a, b in pairs:
            for sort in SORTS:
                for options in TABLES:
                    assert a.table(sort_by=sort, **options) == b.table(sort_by=sort, **options)
        assert repr(ours.total_average()) == repr(theirs.total_average())
        files = []
        for events in (ours, theirs):
            events.export_chrome_trace(str(tmp_path / "trace.json"))
            events.export_stacks(str(tmp_path / "stacks.txt"), "self_cpu_time_total")
            files.append(
                (
                    json.loads((tmp_path / "trace.json").read_text()),
                    (tmp_path / "stacks.txt").read_text(),
                )
            )
        assert files[0] == files[1]


@pytest.mark.parametrize(
    "numbers",
    [
        {"wait": 1, "warmup": 1, "active": 2},
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 2},
        {"wait": 2, "warmup": 1, "active": 1, "repeat": 2, "skip_first": 3},
        {"wait": 2, "warmup": 1, "active": 1, "skip_first": 3, "skip_first_wait": 1},
        {"wait": 0, "warmup": 2, "active": 3, "repeat": 1},
    ],
)
def test_schedules_and_cycles(numbers: dict[str, int]) -> None:
    seen = []
    for lib in (torchlab, torch):
        p = importlib.import_module(f"{lib.__name__}.profiler")
        of = p.schedule(**numbers)
        log: list[Any] = [[of(i).name for i in range(20)]]

        def ready(prof: Any, log: list[Any] = log) -> None:
            counts = {e.key: e.count for e in prof.key_averages()}
            log.append((prof.step_num, counts.get("aten::sin"), counts.get("ProfilerStep*")))

        with redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cpu = [p.ProfilerActivity.CPU]
            with p.profile(activities=cpu, schedule=of, on_trace_ready=ready) as prof:
                for _ in range(11):
                    lib.ones(2).sin()
                    prof.step()
        seen.append(log)
    assert seen[0] == seen[1]


def test_a_trace_has_pytorchs_keys(tmp_path: Path) -> None:
    keys, flops = [], []
    for lib in (torchlab, torch):
        p = importlib.import_module(f"{lib.__name__}.profiler")
        x = lib.ones(3, 4, requires_grad=True)
        with p.profile(
            activities=[p.ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
            with_flops=True,
        ) as prof:  # fmt: skip
            with p.record_function("block"):
                (x @ lib.ones(4, 5)).sum().backward()
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(str(path))
        trace = json.loads(path.read_text())
        kinds: dict[Any, set[str]] = {}
        for e in trace["traceEvents"]:
            if e.get("cat") in ("cpu_op", "user_annotation", "fwdbwd", "Trace"):
                kinds.setdefault((e["ph"], e["cat"]), set(e) | {f"args.{k}" for k in e["args"]}
                                 if "args" in e else set(e))  # fmt: skip
        keys.append((set(trace), kinds))
        flops.append({e.key: e.flops for e in prof.key_averages() if e.key == "aten::mm"})
    assert keys[0] == keys[1] and flops[0] == flops[1]


def _ranges_of_optimizers(lib: Any) -> list[Any]:
    """The optimizers' ranges, each with the names around it and how many operators are in it."""
    profiler = importlib.import_module(f"{lib.__name__}.profiler")

    class Base(lib.optim.Optimizer):  # one that PyTorch has not made an object of, and so wrapped
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        def step(self) -> None:
            p.detach().mul_(0.9).sub_(lib.zeros(3))

    mine = type("Mine", (Base,), {"step": lambda self: super(mine, self).step()})
    p = lib.nn.Parameter(lib.ones(3))
    p.grad = lib.ones(3)
    quiet = mine([p], lr=0.1)
    quiet.step()
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
        for kind in (lib.optim.Adam, mine, lib.optim.LBFGS):
            o = kind([p], lr=0.1)
            o.register_step_post_hook(lambda *_: lib.zeros(1) and None)
            o.zero_grad(set_to_none=False)
            if kind is lib.optim.LBFGS:
                o.step(lambda o=o: (o.zero_grad(False), p.sum())[1])
            else:
                o.step()
    found = []
    for e in prof.events():
        if "#" in e.name:
            above, parent = [], e.cpu_parent
            while parent is not None:
                above.append(parent.name)
                parent = parent.cpu_parent
            inside = [c.name for c in e.cpu_children]
            found.append((e.name, above, "aten::zeros" in inside, len(inside) > 0))
    return found


def test_steps_of_optimizers_are_ranges() -> None:
    a, b = (_ranges_of_optimizers(lib) for lib in (torchlab, torch))
    steps = [[x for x in found if "step" in x[0]] for found in (a, b)]
    assert steps[0] == steps[1] and len(a) == len(b) >= 7
    assert [x[:2] for x in a] == [x[:2] for x in b]


def _ranges_of_loaders(lib: Any) -> list[str]:
    profiler = importlib.import_module(f"{lib.__name__}.profiler")
    data = importlib.import_module(f"{lib.__name__}.utils.data")
    found = []
    for workers in (0, 1):
        loader = data.DataLoader(data.TensorDataset(lib.arange(4)), 2, num_workers=workers)
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
            assert [x.tolist() for (x,) in loader] == [[0, 1], [2, 3]]
        found += [e.name for e in prof.events() if "Loader" in e.name]
    return found


def test_batches_of_loaders_are_ranges() -> None:
    found = _ranges_of_loaders(torchlab)
    assert found == _ranges_of_loaders(torch) and len(found) == 6
