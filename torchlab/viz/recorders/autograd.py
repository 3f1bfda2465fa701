"""The autograd graph: read from a tensor's tape at one moment, or followed live through events."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from torchlab._core import events
from torchlab._core.events import Topic
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import RELEASED, AccumulateGrad, Out, Packed
from torchlab._core.tape import Node as TapeNode
from torchlab._core.tensor import Tensor
from torchlab.viz.pictures import AutogradPicture
from torchlab.viz.recorders.common import (
    LiveRecorder,
    Named,
    dtype_name,
    in_notebook,
    named_tensors,
    norm,
    user_source,
)
from torchlab.viz.snapshots.autograd import AutogradSnapshot, Edge, Node, Saved, TensorInfo
from torchlab.viz.snapshots.common import VERSION, Source

# The lines that made nodes, while somebody recorded: a picture made later still knows them.
_sources: weakref.WeakKeyDictionary[TapeNode, Source] = weakref.WeakKeyDictionary()


def _target(edge: Any) -> tuple[TapeNode, int]:
    return (edge.node, edge.nr) if type(edge) is Out else (edge, 0)


def _info(shape: Any, kind: Any) -> TensorInfo:
    return {"shape": [int(n) for n in shape], "dtype": dtype_name(kind.dtype)}


def _outputs(node: TapeNode) -> list[TensorInfo]:
    """Shapes and types of a node's outputs, as far as the tape knows them."""
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        return [] if leaf is None else [_info(leaf.shape, leaf._k)]
    if node._outs is not None:
        return [_info(shape, kind) for shape, kind in (o for o in node._outs if o is not None)]
    shape, kind = getattr(node, "shape", None), getattr(node, "k", None)
    return [] if shape is None or kind is None else [_info(shape, kind)]


class _Seen:
    """What is known of one node; it outlives the node."""

    __slots__ = ("ref", "plain", "storages")

    def __init__(self, node: TapeNode, plain: Node, storages: list[tuple[str, Any]]) -> None:
        self.ref = weakref.ref(node)
        self.plain = plain
        self.storages = storages  # beside plain["saved"]: slot, weak storage


