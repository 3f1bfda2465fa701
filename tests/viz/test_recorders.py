"""Recorders on real tensors: the numbers are those of the tape, the allocator and the generator."""

from __future__ import annotations

import gc
import json
import threading
import time
import weakref
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

import torchlab as torch
from torchlab import viz
from torchlab._core import events
from torchlab._core.codegen.compile import compile_program
from torchlab._core.codegen.program import Builder
from torchlab.viz.recorders.autograd import AutogradRecorder
from torchlab.viz.recorders.memory import MemoryRecorder


@pytest.fixture(autouse=True)
def nobody_listens_afterwards() -> Iterator[None]:
    before = {name: topic.listeners for name, topic in events.TOPICS.items()}
    yield
    assert {name: topic.listeners for name, topic in events.TOPICS.items()} == before


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(*shape).requires_grad_()


def by_name(snapshot: dict, name: str) -> dict:
    (node,) = [n for n in snapshot["nodes"] if n["name"] == name or n["label"] == name]
    return node


def test_the_graph_of_a_loss() -> None:
    w, x = leaf(3), torch.ones(3)
    loss = (w * x).exp().sum()
    shown = viz.autograd_graph(loss, {"w": w})
    snapshot = shown.snapshot
    json.dumps(snapshot)
    assert [(n["id"], n["name"], n["label"]) for n in snapshot["nodes"]] == [
        ("n0", "SumBackward0", ""),
        ("n1", "ExpBackward0", ""),
        ("n2", "MulBackward0", ""),
        ("n3", "AccumulateGrad", "w"),
    ]
    assert [(e["src"], e["dst"]) for e in snapshot["edges"]] == [
        ("n0", "n1"),
        ("n1", "n2"),
        ("n2", "n3"),
    ]
    assert snapshot["roots"] == ["n0"]
    exp = by_name(snapshot, "ExpBackward0")
    assert exp["op"] == "exp"
    assert [
        (s["name"], s["shape"], s["bytes"], s["version"], s["freed"]) for s in exp["saved"]
    ] == [("result", [3], 12, 0, False)]
    ET.fromstring(shown.svg)
    assert shown.digraph().source.count("->") == 3


def test_a_tensor_without_history_is_refused() -> None:
    with pytest.raises(ValueError, match="no output requires a gradient"):
        viz.autograd_graph(torch.ones(2))


def test_recording_backward() -> None:
    w = leaf(4)
    with AutogradRecorder({"w": w}) as recorder:
        loss = (w * w).sum()
        before = recorder.snapshot()
        loss.backward()
    after = recorder.snapshot()
    mul = by_name(before, "MulBackward0")
    assert mul["state"] == "waiting" and mul["grad_norm"] is None
    assert not any(s["freed"] for s in mul["saved"])
    assert mul["source"]["code"] == "loss = (w * w).sum()"
    assert mul["source"]["file"] == __file__
    mul = by_name(after, "MulBackward0")
    assert mul["state"] == "done" and mul["runs"] == 1
    assert mul["grad_norm"] == pytest.approx(2.0)  # four ones
    assert all(s["freed"] for s in mul["saved"])
    assert by_name(after, "w")["grad_norm"] == pytest.approx(4.0)  # (2, 2, 2, 2)
    assert [n["id"] for n in before["nodes"]] == [n["id"] for n in after["nodes"]]
    assert after["roots"] == [by_name(after, "SumBackward0")["id"]]


def test_ids_stay_and_a_new_forward_starts_a_new_graph() -> None:
    w = leaf(2)
    with AutogradRecorder() as recorder:
        for _ in range(3):
            (w * 2).sum().backward()
        assert len(recorder.snapshot()["nodes"]) == 3
        (w + 1).exp()
        assert [n["name"] for n in recorder.snapshot()["nodes"]] == [
            "AddBackward0",
            "AccumulateGrad",
            "ExpBackward0",
        ]


def test_a_backward_whose_forward_was_not_seen() -> None:
    loss = leaf(2).exp().sum()
    with AutogradRecorder() as recorder:
        loss.backward()
    assert {n["name"]: n["state"] for n in recorder.snapshot()["nodes"]} == {
        "SumBackward0": "done",
        "ExpBackward0": "done",
        "AccumulateGrad": "done",  # though nobody else has its leaf any more
    }


