"""Recorded backwards: steps, bytes, where NaN began, sums, writes, and why there is no grad."""

from __future__ import annotations

import gc
import json
import weakref
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest

import torchlab as torch
from tests.viz import samples
from torchlab import nn, viz
from torchlab._core import events
from torchlab.nn import functional as F
from torchlab.viz.layout import nested
from torchlab.viz.pictures import picture
from torchlab.viz.playback import Playback
from torchlab.viz.recorders.backward import summed_dims
from torchlab.viz.views.folding import fold, members, opened, order_of, shown


@pytest.fixture(autouse=True)
def nobody_listens_afterwards() -> Iterator[None]:
    before = {name: topic.listeners for name, topic in events.TOPICS.items()}
    yield
    assert {name: topic.listeners for name, topic in events.TOPICS.items()} == before


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


def record(net: nn.Module, times: int = 1) -> Any:
    x, y = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    with viz.record_backward(net) as recording:
        for _ in range(times):
            F.cross_entropy(net(x), y).backward()
    return recording


def named(recording: Any, name: str) -> dict[str, Any]:
    (node,) = [n for n in recording.snapshot()["nodes"] if name in (n["name"], n["label"])]
    return node


def test_every_step_is_there_with_its_numbers() -> None:
    net = model()
    recording = record(net)
    names = [recording.playback.name(s["node"]) for s in recording.steps]
    assert names == [
        "NllLossBackward0", "LogSoftmaxBackward0",
        "AddmmBackward0", "2.bias", "TBackward0", "2.weight",
        "ReluBackward0",
        "AddmmBackward0", "0.bias", "TBackward0", "0.weight",
    ]  # fmt: skip
    by_name = {recording.playback.name(s["node"]): s for s in recording.steps}
    for name, parameter in net.named_parameters():
        step = by_name[name]
        assert step["kind"] == "leaf" and step["leaf"]["first"]
        assert step["leaf"]["norm"] == pytest.approx(parameter.grad.norm().item())
    relu = by_name["ReluBackward0"]
    assert relu["received"][0]["shape"] == [5, 6]
    assert [f["name"] for f in relu["freed"]] == ["result"]
    assert relu["freed"][0]["bytes"] == 5 * 6 * 4
    weights = sum(p.numel() * 4 for p in net.parameters())
    last = recording.steps[-1]
    assert (last["saved_bytes"], last["flight_bytes"]) == (0, 0)
    assert last["leaf_bytes"] == weights
    json.dumps(recording.snapshot(), allow_nan=False)


def test_modules_parameters_and_lines_are_known() -> None:
    recording = record(model())
    nodes = recording.snapshot()["nodes"]
    assert {n["label"] for n in nodes if n["kind"] == "leaf"} == {
        "0.weight", "0.bias", "2.weight", "2.bias",
    }  # fmt: skip
    relu = named(recording, "ReluBackward0")
    assert (relu["module"], relu["group"]) == ("1", ["1: ReLU"])
    assert relu["source"]["code"] == "F.cross_entropy(net(x), y).backward()"
    assert relu["source"]["file"] == __file__
    assert named(recording, "2.bias")["group"] == ["2: Linear"]
    assert relu["fed"][0]["shape"] == [5, 6] and relu["fed"][0]["negative"] > 0


def test_modules_are_named_without_the_model() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) + self.inner(x)

    net = Outer()
    with viz.record_backward() as recording:
        net(torch.randn(2, 4)).sum().backward()
    nodes = recording.snapshot()["nodes"]
    groups = {tuple(n["group"]) for n in nodes if n["name"] == "ReluBackward0"}
    assert groups == {
        ("Outer", "inner: Sequential", "1: ReLU"),
        ("Outer", "inner: Sequential (2)", "1: ReLU"),
    }
    assert "inner.0.weight" in {n["label"] for n in nodes}


def test_leaves_are_called_by_their_variables() -> None:
    names = {"torch": torch, "recording": viz.record_backward()}
    code = "weight = torch.ones(3).requires_grad_()\nwith recording: (weight * 2).sum().backward()"
    exec(code, names)  # as a notebook's cell is
    recording = names["recording"]
    assert recording.state.leaves == {"weight": pytest.approx(2 * 3**0.5)}


