"""What passes ask of nodes and graphs.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.fx._naming import _get_qualified_name, _type_repr
from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node
from torchlab.nn.module import Module

__all__ = [
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "FxNetAccFusionsFinder",
    "legalize_graph",
    "stable_topological_sort",
]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """A target's name: `acc_ops.<name>` for a function of a module that ends in `acc_ops`."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    module = k.__module__.replace("torch._ops", "torch.ops")
    return f"{module or ''}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """The name of what a node calls: a module's class, a function's dotted name, a method."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}"
        )
    if node.op == "call_module":
        module = submodules[node.target]
        base = getattr(module, "_base_class_origin", type(module))
        return _type_repr(base)
    if node.op == "call_function":
        if "acc_ops" in (getattr(node.target, "__module__", None) or ""):
            return f"acc_ops.{node.target.__name__}"
        return _get_qualified_name(node.target)
    return str(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node's value is a tensor, as `meta["type"]` says."""
    kind = node.meta.get("type", None)
    return kind is not None and issubclass(kind, Tensor)


class FxNetAccFusionsFinder:
    """Finds groups of nodes that must stay together, since what passes between them is no
    tensor."""

    @dataclass
    class FusionGroup:
        """A group: its first place in the graph, its nodes, what they read, and those of its nodes
        whose inputs and users have still to be looked at."""

        top_node_idx: int
        nodes: set[Node]
        inputs: set[Node]
        nodes_need_process: set[Node]

        def add_node(self, node: Node) -> None:
            """One more node."""
            if node in self.nodes:
                return
            self.nodes_need_process.add(node)
            self.nodes.add(node)
            self.inputs.discard(node)
            self.inputs.update(
                n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS and n not in self.nodes
            )

    def __init__(self, module: GraphModule, acc_nodes: set[Node]) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.acc_nodes = acc_nodes

    def recursive_add_node(
        self,
        fusion_group: FxNetAccFusionsFinder.FusionGroup,
        inputs: set[Node] | list[Node],
        visited: set[Node] | None = None,
    ) -> bool:
        """Add what lies between the group and these inputs, if a way leads from them to it; whether
        one does."""
        for arg in inputs:
            if visited is not None:
                if arg in visited:
                    continue
                visited.add(arg)
            if arg.op not in CALLABLE_NODE_OPS:
                continue
            if self.nodes.index(arg) < fusion_group.top_node_idx:
                continue
            if arg in fusion_group.nodes:
                return True
            if self.recursive_add_node(fusion_group, arg.all_input_nodes, visited):
                fusion_group.add_node(arg)
                return True
        return False

    def __call__(self) -> dict[Node, set[Node]]:
        """Node → its group, for nodes that are in one. Nodes whose groups meet a node that is not
        for the accelerator leave `acc_nodes`."""
        result: dict[Node, set[Node]] = {}
        for node in list(self.acc_nodes):
            if node in result or node.op not in CALLABLE_NODE_OPS:
                continue
            if "tensor_meta" in node.meta or node not in self.acc_nodes:
                continue
            group = self.FusionGroup(
                self.nodes.index(node), {node}, set(node.all_input_nodes), {node}
            )
            while group.nodes_need_process:
                at = group.nodes_need_process.pop()
                self.recursive_add_node(group, group.inputs, visited=set())
                if "tensor_meta" not in at.meta:
                    for user in at.users:
                        if user.op in CALLABLE_NODE_OPS and user not in group.nodes:
                            group.add_node(user)
                            self.recursive_add_node(group, group.inputs, visited=set())
                for arg in at.all_input_nodes:
                    if (
                        arg.op in CALLABLE_NODE_OPS
                        and "tensor_meta" not in arg.meta
                        and arg not in group.nodes
                    ):
                        group.add_node(arg)
                        group.top_node_idx = min(group.top_node_idx, self.nodes.index(arg))
                        self.recursive_add_node(group, group.inputs, visited=set())
            if not group.nodes <= self.acc_nodes:
                self.acc_nodes -= group.nodes
            else:
                for n in group.nodes:
                    result[n] = group.nodes
        return result


def _rebuilt(gm: GraphModule, order: list[Node]) -> GraphModule:
    table: dict[Node, Node] = {}
    graph = Graph(tracer_cls=gm.graph._tracer_cls)
    for node in order:
        table[node] = graph.node_copy(node, lambda n: table[n])
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Bring the nodes into an order in which each comes after what it reads: those that are ready
    first, in the order in which they become so. RuntimeError if there is a cycle."""
    waiting = {n: len(n.all_input_nodes) for n in gm.graph.nodes}
    ready = [n for n, count in waiting.items() if count == 0]
    ready.sort(key=lambda n: n.op != "placeholder")
    order: list[Node] = []
    while ready:
        node = ready.pop(0)
        order.append(node)
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    return _rebuilt(gm, _complete(gm, order))


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Bring the nodes into an order in which each comes after what it reads, as near to the present
    one as that goes. RuntimeError if there is a cycle."""
    place = {n: i for i, n in enumerate(gm.graph.nodes)}
    waiting = {n: len(n.all_input_nodes) for n in place}
    done: set[Node] = set()
    order: list[Node] = []
    held: list[tuple[int, Node]] = []

    def emit(node: Node) -> None:
        order.append(node)
        done.add(node)
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0 and user in passed:
                heapq.heappush(held, (place[user], user))

    passed: set[Node] = set()
    for node in place:
        passed.add(node)
        if waiting[node] == 0:
            emit(node)
        while held:
            emit(heapq.heappop(held)[1])
    return _rebuilt(gm, _complete(gm, order))


def _complete(gm: GraphModule, order: list[Node]) -> list[Node]:
    if len(order) < len(gm.graph.nodes):
        left = [n for n in gm.graph.nodes if n not in set(order)]
        raise RuntimeError(f"Input graph has cycles, unable to add {left}")
    return [n for n in order if n.op != "output"] + [n for n in order if n.op == "output"]
