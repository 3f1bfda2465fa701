"""The joint graph: the forward that was captured, then what backward would do, in the same graph.

The capture's fake tensors carry a real tape. Its nodes' formulas are operators, so running them
under the
same mode writes the backward into the graph. They run with recording on: then they take the form
that is
made of simple operators, which fuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.ops.backward import sum_to_shape
from torchlab._core.tape import AccumulateGrad, Out
from torchlab._core.tensor import Tensor
from torchlab.compiler.capture.fake import fake_like
from torchlab.compiler.capture.segment import Captured
from torchlab.fx.node import Node


@dataclass
class Joint:
    """forward: nodes that belong to the forward. outputs: the forward's result nodes;
    differentiable: the
    numbers of those with a tangent; tangents: placeholders of these. inputs: the forward's
    placeholders;
    gradients: input number → node. extra: tensors that only backward reads, behind their
        placeholders."""

    forward: set[Node]
    inputs: list[Node]
    outputs: list[Node]
    differentiable: list[int]
    tangents: list[Node]
    gradients: dict[int, Node]
    extra: list[tuple[Node, Tensor]]


def joint(captured: Captured) -> Joint:
    """Trace the backward of `captured` into its graph (whose output node is removed)."""
    mode, graph = captured.mode, captured.graph
    graph.erase_node(graph.output_node())
    forward = set(graph.nodes)
    count = len(captured.fakes)
    inputs = [mode.node_of(f) for f in captured.fakes]
    outputs = [mode.node_of(t) for t in captured.outputs]
    roots = [(i, t) for i, t in enumerate(captured.outputs) if t.requires_grad]
    tangents: list[Node] = []
    work: list[tuple[Any, Tensor]] = []
    for _, t in roots:
        g = fake_like(t, False)
        tangents.append(mode.placeholder(g, "tangent"))
        work.append((t._e, g))
    positions = {id(f._e): i for i, f in enumerate(captured.fakes) if type(f._e) is AccumulateGrad}
    with mode:
        found = _walk(work)
    gradients = {positions[k]: mode.node_of(g) for k, g in found.items() if k in positions}
    fakes = mode.fakes[count + len(tangents) :]
    extra = [(mode.node_of(f), t) for f, t in zip(fakes, mode.inputs[count:], strict=True)]
    return Joint(forward, inputs, outputs, [i for i, _ in roots], tangents, gradients, extra)


def _walk(roots: list[tuple[Any, Tensor]]) -> dict[int, Tensor]:
    """Run the tape's nodes, the newest first; the gradients of leaves by id of their edge."""
    waiting: dict[Any, Any] = {}
    leaves: dict[int, Tensor] = {}
    heap: list[tuple[int, int, Any]] = []
    counter = 0

    def deliver(edge: Any, g: Any) -> None:
        nonlocal counter
        node, nr = (edge.node, edge.nr) if type(edge) is Out else (edge, 0)
        if type(node) is AccumulateGrad:
            leaf = node.leaf()
            if leaf is not None:
                g = _fit(g, leaf._a.shape, leaf._k)
                have = leaves.get(id(node))
                leaves[id(node)] = g if have is None else aten.add(have, g)
            return
        shape, k = node._outs[nr] if node._outs is not None else (node.shape, node.k)
        g = _fit(g, shape, k)
        if node not in waiting:
            waiting[node] = [None] * (len(node._outs) if node._outs is not None else 1)
            counter += 1
            heappush(heap, (-node._seq, counter, node))
        have = waiting[node][nr]
        waiting[node][nr] = g if have is None else aten.add(have, g)

    for edge, g in roots:
        deliver(edge, g)
    while heap:
        node = heappop(heap)[2]
        grads = waiting.pop(node)
        results = node.apply(tuple(grads) if node._outs is not None else grads[0])
        for edge, r in zip(
            node.next, results if type(results) is tuple else (results,), strict=False
        ):
            if edge is not None and r is not None:
                deliver(edge, r)
    return leaves


def _fit(g: Tensor, shape: Any, k: Any) -> Tensor:
    if g._a.shape != shape:
        g = sum_to_shape(g, shape)
    return g if g._k.dtype is k.dtype else aten.to(g, k.dtype)