def test_stepping_back_gives_the_same_states() -> None:
    recording = record(model())
    assert recording.position == len(recording.steps) == 11
    forwards = [recording.seek(0)] + [recording.step() for _ in range(11)]
    assert recording.step() == forwards[-1]  # nothing after the end
    backwards = [recording.back() for _ in range(11)]
    assert backwards[::-1] == forwards[:-1]
    assert recording.back() == forwards[0]  # nothing before the start
    assert recording.seek(-1) == forwards[11] and recording.seek(-12) == forwards[0]
    with pytest.raises(IndexError, match="position 12 of a recording of 11 steps"):
        recording.seek(12)
    assert recording.position == 0


def test_states_of_nodes_and_leaves() -> None:
    recording = record(model())
    start, third = recording.seek(0), recording.seek(3)
    assert start.step is None and {s.status for s in start.nodes.values()} == {"waiting"}
    assert set(start.leaves.values()) == {None} and start.leaf_bytes == 0
    states = {recording.playback.name(i): s for i, s in third.nodes.items()}
    assert states["LogSoftmaxBackward0"].status == "done"
    assert states["LogSoftmaxBackward0"].freed
    assert states["2.bias"].status == "receiving" and states["0.bias"].status == "waiting"
    assert third.nodes[third.step["node"]].status == "running"
    assert "summed over dim 0" in third.text and "2.bias" in third.text
    assert third.live_bytes == third.saved_bytes + third.flight_bytes + third.leaf_bytes
    assert recording.seek(4).leaves["2.bias"] == pytest.approx(recording.steps[3]["leaf"]["norm"])


def test_a_second_backward_adds() -> None:
    recording = record(model(), times=2)
    assert len(recording.steps) == 22
    first, second = [
        s["leaf"] for s in recording.steps if recording.playback.name(s["node"]) == "0.weight"
    ]
    assert first["first"] and not second["first"]
    assert second["incoming"] == pytest.approx(first["norm"])
    assert second["norm"] == pytest.approx(2 * first["norm"], rel=1e-5)
    groups = {n["group"][0] for n in recording.snapshot()["nodes"] if n["group"]}
    assert "backward 2" in groups and "0: Linear" in groups


def test_what_is_retained_is_not_freed() -> None:
    w = torch.ones(3).requires_grad_()
    with viz.record_backward() as recording:
        loss = w.exp().sum()
        loss.backward(retain_graph=True)
    assert all(not s["freed"] for s in recording.steps)
    assert recording.state.saved_bytes == 12


def test_a_buffer_that_somebody_holds_is_not_returned() -> None:
    w = torch.ones(3).requires_grad_()
    with viz.record_backward() as recording:
        held = w.exp()
        lost = held.exp()
        loss = lost.sum()
        del lost
        loss.backward()
    freed = {recording.playback.name(s["node"]): s["freed"] for s in recording.steps}
    assert held is not None
    assert [f["returned"] for s in recording.steps for f in s["freed"]] == [True, False]
    assert "ExpBackward0" in freed


def test_recording_keeps_no_tensor_alive() -> None:
    with viz.record_backward() as recording:
        w = torch.ones(3).requires_grad_()
        y = (w * 2).exp()
        seen = [weakref.ref(t) for t in (w, y)]
        loss = y.sum()
        loss.backward()
        del w, y, loss
        gc.collect()
        assert [r() for r in seen] == [None, None]
    assert len(recording.snapshot()["nodes"]) == 4


def test_grad_captures_instead_of_accumulating() -> None:
    w = torch.ones(3).requires_grad_()
    with viz.record_backward({"w": w}) as recording:
        torch.autograd.grad((w * 3).sum(), w)
    last = recording.steps[-1]
    assert last["kind"] == "captured" and recording.playback.name(last["node"]) == "w"
    assert last["received"][0]["norm"] == pytest.approx(3 * 3**0.5)
    assert viz.why_none(w, recording=recording).kind == "no_backward"


