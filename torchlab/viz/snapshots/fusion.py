"""A compiled graph as data: nodes, the kernels they were fused into, and why others were not."""

from __future__ import annotations

from typing import TypedDict

from torchlab.viz.snapshots.common import Source


class IRNode(TypedDict):
    """A node of the lowered graph. `kind`: 'input', 'op' or 'output'."""

    id: str
    kind: str
    op: str
    shape: list[int]
    dtype: str
    origin: Source | None  # the user's line
    lines: list[int]  # lines of the group's source that compute it, from 1


class Group(TypedDict):
    """One kernel and the nodes in it."""

    id: str
    name: str
    nodes: list[str]
    language: str  # 'cpp' | 'cuda' | 'python'
    source: str


class Rejection(TypedDict):
    """Two nodes that the scheduler looked at and did not fuse."""

    first: str
    second: str
    reason: str


class FusionSnapshot(TypedDict):
    """The whole picture."""

    kind: str  # 'fusion'
    version: int
    name: str
    nodes: list[IRNode]
    edges: list[list[str]]  # pairs [source id, target id]
    groups: list[Group]
    rejections: list[Rejection]