def test_a_write_in_place_shows() -> None:
    y = leaf(3).exp()
    z = y.sum()
    with torch.no_grad():
        y.mul_(2)
    shown = viz.autograd_graph(z)
    saved = by_name(shown.snapshot, "ExpBackward0")["saved"][0]
    assert (saved["version"], saved["current_version"]) == (0, 1)
    assert "changed in place" in shown.details["n1"]["warning"]


def test_nan_gradients_are_named() -> None:
    w = torch.zeros(2).requires_grad_()
    with AutogradRecorder({"w": w}) as recorder:
        (w.sqrt() * 0).sum().backward()
    snapshot = recorder.snapshot()
    json.dumps(snapshot, allow_nan=False)
    assert by_name(snapshot, "w")["grad_norm"] == "nan"


def test_recording_keeps_no_tensor_alive() -> None:
    with AutogradRecorder() as recorder:
        w = leaf(3)
        y = (w * 2).exp()
        tensor = weakref.ref(y)
        loss = y.sum()
        loss.backward()
        del y, loss, w
        gc.collect()
        assert tensor() is None
        assert len(recorder.snapshot()["nodes"]) == 4


def test_the_live_widget_follows_and_ends_with_the_last_state() -> None:
    pytest.importorskip("anywidget")
    from torchlab.viz.widgets.live import AutogradWidget

    w = leaf(2)
    recorder = AutogradRecorder({"w": w})
    recorder.widget = AutogradWidget()
    with recorder:
        for _ in range(200):
            (w * 3).sum().backward()
    assert recorder.widget.published < 200
    rows = dict(recorder.widget.state["details"]["n1"]["rows"])
    assert rows["gradient norm"] == f"{200 * 3 * 2**0.5:.3g}"
    recorder.widget.close()


def test_stride_explorer_reads_a_real_tensor() -> None:
    x = torch.arange(12)
    y = x.view(3, 4).t()
    shown = viz.stride_explorer(
        y, view=(12,), chain=[("arange(12)", x), (".view(3, 4)", x.view(3, 4))]
    )
    snapshot = shown.snapshot
    assert snapshot["name"] == "y" and snapshot["itemsize"] == 8
    assert [(s["op"], s["shape"], s["stride"], s["offset"]) for s in snapshot["chain"]] == [
        ("arange(12)", [12], [1], 0),
        (".view(3, 4)", [3, 4], [4, 1], 0),
        ("y", [4, 3], [1, 4], 0),
    ]
    assert snapshot["storage"]["values"] == [str(i) for i in range(12)]
    assert "y.view(12) fails" in shown.svg
    with pytest.raises(RuntimeError):
        y.view(12)


def test_stride_explorer_finds_the_base() -> None:
    x = torch.arange(6).view(2, 3)
    part = x.narrow(1, 1, 2)
    snapshot = viz.stride_explorer(part).snapshot
    assert [s["offset"] for s in snapshot["chain"]] == [0, 1]
    assert snapshot["chain"][-1] == {"op": "part", "shape": [2, 2], "stride": [3, 1], "offset": 1}


def test_stride_explorer_refuses_a_foreign_chain() -> None:
    with pytest.raises(ValueError, match="another storage"):
        viz.stride_explorer(torch.ones(2), chain=[torch.ones(2)])


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.bfloat16, torch.complex64, torch.uint8, torch.float16]
)
def test_stride_explorer_of_every_kind_of_type(dtype: torch.dtype) -> None:
    shown = viz.stride_explorer(torch.ones(3).to(dtype))
    assert len(shown.snapshot["storage"]["values"]) == 3
    ET.fromstring(shown.svg)