# ---- NaN ----------------------------------------------------------------------------------------


def test_the_first_nan_of_the_forward() -> None:
    w = torch.tensor([1.0, 0.5, -2.0, 0.0]).requires_grad_()
    with viz.record_backward() as recording:
        y = w * 2
        z = y.log()
        loss = (z + 1).exp().mean()
        loss.backward()
    (origin,) = recording.origins
    assert (origin["what"], origin["where"], origin["op"]) == ("nan", "forward", "log")
    assert origin["source"]["code"] == "z = y.log()"
    (fed,) = origin["fed"]
    assert (fed["shape"], fed["low"], fed["high"]) == ([4], -4.0, 2.0)
    assert (fed["zero"], fed["negative"], fed["nan"]) == (1, 1, 0)
    assert (origin["gave"]["nan"], origin["gave"]["inf"]) == (1, 1)
    assert origin["why"] == "the logarithm of 1 negative value and 1 zero value"
    assert [p["op"] for p in origin["path"]] == ["log", "add", "exp", "mean"]
    assert origin["reaches"]
    assert all(p["node"] for p in origin["path"])
    assert "Its way: log → add → exp → mean." in recording.explain()


def test_a_nan_that_is_masked_does_not_reach_the_output() -> None:
    w = torch.tensor([1.0, -2.0]).requires_grad_()
    with viz.record_backward() as recording:
        z = torch.where(w > 0, w.log(), w)
        z.sum().backward()
    origin = recording.origins[0]
    assert (origin["op"], origin["reaches"]) == ("log", False)
    assert [p["op"] for p in origin["path"]] == ["log"]


def test_nan_in_the_data() -> None:
    x, w = torch.tensor([1.0, float("nan")]), torch.ones(2).requires_grad_()
    with viz.record_backward() as recording:
        (x * w).sum().backward()
    origin = recording.origins[0]
    assert (origin["where"], origin["op"]) == ("data", "mul")
    assert origin["why"] == "input 0 came with it"
    assert "NaN is in the data: first seen by mul" in recording.explain()


def test_an_overflow() -> None:
    w = torch.tensor([100.0]).requires_grad_()
    with viz.record_backward() as recording:
        w.exp().sum().backward()
    origin = recording.origins[0]
    assert (origin["what"], origin["op"]) == ("inf", "exp")
    assert origin["why"] == "the exponential of 100 is too large for float32"


def test_a_gradient_rule_that_makes_infinity() -> None:
    w = torch.tensor([0.0, 4.0]).requires_grad_()
    with viz.record_backward({"w": w}) as recording:
        (w.sqrt() + 1).sum().backward()
    (origin,) = recording.origins
    assert (origin["what"], origin["where"]) == ("inf", "backward")
    assert origin["op"] == "SqrtBackward0"
    assert origin["why"] == "the derivative of sqrt is infinite at 0, and it was fed 1 zero value"
    assert [p["op"] for p in origin["path"]] == ["SqrtBackward0", "w"] and origin["reaches"]


