"""Recording a backward: every step with what it received, sent, accumulated and freed.

Source of what is recorded: https://docs.pytorch.org/docs/2.13/notes/autograd.html
"""

from __future__ import annotations

import inspect
import math
import sys
import weakref
from collections.abc import Callable
from typing import Any, Self

from torchlab._core import events
from torchlab._core.events import Topic
from torchlab._core.tape import RELEASED, AccumulateGrad
from torchlab._core.tape import Node as TapeNode
from torchlab._core.tensor import Tensor
from torchlab.viz.playback import Playback, State
from torchlab.viz.recorders.autograd import Tape, _sources, _target
from torchlab.viz.recorders.calls import CallLog, node_of
from torchlab.viz.recorders.common import LiveRecorder, Named, named_tensors, norm, user_frame
from torchlab.viz.recorders.common import user_source as line_of_user
from torchlab.viz.recorders.gradients import gradient, nbytes, summed_dims
from torchlab.viz.recorders.modules import ModuleTrail
from torchlab.viz.recorders.origins import backward_origin, forward_origin, onwards, writer_of
from torchlab.viz.recorders.values import bad, stats
from torchlab.viz.snapshots.backward import (
    Accumulation,
    BackwardNode,
    BackwardSnapshot,
    Broadcast,
    Freed,
    Origin,
    Step,
    Write,
)
from torchlab.viz.snapshots.common import VERSION

ALSO_BROADCASTING = {"expand", "addmm", "addmv", "addbmm", "baddbmm", "addr"}

_latest: list[weakref.ref[BackwardRecorder]] = []


def latest() -> BackwardRecorder | None:
    """The recorder that was started last, if it is still there."""
    return _latest[0]() if _latest else None


