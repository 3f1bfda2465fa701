"""The log of a forward: which operation made which value from which, as numbers and names.

Tensors are followed by identity, with weak references that clean up after them; nothing is kept
alive. A write in place gives the tensor, and with it everything on its storage, a new value.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any

from torchlab._core.dispatch.modes import tensors_in
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import TLS, AccumulateGrad, Out
from torchlab._core.tape import Node as TapeNode
from torchlab._core.tensor import Tensor
from torchlab.viz.recorders.values import bad, stats
from torchlab.viz.snapshots.backward import Stats
from torchlab.viz.snapshots.common import Source

BROADCASTING = {"binary", "pointwise"}


def node_of(tensor: Tensor) -> TapeNode | None:
    """The tape node that made a tensor, None for leaves and tensors without a history."""
    edge = tensor._e
    node = edge.node if type(edge) is Out else edge
    return None if node is None or type(node) is AccumulateGrad else node


class Call:
    """One operation: what it read and made (values, by number), and what is known of both."""

    __slots__ = (
        "op", "source", "module", "group", "reads", "makes", "fed", "gave", "grad", "tracked",
        "kept", "node", "identity", "broadcasts",
    )  # fmt: skip

    op: str
    source: Source | None
    module: str
    group: list[str]
    reads: list[int]
    makes: list[int]
    fed: list[Stats]
    gave: list[Stats]
    grad: bool  # whether gradients were being recorded
    tracked: bool  # whether an operand had a history
    kept: bool  # whether a result has one
    node: weakref.ref[TapeNode] | None
    broadcasts: bool  # whether it is of a kind that broadcasts its operands
    identity: str  # the node's id, once a recorder has given it one


class CallLog:
    """What the forward did, in order."""

    def __init__(self, most: int = 20_000) -> None:
        self.calls: list[Call] = []
        self.most = most
        self.cut = False
        self.made_by: list[int] = []  # value → call, -1 for what came from outside
        self._values: dict[int, tuple[weakref.ref[Tensor], list[int]]] = {}
        self._writes: weakref.WeakKeyDictionary[Storage, int] = weakref.WeakKeyDictionary()
        self._versions: weakref.WeakKeyDictionary[Storage, int] = weakref.WeakKeyDictionary()
        self._stats: dict[int, Stats] = {}
        self._lock = threading.RLock()

    def add(
        self, op: Any, args: Any, result: Any, source: Source | None, where: tuple[str, list[str]]
    ) -> Call | None:
        """Log a call that has just run; None where the log is full."""
        with self._lock:
            if len(self.calls) >= self.most:
                self.cut = True
                return None
            operands = tensors_in(args)
            results = tensors_in(result if isinstance(result, (list, tuple)) else (result,))
            call = Call()
            index = len(self.calls)
            call.op, call.source, (call.module, call.group) = op.name, source, where
            call.broadcasts = getattr(op, "family", "") in BROADCASTING
            written = [t for t in results if any(t is x for x in operands)]
            if written and written[0]._s is not None:
                self._versions[written[0]._s] = written[0]._s.version  # the call's own write
            read = [self._read(t) for t in operands]
            call.reads = list(dict.fromkeys(v for values in read for v in values))
            call.fed = [
                {**self._known(t, values[-1]), "name": f"input {i}"}
                for i, (t, values) in enumerate(zip(operands, read, strict=True))
                # what was overwritten is known only if it was seen before
                if values[-1] in self._stats or not any(t is x for x in written)
            ]
            call.makes = [self._make(t, index) for t in results]
            call.gave = [self._known(t, v) for t, v in zip(results, call.makes, strict=True)]
            for t in written:
                if t._s is not None:
                    self._writes[t._s] = call.makes[0]
            node = node_of(results[0]) if results else None
            call.node, call.identity = None if node is None else weakref.ref(node), ""
            call.grad = TLS.grad and not TLS.inference
            call.tracked = any(t._e is not None for t in operands)
            call.kept = any(t._e is not None for t in results)
            self.calls.append(call)
            return call

    def _known(self, tensor: Tensor, value: int) -> Stats:
        if value not in self._stats:
            self._stats[value] = stats(tensor, "result")
        return self._stats[value]

    def _entry(self, tensor: Tensor) -> list[int] | None:
        entry = self._values.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def _new(self, call: int) -> int:
        self.made_by.append(call)
        return len(self.made_by) - 1

    def _read(self, tensor: Tensor) -> list[int]:
        """The values that a tensor stands for: its own, and a later write to its storage."""
        values = self._entry(tensor)
        if values is None:
            values = self._put(tensor, self._new(-1))
        storage = tensor._s
        if storage is None:
            return [values[-1]]
        if self._versions.setdefault(storage, storage.version) != storage.version:
            self._versions[storage] = storage.version  # a write that no call told of
            self._writes[storage] = self._new(-1)
        last = self._writes.get(storage, -1)
        return [values[-1], last] if last > values[-1] else [values[-1]]

    def _make(self, tensor: Tensor, call: int) -> int:
        value = self._new(call)
        values = self._entry(tensor)
        if values is None:
            self._put(tensor, value)
        else:
            values.append(value)
        return value

    def _put(self, tensor: Tensor, value: int) -> list[int]:
        key, table = id(tensor), self._values
        reference = weakref.ref(tensor, lambda dead: _forget(table, key, dead))
        table[key] = (reference, [value])
        return table[key][1]

    # ---- questions -------------------------------------------------------------------------------

    def values_of(self, tensor: Tensor) -> list[int]:
        """All values that a tensor has had, oldest first; empty if no call has seen it."""
        with self._lock:
            return list(self._entry(tensor) or ())

    def maker(self, tensor: Tensor) -> Call | None:
        """The call that made a tensor's present value."""
        values = self.values_of(tensor)
        index = self.made_by[values[-1]] if values else -1
        return self.calls[index] if index >= 0 else None

    def way(self, start: Iterable[int], goal: Tensor) -> list[Call] | None:
        """The calls on the shortest way from one of the values `start` to the tensor `goal`, in
        the order in which they ran; None if there is no way."""
        targets = set(start)
        with self._lock:
            ends = self._read(goal) if self._entry(goal) is not None else []
        before: dict[int, tuple[int, int] | None] = dict.fromkeys(ends)  # value → (call, value)
        queue = list(ends)
        for value in queue:  # grows while it is walked
            if value in targets:
                path = []
                link = before[value]
                while link is not None:
                    path.append(self.calls[link[0]])
                    link = before[link[1]]
                return path
            call = self.made_by[value]
            if call >= 0:
                for read in self.calls[call].reads:
                    if read not in before:
                        before[read] = (call, value)
                        queue.append(read)
        return None

    def first_bad(self) -> tuple[int, bool] | None:
        """The first call with a result that is not finite, and whether it made it itself (else it
        came in with an operand)."""
        for i, call in enumerate(self.calls):
            if any(bad(s) for s in call.gave) or any(bad(s) for s in call.fed):
                return i, not any(bad(s) for s in call.fed)
        return None

    def onward(self, call: int, end: str = "") -> list[int]:
        """From a call whose result is not finite, the calls that passed it on: to the one that
        made the node `end` if it got there, else to the last that still has it."""
        before: dict[int, int] = {}
        source = dict.fromkeys(self.calls[call].makes, call)
        last = call
        for i in range(call + 1, len(self.calls)):
            step = self.calls[i]
            hit = next((v for v in reversed(step.reads) if v in source), None)
            if hit is None or not any(bad(s) for s in step.gave):
                continue
            before[i] = source[hit]
            source.update(dict.fromkeys(step.makes, i))
            last = i
            if end and step.identity == end:
                break
        path = [last]
        while path[-1] != call:
            path.append(before[path[-1]])
        return path[::-1]


def _forget(table: dict[int, Any], key: int, dead: Any) -> None:
    entry = table.get(key)
    if entry is not None and entry[0] is dead:
        del table[key]