def test_nan_inside_a_module_is_placed_there() -> None:
    class Bad(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.log()

    net = nn.Sequential(nn.Linear(2, 2), Bad())
    with torch.no_grad():
        net[0].bias.fill_(-10)
    with viz.record_backward(net) as recording:
        net(torch.ones(1, 2)).sum().backward()
    assert recording.origins[0]["module"] == "1"
    assert recording.origins[0]["source"]["code"] == "return x.log()"


def test_nan_from_a_hook() -> None:
    w = torch.ones(3).requires_grad_()
    with viz.record_backward({"w": w}) as recording:
        y = w * 2
        y.register_hook(lambda g: g * float("nan"))
        y.sum().backward()
    (origin,) = recording.origins
    assert (origin["where"], origin["op"]) == ("hook", "MulBackward0")
    assert "a hook made it" in origin["why"]
    assert [p["op"] for p in origin["path"]] == ["MulBackward0", "w"]


@pytest.mark.parametrize("kind", ["sparse", "bfloat16", "complex", "empty", "set", "sim"])
def test_unusual_tensors_are_recorded(kind: str) -> None:
    w = torch.ones(3, 2, dtype=torch.bfloat16 if kind == "bfloat16" else None).requires_grad_()
    with viz.record_backward({"w": w}) as recording:
        if kind == "sparse":
            layer = nn.Embedding(5, 3, sparse=True)
            layer(torch.tensor([1, 2, 2])).sum().backward()
        elif kind == "complex":
            c = torch.ones(3, dtype=torch.complex64).requires_grad_()
            (c * c.conj()).real.sum().backward()
        elif kind == "empty":
            (w[:0] * 2).sum().backward()
        elif kind == "set":
            z = torch.zeros(4, 2)
            z[1:] = w
            z.exp().sum().backward()
        elif kind == "sim":
            s = torch.ones(2, 2, device="sim").requires_grad_()
            (s * 2).sum().backward()
        else:
            (w * 2).sum().backward()
    assert recording.steps and recording.steps[-1]["leaf"]
    json.dumps(recording.snapshot(), allow_nan=False)
    ET.fromstring(recording.picture.svg)


def test_writes_are_told_to_listeners_once() -> None:
    seen: list[str] = []
    x = torch.ones(3)
    with events.op_call.subscribe(lambda op, args, result: seen.append(op.name)):
        x.zero_()
        x.fill_(2.0)
        x[0] = 5.0
    assert x.tolist() == [5.0, 2.0, 2.0]
    assert seen[0] == "zero" and seen[1].endswith("fill")


# ---- broadcasts, writes, errors -----------------------------------------------------------------


def test_broadcasts_say_where_they_are_summed() -> None:
    b, c = torch.zeros(3).requires_grad_(), torch.ones(4, 1).requires_grad_()
    with viz.record_backward({"b": b, "c": c}) as recording:
        y = c * b
        y.sum().backward()
    found = {recording.playback.name(x["into"]): x for x in recording.broadcasts}
    assert (found["b"]["shape"], found["b"]["to"]) == ([3], [4, 3])
    assert (found["b"]["dims"], found["b"]["each"]) == ([0], 4)
    assert (found["c"]["dims"], found["c"]["each"]) == ([1], 3)
    assert found["b"]["source"]["code"] == "y = c * b"
    assert "b [3] was broadcast to [4, 3] by MulBackward0" in recording.explain()


@pytest.mark.parametrize(
    ("small", "big", "dims"),
    [
        ([3], [4, 3], [0]),
        ([4, 1], [4, 3], [1]),
        ([], [2, 3], [0, 1]),
        ([1, 3], [1, 3], []),
        ([2, 1, 3], [5, 2, 7, 3], [0, 2]),
        ([4, 3], [3], []),
    ],
)
def test_summed_dims(small: list[int], big: list[int], dims: list[int]) -> None:
    assert summed_dims(small, big) == dims


def test_a_write_in_place_is_data() -> None:
    w = torch.ones(3).requires_grad_()
    with viz.record_backward() as recording:
        y = w.exp()
        loss = y.sum()
        with torch.no_grad():
            y.mul_(2)
        (before,) = viz.changed_in_place(loss)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    (write,) = recording.writes
    assert write["name"] == before["name"] == "result"
    assert (write["version"], write["current_version"]) == (0, 1)
    assert write["written"]["code"] == before["written"]["code"] == "y.mul_(2)"
    assert write["written"]["file"] == __file__
    assert write["source"]["code"] == "y = w.exp()"
    error = recording.snapshot()["error"]
    assert recording.playback.name(error["node"]) == "ExpBackward0"
    assert "modified by an inplace operation" in error["text"]
    assert viz.changed_in_place((w * 2).sum()) == []


def test_an_error_around_backward_is_not_its_own() -> None:
    w = torch.ones(3).requires_grad_()
    with viz.record_backward() as recording:
        try:
            raise KeyError("other")
        except KeyError:
            (w * 2).sum().backward()
    assert recording.snapshot()["error"] is None


# ---- why there is no gradient -------------------------------------------------------------------


def test_why_none_detached() -> None:
    w, v = torch.ones(3).requires_grad_(), torch.ones(3).requires_grad_()
    with viz.record_backward() as recording:
        h = w * 2
        d = h.detach()
        loss = (d * v).sum()
        loss.backward()
    for tensor in (w, h, d):
        reason = viz.why_none(tensor, loss, recording)
        assert reason.kind == "detached" and reason.source["code"] == "d = h.detach()"
        assert "was detached at test_backward.py:" in str(reason)
    assert [p["op"] for p in viz.why_none(w, loss, recording).path] == ["mul", "detach"]
    assert viz.why_none(v, loss, recording).kind == "has_grad"


def test_why_none_no_grad_integer_and_no_derivative() -> None:
    w, v = torch.ones(3).requires_grad_(), torch.ones(3).requires_grad_()
    u, t = torch.ones(3).requires_grad_(), torch.ones(3).requires_grad_()
    with viz.record_backward() as recording:
        with torch.no_grad():
            h = w * 2
        loss = (h * v).sum() + u.long().sum() + (t > 0).float().sum()
        loss.backward()
    assert viz.why_none(w, loss, recording).kind == "no_grad"
    assert viz.why_none(w, loss, recording).source["code"] == "h = w * 2"
    assert viz.why_none(h, loss, recording).kind == "no_grad"
    assert viz.why_none(u, loss, recording).kind == "integer"
    assert "`_to_copy`" in str(viz.why_none(u, loss, recording))
    assert viz.why_none(t, loss, recording).kind in ("integer", "not_differentiable")
    assert viz.why_none(torch.ones(2, dtype=torch.int64)).kind == "integer"


def test_why_none_not_leaf_not_on_path_cleared() -> None:
    w, v = torch.ones(3).requires_grad_(), torch.ones(3).requires_grad_()
    with viz.record_backward() as recording:
        y = w * 2
        other = v * 3
        loss = y.sum()
        loss.backward()
    assert other is not None
    assert viz.why_none(y, loss, recording).kind == "not_leaf"
    assert viz.why_none(y, loss, recording).source["code"] == "y = w * 2"
    assert viz.why_none(v, loss, recording).kind == "not_on_path"
    assert "item()" in str(viz.why_none(v, loss, recording))
    w.grad = None
    assert viz.why_none(w, loss, recording).kind == "cleared"
    assert viz.why_none(torch.ones(2)).kind == "not_required"


def test_why_none_from_the_tape_alone() -> None:
    w, v = torch.ones(3).requires_grad_(), torch.ones(3).requires_grad_()
    loss = (w.detach() * v).sum()
    loss.backward()
    gc.collect()
    reason = viz.why_none(w, loss, viz.BackwardRecorder())
    assert reason.kind == "not_on_path"
    assert viz.why_none(w * 2, recording=viz.BackwardRecorder()).kind == "not_leaf"


def test_why_none_of_a_rule_that_gives_none() -> None:
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> Any:
            return g, None

    x, y = torch.ones(2).requires_grad_(), torch.ones(2).requires_grad_()
    with viz.record_backward() as recording:
        loss = Half.apply(x, y).sum()
        loss.backward()
    reason = viz.why_none(y, loss, recording)
    assert reason.kind == "no_gradient" and "HalfBackward" in str(reason)


# ---- folding, layout, drawing -------------------------------------------------------------------


def deep(n: int) -> dict[str, Any]:
    """A chain of n operations in n / 10 modules, as a snapshot that ran."""
    base = samples.backward()
    op = base["nodes"][-1]
    nodes = [
        {**op, "id": f"n{k}", "group": [f"layers.{k // 10}: Layer"], "module": f"layers.{k // 10}"}
        for k in range(n)
    ]
    steps = [{**base["steps"][4], "node": f"n{k}", "sent": []} for k in range(n)]
    edges = [{"src": f"n{k}", "dst": f"n{k + 1}", "index": 0} for k in range(n - 1)]
    empty = {"origins": [], "broadcasts": [], "position": n, "roots": ["n0"]}
    return {**base, "nodes": nodes, "steps": steps, "edges": edges, **empty}


def test_small_graphs_open_and_big_ones_are_folded() -> None:
    small = fold(samples.backward())
    assert {g.label for g in small.values()} == {"", "0: Linear"}
    assert opened(small) == set(small)
    big = fold(deep(5000))
    assert sorted(members(big, "")) == sorted(f"n{k}" for k in range(5000))
    assert all(len(g.children) <= 60 for g in big.values())
    boxes = set(shown(big, opened(big)).values())
    assert len(boxes) <= 60
    assert big[""].size == 5000


def test_modules_of_one_node_are_no_groups() -> None:
    recording = record(model())
    labels = {g.label for g in fold(recording.snapshot()).values()}
    assert labels == {"", "0: Linear", "2: Linear"}
    order = order_of(recording.snapshot())
    assert sorted(order.values()) == list(range(11))


def test_nested_boxes_lie_inside_and_apart() -> None:
    sizes = dict.fromkeys("abcdef", (80.0, 40.0))
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("b", "e"), ("e", "f"), ("a", "f")]
    inside = {"a": "", "b": "g", "c": "h", "d": "h", "e": "g", "f": ""}
    placed = nested(sizes, edges, inside, {"g": "", "h": "g"}, {"g": 60.0, "h": 300.0})
    boxes = list(placed.nodes.values())
    assert not any(x.overlaps(y) for i, x in enumerate(boxes) for y in boxes[:i])
    assert placed.groups["h"].width >= 300
    for node, group in (("b", "g"), ("e", "g"), ("c", "h"), ("d", "h")):
        inner, outer = placed.nodes[node], placed.groups[group]
        assert outer.x <= inner.x and inner.right <= outer.right
        assert outer.y <= inner.y and inner.bottom <= outer.bottom
    assert not placed.groups["g"].overlaps(placed.nodes["a"])
    for (u, v), route in zip(edges, placed.routes, strict=True):
        assert (route.src, route.dst) == (u, v)
        start, end = placed.nodes[u], placed.nodes[v]
        assert route.points[0] == pytest.approx((start.cx, start.bottom))
        assert route.points[-1] == pytest.approx((end.cx, end.y))


