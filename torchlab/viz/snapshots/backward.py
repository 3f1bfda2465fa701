"""A recorded backward as data: what every step received, sent, accumulated and freed.

Nothing here holds a tensor; a recording is a few numbers for each step and can be played forwards
and backwards (`torchlab.viz.playback`), kept as JSON and opened again.
"""

from __future__ import annotations

from typing import TypedDict

from torchlab.viz.snapshots.autograd import Edge, Saved, TensorInfo
from torchlab.viz.snapshots.common import Source

Size = float | str | None  # a norm; 'nan' and 'inf' as texts, which JSON has no numbers for


class Stats(TypedDict):
    """What is known of a tensor's values. `low` and `high` are of the finite ones."""

    name: str  # 'input 0', 'result', a saved value's name
    shape: list[int]
    dtype: str
    low: float | None
    high: float | None
    nan: int
    inf: int
    zero: int
    negative: int
    count: int


class BackwardNode(TypedDict):
    """A node of the tape. `kind`: 'op', or 'leaf' for a tensor whose gradient is accumulated."""

    id: str  # n0, n1 …, in the order in which they were first seen
    kind: str
    name: str  # PyTorch's grad_fn name: AddmmBackward0
    op: str
    label: str  # a leaf's name, else ''
    module: str  # where it belongs: 'encoder.layers.0'
    group: list[str]  # the same as what is folded: ['encoder: Encoder', 'layers.0: Layer']
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    saved: list[Saved]
    fed: list[Stats]  # the forward operation's tensors
    source: Source | None


class Gradient(TypedDict):
    """A gradient that a step received or sent. `to` is '' for what was received; `summed` are the
    dims of the sender's result over which a broadcast input's gradient was summed."""

    to: str
    shape: list[int]
    norm: Size
    summed: list[int]


class Accumulation(TypedDict):
    """What a leaf got: its first gradient, or one that was added."""

    first: bool
    incoming: Size
    norm: Size  # of `.grad` afterwards


class Freed(TypedDict):
    """A saved tensor that a step let go. `returned`: nobody else held its memory."""

    name: str
    bytes: int
    storage: str
    returned: bool


class Step(TypedDict):
    """One step. `kind`: 'op', 'leaf' (accumulates), 'captured' (`autograd.grad` took it)."""

    node: str
    kind: str
    run: int  # which backward() of the recording, from 0
    received: list[Gradient | None]
    sent: list[Gradient | None]
    leaf: Accumulation | None
    freed: list[Freed]
    saved_bytes: int  # held for backward after the step
    flight_bytes: int  # gradients on their way
    leaf_bytes: int  # the leaves' .grad


class Place(TypedDict):
    """An operation on a path."""

    op: str
    node: str
    module: str
    source: Source | None


class Origin(TypedDict):
    """Where a NaN or an infinity came from.

    `where`: 'forward' (an operation made it), 'data' (a tensor came with it), 'backward' (a
    gradient rule made it), 'hook' (a gradient came with it that nobody sent). `path` leads on to
    the output, or in backward to the leaf.
    """

    what: str  # 'nan' | 'inf'
    where: str
    op: str
    node: str
    module: str
    source: Source | None
    fed: list[Stats]
    gave: Stats
    why: str
    path: list[Place]
    reaches: bool  # whether it got to the output


class Broadcast(TypedDict):
    """An input that was broadcast: its gradient is summed over `dims` of the node's result."""

    node: str
    index: int
    into: str
    shape: list[int]
    to: list[int]
    dims: list[int]
    each: int  # how many values add up to one
    source: Source | None


class Write(TypedDict):
    """A saved tensor that was changed in place, and the line that wrote."""

    node: str
    name: str
    version: int
    current_version: int
    source: Source | None
    written: Source | None


class BackwardSnapshot(TypedDict):
    """The whole recording. `position` is how many steps have been played."""

    kind: str  # 'backward'
    version: int
    roots: list[str]
    nodes: list[BackwardNode]
    edges: list[Edge]
    steps: list[Step]
    start: dict[str, int]  # the bytes before the first step
    broadcasts: list[Broadcast]
    origins: list[Origin]
    writes: list[Write]
    error: dict[str, str] | None  # 'node', 'text'
    position: int
    cut: bool  # more nodes or steps came than are kept
