"""A recording, played: the state after any step, forwards and backwards. Needs no tensor."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from torchlab.viz.snapshots.backward import BackwardSnapshot, Origin, Size, Stats, Step
from torchlab.viz.snapshots.common import bytes_text, check, shape_text, source_text


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node at one position. `status`: 'waiting', 'receiving' (a gradient has come), 'running'
    (the step that was just played), 'done'."""

    status: str
    norm: Size  # of the gradient that it last ran with
    runs: int
    freed: bool  # whether it has let its saved tensors go


@dataclass(frozen=True, slots=True)
class State:
    """What holds after `position` steps."""

    position: int
    step: Step | None  # the step that was just played; None at position 0
    nodes: dict[str, NodeState] = field(repr=False)
    leaves: dict[str, Size]  # by label (or node id): the norm of .grad, None while there is none
    saved_bytes: int
    flight_bytes: int
    leaf_bytes: int
    text: str  # the step in words

    @property
    def live_bytes(self) -> int:
        """Everything that backward holds: saved tensors, gradients on their way, the leaves'."""
        return self.saved_bytes + self.flight_bytes + self.leaf_bytes


class Playback:
    """Plays a snapshot of kind 'backward'.

    Any position can be reached at once; stepping back gives exactly the state that was there.

    Raises:
        ValueError: another kind or version of snapshot.
    """

    def __init__(self, snapshot: Mapping[str, Any]) -> None:
        check(snapshot, "backward")
        self.snapshot = cast(BackwardSnapshot, snapshot)
        self.steps = self.snapshot["steps"]
        self._nodes = {n["id"]: n for n in self.snapshot["nodes"]}
        self._ran: dict[str, list[int]] = {}
        self._got: dict[str, list[int]] = {}
        for i, step in enumerate(self.steps):
            self._ran.setdefault(step["node"], []).append(i)
            for g in step["sent"]:
                if g is not None and g["to"]:
                    self._got.setdefault(g["to"], []).append(i)
        self._position = min(self.snapshot["position"], len(self.steps))

    @property
    def position(self) -> int:
        """How many steps have been played."""
        return self._position

    def seek(self, position: int) -> State:
        """Go to a position; negative ones count from the end.

        Raises:
            IndexError: there are fewer steps.
        """
        n = len(self.steps)
        wanted = position + n + 1 if position < 0 else position
        if not 0 <= wanted <= n:
            raise IndexError(f"seek: position {position} of a recording of {n} steps")
        self._position = wanted
        return self.state

    def step(self) -> State:
        """Play one step forwards; at the end nothing happens."""
        return self.seek(min(self._position + 1, len(self.steps)))

    def back(self) -> State:
        """Take one step back; at the start nothing happens."""
        return self.seek(max(self._position - 1, 0))

    @property
    def state(self) -> State:
        """What holds at the present position."""
        at = self._position
        step = self.steps[at - 1] if at else None
        nodes = {i: self.node_state(i, at) for i in self._nodes}
        leaves = {
            n["label"] or n["id"]: self._grad(n["id"], at)
            for n in self.snapshot["nodes"]
            if n["kind"] == "leaf"
        }
        held: Mapping[str, Any] = step if step is not None else self.snapshot["start"]
        return State(
            at,
            step,
            nodes,
            leaves,
            held["saved_bytes"],
            held["flight_bytes"],
            held["leaf_bytes"],
            self.describe(at),
        )

    def node_state(self, identity: str, position: int) -> NodeState:
        """One node after `position` steps."""
        ran = self._ran.get(identity, [])
        runs = bisect_right(ran, position - 1)
        if runs:
            last = ran[runs - 1]
            status = "running" if last == position - 1 else "done"
            freed = any(self.steps[i]["freed"] for i in ran[:runs])
        else:
            last, freed = -1, False
            got = self._got.get(identity, [])
            root = position > 0 and identity in self.snapshot["roots"]
            status = "receiving" if root or bisect_right(got, position - 1) else "waiting"
        return NodeState(status, total(self.steps[last]) if runs else None, runs, freed)

    def _grad(self, identity: str, position: int) -> Size:
        ran = self._ran.get(identity, [])
        runs = bisect_right(ran, position - 1)
        leaf = self.steps[ran[runs - 1]]["leaf"] if runs else None
        return leaf["norm"] if leaf is not None else None

    def name(self, identity: str) -> str:
        """What a node is called: a leaf's label, or the name of its rule."""
        node = self._nodes.get(identity)
        return "?" if node is None else node["label"] or node["name"]

    def describe(self, position: int) -> str:
        """A step in one sentence or two."""
        if position == 0:
            return f"Before the first of {len(self.steps)} steps."
        step = self.steps[position - 1]
        node = self._nodes[step["node"]]
        where = ", ".join(t for t in (node["module"], source_text(node["source"])) if t)
        first = f"Step {position} of {len(self.steps)}: {self.name(step['node'])}"
        first += f" ({where})" if where else ""
        came = _sizes(step["received"])
        leaf = step["leaf"]
        if leaf is not None:
            done = "takes its first gradient" if leaf["first"] else "adds a gradient"
            after = "" if leaf["first"] else f"; .grad is now {size_text(leaf['norm'])}"
            return f"{first} {done}, {came}{after}."
        if step["kind"] == "captured":
            return f"{first}: its gradient, {came}, is what grad() returns."
        text = f"{first} receives {came}"
        sent = [g for g in step["sent"] if g is not None]
        if sent:
            ways = ", ".join(
                f"{size_text(g['norm'])} to {self.name(g['to'])}"
                + (f" (summed over {dims_text(g['summed'])})" if g["summed"] else "")
                for g in sent
            )
            text += f" and sends {ways}"
        if step["freed"]:
            total_bytes = sum(f["bytes"] for f in step["freed"])
            names = ", ".join(f["name"] for f in step["freed"])
            text += f"; lets {names} go ({bytes_text(total_bytes)})"
        return text + "."

    def explain(self) -> str:
        """What the recording shows beyond the steps, one paragraph for each thing."""
        snapshot = self.snapshot
        parts = [origin_text(o) for o in snapshot["origins"]]
        for b in snapshot["broadcasts"]:
            parts.append(
                f"{self.name(b['into'])} {shape_text(b['shape'])} was broadcast to"
                f" {shape_text(b['to'])} by {self.name(b['node'])}{_at(b['source'])}: its gradient"
                f" is summed there over {dims_text(b['dims'])}, {b['each']:,} values into each."
            )
        for w in snapshot["writes"]:
            wrote = w["written"]
            line = f" by {source_text(wrote)}: {wrote['code']}" if wrote else ""
            parts.append(
                f"{self.name(w['node'])} saved {w['name']} at version {w['version']}; it was"
                f" written in place since (version {w['current_version']}){line}."
            )
        if snapshot["error"]:
            parts.append(
                f"Backward stopped at {self.name(snapshot['error']['node'])}:"
                f" {snapshot['error']['text']}"
            )
        return "\n".join(parts)


