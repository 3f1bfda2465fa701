"""The autograd graph as data: nodes of the tape, what they saved, what backward did so far."""

from __future__ import annotations

from typing import TypedDict

from torchlab.viz.snapshots.common import Source


class TensorInfo(TypedDict):
    """What is known of a tensor without holding it."""

    shape: list[int]
    dtype: str


class Saved(TypedDict):
    """A tensor that a node keeps for backward."""

    name: str
    shape: list[int]
    dtype: str
    bytes: int
    storage: str  # equal for tensors that share memory: s0, s1 …
    version: int  # when it was saved
    current_version: int  # now; a difference makes backward fail
    freed: bool


class Node(TypedDict):
    """A node of the tape. `kind`: 'op', or 'leaf' for a tensor whose gradient is accumulated."""

    id: str  # n0, n1 …, stable between snapshots of one recording
    kind: str
    name: str  # PyTorch's grad_fn name: AddmmBackward0
    op: str
    label: str  # a leaf's parameter name, else ''
    module: str
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    saved: list[Saved]
    grad_norm: float | str | None  # 'nan' and 'inf' as texts, which JSON has no numbers for
    state: str  # 'waiting' | 'running' | 'done'
    runs: int
    source: Source | None


class Edge(TypedDict):
    """From the node that a gradient comes out of to the node it goes to."""

    src: str
    dst: str
    index: int  # which input of `src`


class AutogradSnapshot(TypedDict):
    """The whole picture; `roots` are the nodes that backward starts from."""

    kind: str  # 'autograd'
    version: int
    roots: list[str]
    nodes: list[Node]
    edges: list[Edge]


def saved_bytes(snapshot: AutogradSnapshot) -> int:
    """Bytes kept for backward; tensors that share a storage count once, at their largest."""
    by_storage: dict[str, int] = {}
    for node in snapshot["nodes"]:
        for item in node["saved"]:
            if not item["freed"]:
                known = by_storage.get(item["storage"], 0)
                by_storage[item["storage"]] = max(known, item["bytes"])
    return sum(by_storage.values())


def stale(saved: Saved) -> bool:
    """Whether the tensor was changed in place after it was saved."""
    return saved["current_version"] != saved["version"] and not saved["freed"]