class Tape:
    """Nodes with stable ids n0, n1 … and storages s0, s1 …, as plain data."""

    def __init__(self, names: Named = None) -> None:
        self.names = {id(t): (name, weakref.ref(t)) for name, t in named_tensors(names).items()}
        self.ids: weakref.WeakKeyDictionary[TapeNode, str] = weakref.WeakKeyDictionary()
        self.storages: weakref.WeakKeyDictionary[Storage, str] = weakref.WeakKeyDictionary()
        self.seen: dict[str, _Seen] = {}
        self.edges: list[Edge] = []
        self._storage_count = 0

    def look(self, node: TapeNode) -> str:
        """Record a node (once) and its edges; returns its id."""
        known = self.ids.get(node)
        if known is not None:
            return known
        identity = self.ids[node] = f"n{len(self.seen)}"
        saved, storages = self._saved(node)
        leaf = node.variable if isinstance(node, AccumulateGrad) else None
        plain: Node = {
            "id": identity,
            "kind": "leaf" if isinstance(node, AccumulateGrad) else "op",
            "name": node.name().rsplit("::", 1)[-1],
            "op": str(getattr(node.op, "name", "") or ""),
            "label": self._label(leaf),
            "module": "",
            "inputs": [] if leaf is not None else self._inputs(node),
            "outputs": _outputs(node),
            "saved": saved,
            "grad_norm": None,
            "state": "waiting",
            "runs": 0,
            "source": _sources.get(node),
        }
        self.seen[identity] = _Seen(node, plain, storages)
        return identity

    def link(self, node: TapeNode) -> list[TapeNode]:
        """Record the edges out of a node; returns the nodes that they lead to."""
        source, targets = self.look(node), []
        for index, edge in enumerate(node.next):
            if edge is not None:
                target = _target(edge)[0]
                targets.append(target)
                self.edges.append({"src": source, "dst": self.look(target), "index": index})
        return targets

    def walk(self, roots: Iterable[TapeNode]) -> list[str]:
        """Record everything reachable, nearest first; returns the ids of the roots."""
        queue = list(dict.fromkeys(roots))
        ids = [self.look(node) for node in queue]
        linked, seen = {e["src"] for e in self.edges}, set(queue)
        for node in queue:  # grows while it is walked
            if self.look(node) in linked:  # what lies behind it may be new all the same
                targets = [_target(edge)[0] for edge in node.next if edge is not None]
            else:
                linked.add(self.look(node))
                targets = self.link(node)
            new = [t for t in targets if t not in seen]
            seen.update(new)
            queue.extend(new)
        return ids

    def node(self, identity: str) -> Node:
        """What is known of a node now: versions and freed values are read again."""
        entry = self.seen[identity]
        alive = entry.ref()
        plain = entry.plain
        saved: list[Saved] = []
        for item, (slot, reference) in zip(plain["saved"], entry.storages, strict=True):
            storage = reference()
            freed = alive is None or getattr(alive, slot, None) is RELEASED
            now = item["current_version"] if storage is None else storage.version
            saved.append({**item, "current_version": now, "freed": freed})  # type: ignore[typeddict-item]
        return {**plain, "saved": saved}  # type: ignore[typeddict-item]

    def _label(self, leaf: Any) -> str:
        if leaf is None:
            return ""
        known = self.names.get(id(leaf))
        return known[0] if known is not None and known[1]() is leaf else ""

    def _inputs(self, node: TapeNode) -> list[TensorInfo]:
        found = []
        for edge in node.next:
            if edge is not None:
                target, nr = _target(edge)
                infos = _outputs(target)
                found += infos[nr : nr + 1]
        return found

    def _saved(self, node: TapeNode) -> tuple[list[Saved], list[tuple[str, Any]]]:
        saved: list[Saved] = []
        storages: list[tuple[str, Any]] = []
        for slot in node.saves:
            value = getattr(node, slot, None)
            values = value if type(value) is list else [value]
            for i, item in enumerate(values):
                name = slot.removeprefix("s_") + (f"[{i}]" if type(value) is list else "")
                if type(item) is tuple and len(item) == 5 and isinstance(item[1], Storage):
                    array, storage, version, kind, _ = item
                    shape, dtype, size = array.shape, dtype_name(kind.dtype), kind.itemsize
                elif type(item) is Packed and item.storage is not None:
                    storage, version, shape, dtype, size = (
                        item.storage,
                        item.version,
                        (),
                        "packed",
                        0,
                    )
                else:
                    continue
                if storage not in self.storages:
                    self.storages[storage] = f"s{self._storage_count}"
                    self._storage_count += 1
                saved.append(
                    {
                        "name": name,
                        "shape": [int(n) for n in shape],
                        "dtype": dtype,
                        "bytes": math.prod(shape) * size,
                        "storage": self.storages[storage],
                        "version": version,
                        "current_version": storage.version,
                        "freed": False,
                    }
                )
                storages.append((slot, weakref.ref(storage)))
        return saved, storages


def autograd_graph(outputs: Tensor | Iterable[Tensor], params: Named = None) -> AutogradPicture:
    """The graph that `backward()` from `outputs` would walk.

    Args: outputs: a tensor (a loss), or several. params: names for the leaves: a module, a mapping
            of name to tensor (`globals()` will do), or pairs (name, tensor).

    Source lines are known for what was computed while a recorder listened (`live_autograd`).

    Raises:
        ValueError: no output has a history.
    """
    tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    roots = []
    for tensor in tensors:
        function = tensor.grad_fn
        if function is not None:
            roots.append(function)
        elif tensor.requires_grad:
            roots.append(_target(tensor._e)[0])
    if not roots:
        raise ValueError(
            "autograd_graph: no output requires a gradient, so there is no graph; was it "
            "computed under "
            "no_grad() or detached?"
        )
    tape = Tape(params)
    ids = tape.walk(roots)
    snapshot = AutogradSnapshot(
        kind="autograd",
        version=VERSION,
        roots=ids,
        nodes=[tape.node(i) for i in tape.seen],
        edges=list(tape.edges),
    )
    return AutogradPicture(snapshot)