def test_the_static_picture_shows_the_last_state() -> None:
    recording = record(model())
    recording.seek(4)
    text = recording.picture.svg
    ET.fromstring(text)
    assert "After step 4 of 11" in text and "0: Linear" in text
    assert recording.picture.to_svg("dark") != text
    assert "NaN starts here" in picture(samples.backward()).svg


def test_a_page_can_be_opened_and_played_again(tmp_path: Any) -> None:
    recording = record(model())
    recording.picture.to_html(tmp_path / "b.html")
    again = viz.read_html(tmp_path / "b.html")
    assert again.playback.seek(5) == recording.seek(5)
    with pytest.raises(ValueError, match="expected a snapshot of kind 'backward'"):
        Playback(samples.autograd())


def test_hostile_module_names_are_only_text() -> None:
    snapshot = samples.backward()
    for node in snapshot["nodes"]:
        node["group"] = [samples.HOSTILE] if node["group"] else []
    shown_picture = picture(snapshot)
    assert not list(ET.fromstring(shown_picture.svg).iter("{http://www.w3.org/2000/svg}script"))
    assert "<script>alert(1)" not in shown_picture.to_html()


def test_recording_is_off_when_it_is_over() -> None:
    net = model()
    recording = record(net)
    n = len(recording.steps)
    net(torch.randn(2, 4)).sum().backward()
    assert len(recording.steps) == n
    recording.stop()


def test_the_widget_follows_the_recording() -> None:
    pytest.importorskip("anywidget")
    from torchlab.viz.widgets.live import BackwardWidget

    recording = record(model())
    recording.widget = BackwardWidget()
    recording.widget.update(recording.snapshot())
    recording.widget.flush()
    sent: list[Any] = []
    recording.widget.send = sent.append
    recording.seek(3)
    recording.back()
    assert sent == [{"type": "seek", "position": 3}, {"type": "seek", "position": 2}]
    assert len(recording.widget.state["player"]["steps"]) == 11
    recording.widget.close()