class BackwardRecorder(LiveRecorder):
    """Records what happens inside `with`: the forward, and every backward in it.

    Afterwards it is played: `step()`, `back()`, `seek(i)`, `state`; `show()` draws the player in a
    notebook, `explain()` says in words what was noticed, `snapshot()` is the plain data. No tensor
    is kept alive, and nothing is recorded of what happens outside the `with`.

    Args: params: names for the leaves, best the model itself (see `autograd_graph`); without it
            parameters are called by their modules' names and other leaves by the variables that
            hold them. most: how many operations and steps are kept.
    """

    kind = "backward"

    def __init__(self, params: Named = None, *, most: int = 20_000) -> None:
        super().__init__()
        self._most = most
        self._weak_names = [(n, weakref.ref(t)) for n, t in named_tensors(params).items()]
        self._tape = Tape([(n, t) for n, ref in self._weak_names if (t := ref()) is not None])
        self._trail = ModuleTrail(params, self._name)
        self.log = CallLog(most)
        self._call_of: dict[str, int] = {}
        self._steps: list[Step] = []
        self._roots: list[str] = []
        self._reached: dict[str, int] = {}  # node → the run that first came to it
        self._run = -1
        self._inside = False
        self._outer: BaseException | None = None
        self._open: tuple[weakref.ref[TapeNode], str, Step] | None = None
        self._holders: dict[str, set[str]] = {}  # storage → nodes that hold it
        self._sizes: dict[str, int] = {}
        self._flight: dict[tuple[str, int], int] = {}
        self._leaf_bytes: dict[str, int] = {}
        self._saved_now = self._leaves_now = 0  # the sums of the two above
        self._start = {"saved_bytes": 0, "flight_bytes": 0, "leaf_bytes": 0}
        self._bad_step: Origin | None = None
        self._error: dict[str, str] | None = None
        self._writes: list[Write] = []
        self._playback: Playback | None = None

    # ---- recording -------------------------------------------------------------------------------

    def _listeners(self) -> list[tuple[Topic, Callable[..., None]]]:
        return [
            (events.op_call, self._on_call),
            (events.backward_begin, self._on_begin),
            (events.backward_step, self._on_step),
            (events.grad_accumulated, self._on_leaf),
            (events.grad_captured, self._on_captured),
            (events.backward_end, self._on_end),
        ]

    def start(self) -> Self:
        """Listen from now on."""
        if not self._subscriptions:
            self._trail.start()
            _latest[:] = [weakref.ref(self)]
        return super().start()

    def stop(self) -> None:
        """Stop listening; what was recorded can be played."""
        self._trail.stop()
        super().stop()

    def _name(self, name: str, tensor: Tensor) -> None:
        if id(tensor) not in self._tape.names or self._tape.names[id(tensor)][1]() is not tensor:
            self._tape.names[id(tensor)] = (name, weakref.ref(tensor))

    def _on_call(self, op: Any, args: Any, result: Any) -> None:
        if self._inside:
            return
        with self._lock:
            self._playback = None
            source = line_of_user()
            call = self.log.add(op, args, result, source, self._trail.here())
            node = call.node() if call is not None and call.node is not None else None
            if node is None or call is None or len(self._tape.seen) >= self._most:
                return
            if node not in self._tape.ids:
                if source is not None:
                    _sources[node] = source
                self._tape.link(node)
                self._call_of[self._tape.ids[node]] = len(self.log.calls) - 1
            call.identity = self._tape.ids[node]

    def _on_begin(self, roots: tuple[TapeNode, ...]) -> None:
        with self._lock:
            self._playback = None
            self._inside, self._outer = True, sys.exc_info()[1]
            self._run += 1
            self._name_leaves()
            self._roots = list(dict.fromkeys([*self._roots, *self._tape.walk(roots)]))
            self._trail.again()
            after: dict[str, list[str]] = {}
            for edge in self._tape.edges:
                after.setdefault(edge["src"], []).append(edge["dst"])
            queue = [self._tape.ids[node] for node in roots]
            seen = set(queue)
            for identity in queue:
                new = [d for d in after.get(identity, ()) if d not in seen]
                seen.update(new)
                queue.extend(new)
            for identity in seen:
                self._reached.setdefault(identity, self._run)
                self._hold(identity)
            self._flight.clear()
            for node in roots:
                identity = self._tape.ids[node]
                self._flight[identity, 0] = nbytes(self._tape.seen[identity].plain["outputs"], 0)
            if not self._steps:
                self._start = self._bytes()

    def _hold(self, identity: str) -> None:
        """Note what a node has saved now, and the gradient that a leaf has already."""
        entry = self._tape.seen[identity]
        node = entry.ref()
        if isinstance(node, AccumulateGrad):
            leaf = node.variable
            if leaf is not None and leaf._g is not None:
                self._leaf_holds(identity)
        if node is None:
            return
        for item, (slot, _) in zip(entry.plain["saved"], entry.storages, strict=True):
            if getattr(node, slot, None) is not RELEASED:
                key = item["storage"]
                before = self._sizes.get(key, 0) if self._holders.get(key) else 0
                self._holders.setdefault(key, set()).add(identity)
                self._sizes[key] = max(before, item["bytes"])
                self._saved_now += self._sizes[key] - before

    def _bytes(self) -> dict[str, int]:
        return {
            "saved_bytes": self._saved_now,
            "flight_bytes": sum(self._flight.values()),
            "leaf_bytes": self._leaves_now,
        }

    def _leaf_holds(self, identity: str) -> None:
        size = nbytes(self._tape.seen[identity].plain["outputs"], 0)
        self._leaves_now += size - self._leaf_bytes.get(identity, 0)
        self._leaf_bytes[identity] = size

    def _name_leaves(self) -> None:
        """Call leaves by the variables that hold them, where nothing better is known."""
        frame = user_frame()
        if frame is None:
            return
        scopes = [frame.f_globals]
        # Before Python 3.13, asking a function's frame for f_locals keeps all of them alive.
        if sys.version_info >= (3, 13) or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            scopes.insert(0, frame.f_locals)
        for scope in scopes:
            for name, value in list(scope.items()):
                if not name.startswith("_") and isinstance(value, Tensor) and value.requires_grad:
                    self._name(name, value)

    def _settle(self) -> None:
        """Complete the step before: what its node let go, once it has."""
        if self._open is None:
            return
        reference, identity, step = self._open
        self._open = None
        node, entry = reference(), self._tape.seen[identity]
        for item, (slot, storage) in zip(entry.plain["saved"], entry.storages, strict=True):
            if node is not None and getattr(node, slot, None) is not RELEASED:
                continue
            nodes = self._holders.get(item["storage"], set())
            if identity in nodes:
                step["freed"].append(
                    Freed(
                        name=item["name"],
                        bytes=item["bytes"],
                        storage=item["storage"],
                        returned=storage() is None,
                    )
                )
        for freed in step["freed"]:
            nodes = self._holders[freed["storage"]]
            if identity in nodes:
                nodes.discard(identity)
                if not nodes:
                    self._saved_now -= self._sizes[freed["storage"]]
        step.update(self._bytes())  # type: ignore[typeddict-item]

    def _begin_step(self, identity: str, kind: str) -> Step | None:
        self._settle()
        if len(self._steps) >= self._most:
            self.log.cut = True
            return None
        step = Step(
            node=identity,
            kind=kind,
            run=self._run,
            received=[],
            sent=[],
            leaf=None,
            freed=[],
            saved_bytes=0,
            flight_bytes=0,
            leaf_bytes=0,
        )
        self._steps.append(step)
        return step

    def _on_step(self, node: TapeNode, grad_outputs: Any, grad_inputs: Any) -> None:
        with self._lock:
            identity = self._tape.ids.get(node)
            step = self._begin_step(identity, "op") if identity is not None else None
            if step is None or identity is None:
                return
            step["received"] = [gradient(g) for g in grad_outputs]
            for key in [k for k in self._flight if k[0] == identity]:
                del self._flight[key]
            for index, edge in enumerate(node.next):
                g = grad_inputs[index] if index < len(grad_inputs) else None
                if edge is None or g is None:
                    step["sent"].append(None)
                    continue
                target, nr = _target(edge)
                to = self._tape.ids.get(target, "")
                infos = self._tape.seen[to].plain["outputs"] if to else []
                wanted = infos[nr]["shape"] if nr < len(infos) else list(map(int, g.shape))
                sent = gradient(g, to, wanted)
                if sent is not None and to and not sent["summed"]:  # the rule has summed it
                    sent["summed"] = self._summed(identity, to)
                step["sent"].append(sent)
                if to:
                    self._flight[to, nr] = nbytes(infos, nr)
            self._open = (weakref.ref(node), identity, step)
            step.update(self._bytes())  # type: ignore[typeddict-item]
            if self._bad_step is None:
                self._look_for_bad(node, identity, grad_outputs, grad_inputs, step)

    def _look_for_bad(self, node: Any, identity: str, came: Any, went: Any, step: Step) -> None:
        """The first step that makes a gradient that is not finite from finite ones, or that gets
        one which nobody sent."""
        given = [stats(g, "gradient") for g in came if g is not None]
        sent = any(g is not None and isinstance(g["norm"], str) for g in step["sent"])
        handed = any(bad(s) for s in given)
        if not (sent or handed):
            return
        made = given if handed else [stats(g, "gradient") for g in went if g is not None]
        gave = next((s for s in made if bad(s)), None)
        if gave is None:
            return
        at = self._call_of.get(identity)
        call = None if at is None else self.log.calls[at]
        self._bad_step = backward_origin(self._tape.seen[identity].plain, call, gave)
        if handed:
            why = "a hook made it, or it was given to backward()"
            self._bad_step = {**self._bad_step, "where": "hook", "why": why}

    def _on_leaf(self, tensor: Tensor, grad: Tensor, incoming: Tensor, in_place: bool) -> None:
        with self._lock:
            identity = self._tape.ids.get(_target(tensor._e)[0])
            step = self._begin_step(identity, "leaf") if identity is not None else None
            if step is None or identity is None:
                return
            size = norm(grad)
            arrived = norm(incoming) if in_place else size
            step["received"] = [gradient(incoming)]
            step["leaf"] = Accumulation(first=not in_place, incoming=arrived, norm=size)
            self._flight.pop((identity, 0), None)
            self._leaf_holds(identity)
            step.update(self._bytes())  # type: ignore[typeddict-item]

    def _on_captured(self, node: TapeNode, grads: Any) -> None:
        with self._lock:
            identity = self._tape.ids.get(node)
            step = self._begin_step(identity, "captured") if identity is not None else None
            if step is not None:
                step["received"] = [gradient(g) for g in grads]
                step.update(self._bytes())  # type: ignore[typeddict-item]

    def _on_end(self, roots: tuple[TapeNode, ...], last: TapeNode) -> None:
        with self._lock:
            self._settle()
            self._inside = False
            error = sys.exc_info()[1]
            if error is not None and error is not self._outer:
                self._error = {"node": self._tape.ids.get(last, ""), "text": str(error)}
            self._writes = self._stale()

    def _stale(self) -> list[Write]:
        """Saved tensors that were written to since."""
        found = []
        for identity, entry in self._tape.seen.items():
            plain, node = entry.plain, entry.ref()
            for item, (slot, reference) in zip(plain["saved"], entry.storages, strict=True):
                storage = reference()
                if storage is None or node is None or getattr(node, slot, None) is RELEASED:
                    continue
                if storage.version != item["version"]:
                    found.append(
                        Write(
                            node=identity,
                            name=item["name"],
                            version=item["version"],
                            current_version=storage.version,
                            source=plain["source"],
                            written=writer_of(storage),
                        )
                    )
        return found

    # ---- what was recorded -----------------------------------------------------------------------

    def snapshot(self) -> BackwardSnapshot:
        """The recording as plain data."""
        with self._lock:
            kept = [i for i in self._tape.seen if i in self._reached or not self._reached]
            inside = set(kept)
            edges = [e for e in self._tape.edges if e["src"] in inside and e["dst"] in inside]
            nodes = self._nodes(kept, edges)
            start = forward_origin(self.log, self._roots[0] if self._roots else "")
            made = self._bad_step
            if start is not None and made is not None and any(bad(s) for s in made["fed"]):
                made = None  # it follows from the forward's
            origins = [o for o in (start, made) if o is not None]
            position = self._playback.position if self._playback else len(self._steps)
            return BackwardSnapshot(
                kind="backward",
                version=VERSION,
                roots=self._roots or _heads(kept, edges),
                nodes=nodes,
                edges=edges,
                steps=list(self._steps),
                start=self._start,
                broadcasts=self._broadcasts(nodes, edges),
                origins=[onwards(o, self._steps, nodes) for o in origins],
                writes=self._writes or self._stale(),
                error=self._error,
                position=position,
                cut=self.log.cut,
            )

    def _nodes(self, kept: list[str], edges: list[Any]) -> list[BackwardNode]:
        plain: dict[str, BackwardNode] = {}
        for identity in kept:
            found = self._tape.node(identity)
            at = self._call_of.get(identity)
            call = None if at is None else self.log.calls[at]
            leaf = self._tape.seen[identity].ref() if found["kind"] == "leaf" else None
            label = found["label"]
            if isinstance(leaf, AccumulateGrad) and not label and leaf.variable is not None:
                label = self._tape._label(leaf.variable)
                self._tape.seen[identity].plain["label"] = label
            plain[identity] = BackwardNode(
                id=identity,
                kind=found["kind"],
                name=found["name"],
                op=found["op"] if call is None else call.op,
                label=label,
                module="" if call is None else call.module,
                group=[] if call is None else call.group,
                inputs=found["inputs"],
                outputs=found["outputs"],
                saved=found["saved"],
                fed=[] if call is None else call.fed,
                source=found["source"],
            )
        near: dict[str, list[str]] = {}
        for edge in edges:
            near.setdefault(edge["dst"], []).append(edge["src"])
            near.setdefault(edge["src"], []).append(edge["dst"])
        for identity, node in plain.items():  # leaves, and nodes that no call was seen of
            if identity not in self._call_of:
                ids = [n for n in near.get(identity, ()) if n in self._call_of]
                first = min((self._reached.get(n, 0) for n in ids), default=0)
                around = [plain[n] for n in ids if self._reached.get(n, 0) == first]
                if around:
                    node["group"] = _common([n["group"] for n in around])
                    if all(n["module"] == around[0]["module"] for n in around):
                        node["module"] = around[0]["module"]
        for identity, node in plain.items():
            run = self._reached.get(identity, 0)
            if run and node["kind"] == "op":  # or two forwards of a model would be one drawing
                node["group"] = [f"backward {run + 1}", *node["group"]]
        return list(plain.values())

    def _summed(self, identity: str, to: str) -> list[int]:
        """The dims over which a node sums the gradient of an input that was broadcast."""
        entry, target = self._tape.seen[identity].plain, self._tape.seen[to].plain
        at = self._call_of.get(identity)
        call = None if at is None else self.log.calls[at]
        if call is None or not (call.broadcasts or call.op in ALSO_BROADCASTING):
            return []
        if len(entry["outputs"]) != 1 or len(target["outputs"]) != 1:
            return []
        return summed_dims(target["outputs"][0]["shape"], entry["outputs"][0]["shape"])

    def _broadcasts(self, nodes: list[BackwardNode], edges: list[Any]) -> list[Broadcast]:
        known = {n["id"]: n for n in nodes}
        found = []
        for edge in edges:
            node, to = known[edge["src"]], known[edge["dst"]]
            dims = self._summed(node["id"], to["id"])
            if dims:
                big = node["outputs"][0]["shape"]
                found.append(
                    Broadcast(
                        node=node["id"],
                        index=edge["index"],
                        into=to["id"],
                        shape=to["outputs"][0]["shape"],
                        to=big,
                        dims=dims,
                        each=math.prod(big[d] for d in dims),
                        source=node["source"],
                    )
                )
        return found

    def show(self) -> None:
        """Display the player, and beside it a static picture for viewers without widgets."""
        super().show()  # returns the widget: a cell that ends here would display it twice

    # ---- playing ---------------------------------------------------------------------------------

    @property
    def playback(self) -> Playback:
        """The player: made from what has been recorded so far."""
        if self._playback is None:
            self._playback = Playback(self.snapshot())
        return self._playback

    @property
    def steps(self) -> list[Step]:
        """All steps, in the order in which they ran."""
        return self.playback.steps

    @property
    def position(self) -> int:
        """How many steps have been played; a finished recording begins at its end."""
        return self.playback.position

    @property
    def state(self) -> State:
        """What holds at the present position."""
        return self.playback.state

    @property
    def origins(self) -> list[Origin]:
        """Where NaN and infinities came from: in the forward, in the data, in a gradient rule."""
        return self.playback.snapshot["origins"]

    @property
    def broadcasts(self) -> list[Broadcast]:
        """The broadcast inputs, and where their gradients are summed."""
        return self.playback.snapshot["broadcasts"]

    @property
    def writes(self) -> list[Write]:
        """Saved tensors that were changed in place, and the lines that wrote."""
        return self.playback.snapshot["writes"]

    def seek(self, position: int) -> State:
        """Go to a position: 0 is before the first step. Negative ones count from the end."""
        state = self.playback.seek(position)
        if self.widget is not None:
            self.widget.send({"type": "seek", "position": state.position})
        return state

    def step(self) -> State:
        """Play one step forwards; at the end nothing happens."""
        return self.seek(min(self.position + 1, len(self.steps)))

    def back(self) -> State:
        """Take one step back; at the start nothing happens."""
        return self.seek(max(self.position - 1, 0))

    def explain(self) -> str:
        """In words: NaN and its origin, broadcasts, writes in place, the error."""
        return self.playback.explain()


def _heads(kept: list[str], edges: list[Any]) -> list[str]:
    targets = {e["dst"] for e in edges}
    return [i for i in kept if i not in targets]


def _common(groups: list[list[str]]) -> list[str]:
    found = []
    for parts in zip(*groups, strict=False):
        if any(p != parts[0] for p in parts):
            break
        found.append(parts[0])
    return found


def record_backward(params: Named = None, *, most: int = 20_000) -> BackwardRecorder:
    """Record a forward and its backward, to be played step by step afterwards.

        with viz.record_backward(model) as recording:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
        recording.show()        # the player; in a script: recording.picture.to_html("b.html")
        recording.seek(0)
        state = recording.step()
        print(recording.explain())

    Args:
        params: the model, or names for the leaves (see `autograd_graph`); may be left out.
        most: how many operations and steps are kept.

    Returns:
        A `BackwardRecorder`. It keeps numbers only, no tensor: shapes, norms, ranges, bytes.
    """
    return BackwardRecorder(params, most=most)


__all__ = ["BackwardRecorder", "latest", "node_of", "record_backward", "summed_dims"]