class AutogradRecorder(LiveRecorder):
    """Follows one graph after the other: nodes as the forward makes them, gradients as they come.

    The first node after a backward starts a new graph. `params` names the leaves (see
    `autograd_graph`). Graphs of more than `most` nodes are followed up to there.
    """

    kind = "autograd"

    def __init__(self, params: Named = None, interval: float = 0.05, most: int = 2000) -> None:
        super().__init__(interval)
        self._weak = [(name, weakref.ref(t)) for name, t in named_tensors(params).items()]
        self._most = most
        self._finished = False
        self._roots: list[str] = []
        self._tape = self._new_tape()

    def _new_tape(self) -> Tape:
        return Tape([(name, t) for name, ref in self._weak if (t := ref()) is not None])

    def _listeners(self) -> list[tuple[Topic, Callable[..., None]]]:
        return [
            (events.node_created, self._on_node),
            (events.backward_begin, self._on_begin),
            (events.backward_step, self._on_step),
            (events.grad_accumulated, self._on_leaf),
            (events.backward_end, self._on_end),
        ]

    def _on_node(self, node: TapeNode, op: Any, inputs: Any, outputs: Any) -> None:
        source = user_source()
        if source is not None:
            _sources[node] = source
        with self._lock:
            if self._finished:
                self._tape, self._roots, self._finished = self._new_tape(), [], False
            if len(self._tape.seen) < self._most and node not in self._tape.ids:
                self._tape.link(node)
        self._changed()

    def _on_begin(self, roots: tuple[TapeNode, ...]) -> None:
        with self._lock:
            known = sum(self._tape.ids.get(node) is not None for node in roots)
            if not known:  # the forward was not seen
                self._tape = self._new_tape()
            self._roots = self._tape.walk(roots)
            self._finished = False
        self._changed()

    def _on_step(self, node: TapeNode, grad_outputs: Any, grad_inputs: Any) -> None:
        sizes = [norm(g) for g in grad_outputs if g is not None]
        numbers = [s for s in sizes if isinstance(s, float)]
        bad = next((s for s in sizes if isinstance(s, str)), None)
        with self._lock:
            for entry in self._tape.seen.values():
                if entry.plain["state"] == "running":
                    entry.plain["state"] = "done"
            self._arrived(
                node,
                bad if bad is not None else math.hypot(*numbers) if numbers else None,
                "running",
            )
        self._changed()

    def _on_leaf(self, tensor: Tensor, grad: Tensor, **payload: Any) -> None:
        size = norm(grad)
        with self._lock:
            self._arrived(_target(tensor._e)[0], size, "done")
        self._changed()

    def _arrived(self, node: TapeNode, size: Any, state: str) -> None:
        identity = self._tape.ids.get(node)
        if identity is not None:
            plain = self._tape.seen[identity].plain
            plain["grad_norm"] = size
            plain["state"] = state
            plain["runs"] += 1

    def _on_end(self, **payload: Any) -> None:
        with self._lock:
            for entry in self._tape.seen.values():
                if entry.plain["state"] == "running":
                    entry.plain["state"] = "done"
            self._finished = True
        self._changed()

    def snapshot(self) -> AutogradSnapshot:
        """The graph as far as it has come."""
        with self._lock:
            targets = {e["dst"] for e in self._tape.edges}
            roots = self._roots or [i for i in self._tape.seen if i not in targets]
            return AutogradSnapshot(
                kind="autograd",
                version=VERSION,
                roots=roots,
                nodes=[self._tape.node(i) for i in self._tape.seen],
                edges=list(self._tape.edges),
            )


def live_autograd(params: Named = None, interval: float = 0.05) -> AutogradRecorder:
    """A recorder that is shown live in a notebook: `with viz.live_autograd(model):
    loss.backward()`."""
    recorder = AutogradRecorder(params, interval)
    if in_notebook():
        recorder.show()
    return recorder