def test_memory_of_the_simulated_device() -> None:
    held = torch.ones(300, device="sim")
    shown = viz.memory("sim", {"held": held})
    blocks = [b for s in shown.snapshot["segments"] for b in s["blocks"]]
    (mine,) = [b for b in blocks if b["owner"] == "held"]
    assert (mine["requested"], mine["size"], mine["state"]) == (1200, 1536, "allocated")
    allocated = sum(b["size"] for b in blocks if b["state"] == "allocated")
    assert allocated == shown.snapshot["allocated"] == torch.sim.memory_allocated()
    for segment in shown.snapshot["segments"]:
        assert sum(b["size"] for b in segment["blocks"]) == segment["size"]


def test_recording_memory() -> None:
    with MemoryRecorder("sim") as recorder:
        start = torch.sim.memory_allocated()
        first = torch.ones(1000, device="sim")
        second = torch.ones(500, device="sim")
        del first
    assert second.numel() == 500
    history = [e for e in recorder.snapshot()["events"] if e["kind"] in ("alloc", "free")]
    assert [(e["kind"], e["size"], e["allocated"] - start) for e in history] == [
        ("alloc", 4096, 4096),
        ("alloc", 2048, 6144),
        ("free", 4096, 2048),
    ]
    assert all(e["label"].startswith("test_recorders.py:") for e in history)


def test_out_of_memory_is_on_the_timeline() -> None:
    total = torch.sim.mem_get_info()[1]
    with MemoryRecorder("sim") as recorder, pytest.raises(torch.sim.OutOfMemoryError):
        torch.empty(total, device="sim")
    assert recorder.snapshot()["events"][-1]["kind"] == "oom"
    assert "out of memory" in recorder.picture.svg


def test_memory_needs_a_caching_allocator() -> None:
    with pytest.raises(ValueError, match="no caching allocator"):
        viz.memory("cpu")


def test_allocating_while_the_picture_is_drawn_does_not_lock_up() -> None:
    """The drawing thread needs the allocator's lock, the allocating thread delivers events under
    it."""
    pytest.importorskip("anywidget")
    from torchlab.viz.widgets.live import MemoryWidget

    recorder = MemoryRecorder("sim", interval=0.001)
    recorder.widget = MemoryWidget(interval=0.001)
    stop = time.monotonic() + 1.0

    def work() -> None:
        while time.monotonic() < stop:
            torch.ones(64, device="sim")

    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    with recorder:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
    assert recorder.widget.published > 2
    assert recorder.widget.picture.snapshot["allocated"] == torch.sim.memory_allocated()
    recorder.widget.close()


def test_fusion_of_a_real_program() -> None:
    b = Builder("f")
    x = b.input("x", (64, 32), "float32")
    h = b.pointwise("h", "exp(self) * 2", self=x, origin=(f"{__file__}:1",))
    s = b.reduce("s", "sum", h, (1,))
    e = b.extern("e", sorted, (s,), (64,), "float32")
    b.pointwise("q", "self + 1", self=e)
    compiled = compile_program(b.finish(["q"]), language="python")
    shown = viz.fusion(compiled)
    snapshot = shown.snapshot
    json.dumps(snapshot)
    assert [g["nodes"] for g in snapshot["groups"]] == [["h", "s"], ["q"]]
    assert {(r["first"], r["second"]) for r in snapshot["rejections"]} == {("s", "e"), ("e", "q")}
    assert all("library call" in r["reason"] for r in snapshot["rejections"])
    nodes = {n["id"]: n for n in snapshot["nodes"]}
    assert (
        nodes["h"]["op"] == "exp(x) * 2"
        and nodes["s"]["op"] == "sum"
        and nodes["e"]["op"] == "sorted"
    )
    assert nodes["h"]["origin"]["line"] == 1
    for name, group in (("h", 0), ("q", 1)):
        source = snapshot["groups"][group]["source"].splitlines()
        assert nodes[name]["lines"] and all(1 <= k <= len(source) for k in nodes[name]["lines"])
    assert [n["kind"] for n in snapshot["nodes"]] == ["input", "op", "op", "op", "op", "output"]
    ET.fromstring(shown.svg)


def test_fusion_of_something_else() -> None:
    with pytest.raises(TypeError, match="holds no generated program"):
        viz.fusion(print)


def test_names_of_the_package() -> None:
    for name in viz.__all__:
        assert getattr(viz, name) is not None
        assert name in dir(viz)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        viz.nothing  # noqa: B018
