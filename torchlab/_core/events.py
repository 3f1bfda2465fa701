"""Events: how the laboratory sees what the core does, without the core knowing who looks.

There is one `Topic` per kind of event. A site in the core reads

    if events.block_alloc.listeners:
        events.block_alloc.emit(block=block, ...)

so that nothing is built when nobody listens (the guard costs about 8 ns). Hot paths do not even
hold
the guard: `Topic.on_change` lets the dispatcher route calls to its slow path while somebody
listens.

A payload may lend a tensor for the time of the call. A listener keeps ids, statistics or weak
references, never the tensor: holding it would change the lifetime that is being drawn.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

Listener = Callable[..., None]

_lock = threading.Lock()


class Subscription:
    """What `Topic.subscribe` returns: `close()` it, or use it in a `with` statement."""

    __slots__ = ("topic", "listener")

    def __init__(self, topic: Topic, listener: Listener) -> None:
        self.topic = topic
        self.listener = listener

    def close(self) -> None:
        """Stop listening. Calling it again does nothing."""
        self.topic.unsubscribe(self.listener)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Topic:
    """A kind of event and its listeners: an immutable tuple, rebound at every change."""

    __slots__ = ("name", "doc", "listeners", "on_change")

    def __init__(self, name: str, doc: str) -> None:
        self.name = name
        self.doc = doc
        self.listeners: tuple[Listener, ...] = ()
        self.on_change: Callable[[Topic], None] | None = None

    def subscribe(self, listener: Listener) -> Subscription:
        """Call `listener(**payload)` for every event from now on, also in the middle of a run."""
        with _lock:
            self.listeners = (*self.listeners, listener)
            if self.on_change is not None:
                self.on_change(self)
        return Subscription(self, listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Stop calling `listener`; unknown listeners are ignored."""
        with _lock:
            self.listeners = tuple(x for x in self.listeners if x is not listener)
            if self.on_change is not None:
                self.on_change(self)

    def emit(self, **payload: Any) -> None:
        """Deliver one event. A listener that raises is reported once and dropped: looking at a
        computation must not be able to break it."""
        for listener in self.listeners:
            try:
                listener(**payload)
            except Exception:
                self.unsubscribe(listener)
                print(
                    f"torchlab: a listener of the event '{self.name}' raised and was removed:\n"
                    f"{traceback.format_exc()}",
                    file=sys.stderr,
                )

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.listeners)} listener(s))"


op_call = Topic("op_call", "An operator ran. op: Op; args: tuple; result: tensor(s).")
node_created = Topic(
    "node_created", "The tape got a node. node: Node; op: Op; inputs, outputs: tensors."
)
backward_step = Topic(
    "backward_step",
    "A node ran in backward. node: Node; grad_outputs, grad_inputs: tuples of tensors or None.",
)
backward_begin = Topic("backward_begin", "backward() or grad() starts. roots: tuple of nodes.")
backward_end = Topic(
    "backward_end",
    "backward() or grad() ended, by an error too. roots: tuple of nodes; last: the node that ran"
    " last.",
)
grad_captured = Topic(
    "grad_captured",
    "grad() took what a node received. node: Node; grads: tuple of tensors or None.",
)
grad_accumulated = Topic(
    "grad_accumulated",
    "A leaf got a gradient. tensor: the leaf; incoming: what came; grad: its .grad now; in_place:"
    " bool, whether it was added.",
)
block_alloc = Topic(
    "block_alloc",
    "The allocator handed out a block. device: str; segment: int (id); address, size, requested:"
    " int (bytes); stream: int.",
)
block_free = Topic(
    "block_free",
    "A block came back. device: str; segment: int (id); address, size: int (bytes); stream: int.",
)
segment_alloc = Topic(
    "segment_alloc",
    "A segment was taken from the device. device: str; segment: int (id); address, size: int; pool:"
    " str.",
)
segment_free = Topic(
    "segment_free",
    "A segment went back to the device. device: str; segment: int (id); address, size: int.",
)
out_of_memory = Topic(
    "out_of_memory",
    "An allocation failed. device: str; requested: int; limit, allocated, reserved: int.",
)
host_transfer = Topic("host_transfer", "Bytes moved between devices. src, dst: str; nbytes: int.")
capture = Topic(
    "capture", "compile() captured a segment. fn: callable; graph: Graph; guards: list."
)
guard_failure = Topic(
    "guard_failure", "A guard did not hold. fn: callable; guard: str; expected, got."
)
graph_break = Topic(
    "graph_break", "Capture stopped. fn: callable; reason: str; source: 'file:line'."
)
graph_pass = Topic("graph_pass", "A pass changed a graph. name: str; before, after: str (code).")
fusion = Topic(
    "fusion",
    "The scheduler decided about two nodes. first, second: str; accepted: bool; reason: str.",
)
kernel_compiled = Topic(
    "kernel_compiled",
    "A kernel was built. name, source, language: str; seconds: float; cached: bool.",
)
kernel_launched = Topic("kernel_launched", "A compiled kernel runs. name: str.")
loader_step = Topic(
    "loader_step", "The data loader delivered a batch. index: int; size: int; seconds: float."
)
loader_phase = Topic(
    "loader_phase",
    "A stretch of a data loader's work. phase: 'fetch' (samples are read), 'collate', 'queued' (a"
    " batch is ready and not taken) or 'wait' (the loop waits for a batch); with workers also"
    " 'start' (a worker's process is being started), 'idle' (it has no request), 'pack' (it keeps"
    " account of where it is and moves a batch into shared memory), 'send' (the batch is on its way"
    " into the pipe), 'blocked' (the loader waits for any answer) and 'receive' (it reads one);"
    " where memory is pinned 'pin' (the batch is copied there, with workers by a thread);"
    " worker: int, None for the loader's process; batch: int; began, ended: float"
    " (time.perf_counter); cpu: float | None, seconds of the processor in it; slowest: (index,"
    " seconds) of the sample that took longest, or None; loader (lent) and pass_id: int, as in"
    " loader_pass.",
)
loader_pass = Topic(
    "loader_pass",
    "A pass over a data loader has begun or ended. stage: 'begin' (began … ended: workers were"
    " started) or 'end' (they were stopped); loader (lent); pass_id: int, another for every pass;"
    " base_seed: int, worker i has base_seed + i, None without workers; began, ended: float.",
)
loader_batch = Topic(
    "loader_batch",
    "A data loader gives out a batch, or raises. loader (lent), pass_id; batch: int, the number of"
    " the request; index: int, its place among those given out; worker: int | None; seed: int |"
    " None, the worker's; indices: what was asked for, None of a stream; value: the batch (lent);"
    " error: str, what is raised instead; began (it was asked for), ended: float.",
)
collective_begin = Topic(
    "collective_begin", "A collective starts. name: str; rank: int; nbytes: int."
)
collective_end = Topic(
    "collective_end", "A collective ended. name: str; rank: int; seconds: float."
)

TOPICS: dict[str, Topic] = {v.name: v for v in list(globals().values()) if isinstance(v, Topic)}
