"""Cutting the joint graph: what the forward must keep, and a graph for each side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchlab._core.tensor import Tensor
from torchlab.compiler.aot.budget import chosen
from torchlab.compiler.aot.joint import Joint
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node

CHEAP = frozenset(
    (
        "t",
        "transpose",
        "permute",
        "view",
        "_unsafe_view",
        "expand",
        "unsqueeze",
        "squeeze",
        "detach",
        "alias",
    )
)
"""Views are made again in backward rather than kept."""


@dataclass
class Parts:
    """forward returns its outputs and then `saved` values; backward takes these, then the
    tangents, then the
    extra tensors, and returns the gradients of `wanted` inputs.

    saved: (kind, number): "input" i, "output" i, or "value" i (the forward's i-th extra result).
    """

    forward: Graph
    backward: Graph
    saved: list[tuple[str, int]]
    values: int
    wanted: list[int]
    extra: list[Tensor]


def _read(
    nodes: list[Node], needed: set[Node], j: Joint, repeated: Callable[[Node], bool]
) -> tuple[dict[Node, None], set[Node]]:
    """What backward reads of the forward: the nodes that are kept, and those that are computed
    again because `repeated` says so, from what is kept."""
    keep: dict[Node, None] = {}
    again: set[Node] = set()

    def want(start: Node) -> None:
        stack = [start]
        while stack:
            n = stack.pop()
            if n not in j.forward or n in again:
                continue
            if repeated(n):
                again.add(n)
                stack += reversed(n.all_input_nodes)
            else:
                keep.setdefault(n)

    for n in nodes:
        if n in needed and n not in j.forward:
            for m in n.all_input_nodes:
                want(m)
    for i in sorted(j.gradients):
        want(j.gradients[i])
    return keep, again


def _is_cheap(n: Node) -> bool:
    return n.op == "call_function" and getattr(n.target, "name", "") in CHEAP


def partition(graph: Graph, j: Joint, budget: float | None = None) -> Parts:
    """Keep what backward reads of the forward; views are recomputed from what they look at. With a
    budget no more than that part of it is kept, and the rest is computed again."""
    nodes = list(graph.nodes)
    wanted = sorted(j.gradients)
    needed = _closure([j.gradients[i] for i in wanted], j)
    inputs = {n: i for i, n in enumerate(j.inputs)}
    outputs = {n: i for i, n in enumerate(j.outputs)}
    keep, again = _read(nodes, needed, j, _is_cheap)
    if budget is not None:
        free = {*inputs, *outputs}  # they are there anyway
        free |= {n for n in keep if n.op != "call_function"}
        kept = free | chosen([n for n in keep if n not in free], budget)
        keep, again = _read(nodes, needed, j, lambda n: n not in kept)
    saved: list[tuple[str, int]] = []
    values: list[Node] = []
    for n in keep:
        if n in inputs:
            saved.append(("input", inputs[n]))
        elif n in outputs:
            saved.append(("output", outputs[n]))
        else:
            saved.append(("value", len(values)))
            values.append(n)
    forward = Graph()
    table: dict[Node, Node] = {}
    for n in nodes:
        if n in j.forward:
            table[n] = forward.node_copy(n, lambda m: table[m])
    forward.output([table[n] for n in (*j.outputs, *values)])
    forward.eliminate_dead_code()
    backward = Graph()
    back: dict[Node, Node] = {}
    for n in (*keep, *j.tangents, *(n for n, _ in j.extra)):
        back[n] = backward.placeholder(n.name)
        back[n].meta = dict(n.meta)
    for n in nodes:
        if n not in back and (n in needed and n not in j.forward or n in again):
            back[n] = backward.node_copy(n, lambda m: back[m])
    backward.output([back[j.gradients[i]] for i in wanted])
    backward.eliminate_dead_code()
    return Parts(forward, backward, saved, len(values), wanted, [t for _, t in j.extra])


def _closure(ends: list[Node], j: Joint) -> set[Node]:
    """The nodes of backward that the gradients depend on."""
    found: set[Node] = set()
    stack = list(ends)
    while stack:
        n = stack.pop()
        if n not in found and n not in j.forward:
            found.add(n)
            stack += n.all_input_nodes
    return found