def total(step: Step) -> Size:
    """The norm of all that a step received."""
    sizes = [g["norm"] for g in step["received"] if g is not None]
    texts = [s for s in sizes if isinstance(s, str)]
    if texts:
        return "nan" if "nan" in texts else texts[0]
    numbers = [float(s) for s in sizes if s is not None]
    return sum(s * s for s in numbers) ** 0.5 if numbers else None


def size_text(size: Size) -> str:
    """A norm in three digits: '‖g‖ 0.0874'."""
    if size is None:
        return "nothing"
    words = {"nan": "NaN", "inf": "Inf"}
    return f"‖g‖ {words.get(size, size)}" if isinstance(size, str) else f"‖g‖ {size:.3g}"


def dims_text(dims: list[int]) -> str:
    """'dim 0', 'dims 0, 2'."""
    return f"dim{'s' if len(dims) > 1 else ''} {', '.join(map(str, dims))}"


def _sizes(received: list[Any]) -> str:
    found = [g for g in received if g is not None]
    if not found:
        return "no gradient"
    return ", ".join(f"{size_text(g['norm'])} {shape_text(g['shape'])}" for g in found)


def _at(source: Any) -> str:
    return f" at {source_text(source)}" if source else ""


def stats_text(s: Stats) -> str:
    """'input 0 [3] float32, −1 … 2, 1 zero, 1 NaN'."""
    parts = [f"{s['name']} {shape_text(s['shape'])} {s['dtype']}"]
    if s["low"] is not None and s["high"] is not None:
        parts.append(f"{s['low']:.4g} … {s['high']:.4g}")
    for key, word in (("zero", "zero"), ("negative", "negative"), ("nan", "NaN"), ("inf", "Inf")):
        n = cast(Any, s)[key]
        if n:
            parts.append(f"{n:,} {word}")
    return ", ".join(parts)


def origin_text(origin: Origin) -> str:
    """Where a NaN came from, in words."""
    kind = {"nan": "NaN", "inf": "Inf"}[origin["what"]]
    inside = f" in {origin['module']}" if origin["module"] else ""
    line = _at(origin["source"])
    code = f": {origin['source']['code']}" if origin["source"] and origin["source"]["code"] else ""
    head = {
        "forward": f"The forward's first {kind} is made by {origin['op']}{inside}{line}{code}.",
        "data": f"{kind} is in the data: first seen by {origin['op']}{inside}{line}{code}.",
        "hook": f"The gradient has {kind} when it comes to {origin['op']}{inside}{line}{code}.",
        "backward": f"The backward's first {kind} is made by {origin['op']}{inside}{line}{code}.",
    }[origin["where"]]
    text = [head]
    if origin["why"]:
        text.append(f"Why: {origin['why']}.")
    if origin["fed"]:
        text.append(f"It was fed {'; '.join(stats_text(s) for s in origin['fed'])}.")
    if len(origin["path"]) > 1:
        way = " → ".join(p["op"] for p in origin["path"])
        end = {
            True: "", False: " (and no further)" if origin["where"] in ("forward", "data") else ""
        }[origin["reaches"]]  # fmt: skip
        text.append(f"Its way: {way}{end}.")
    return " ".join(text)
