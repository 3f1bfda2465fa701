"""Put groups of nodes into submodules.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node
from torchlab.fx.passes.tools_common import stable_topological_sort
from torchlab.fx.passes.utils.common import lift_subgraph_as_module
from torchlab.fx.proxy import Proxy

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: list[Node]) -> list[Node]:
    """The nodes so that each comes after those of them that it reads."""
    waiting = {n: sum(x in set(nodes) for x in n.all_input_nodes) for n in nodes}
    ready = [n for n, count in waiting.items() if count == 0]
    done: list[Node] = []
    while ready:
        node = ready.pop(0)
        done.append(node)
        for user in node.users:
            if user in waiting:
                waiting[user] -= 1
                if waiting[user] == 0:
                    ready.append(user)
    if len(done) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return done


def validate_partition(partition: list[Node]) -> bool:
    """Whether the nodes can be one call: no way leads out of them and back."""
    own = set(partition)
    at: list[Node] = [u for n in partition for u in n.users if u not in own]
    seen: set[Node] = set(at)
    while at:
        node = at.pop()
        for user in node.users:
            if user in own:
                return False
            if user not in seen:
                seen.add(user)
                at.append(user)
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """(module, inputs, outputs): the nodes of `gm`, in topological order, as a module of their own,
    and the nodes of `gm` that it reads and whose values it gives. `gm` stays as it is."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(
                f"{node} doesn't belong to passed in graph module {gm._get_name()}"
            )
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    own = set(nodes) if partition_lookup_table is None else set(partition_lookup_table)
    graph = Graph()
    inputs: dict[Node, Node] = {}
    copies: dict[Node, Node] = {}

    def input_of(x: Node) -> Node:
        if x in copies:
            return copies[x]
        if x not in inputs:
            inputs[x] = graph.placeholder(x.name, type_expr=x.type)
            inputs[x].meta = x.meta.copy()
        return inputs[x]

    for node in nodes:
        copies[node] = graph.node_copy(node, input_of)
    outputs = {n: copies[n] for n in nodes if any(u not in own for u in n.users)}
    results = tuple(outputs.values())
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    made, _ = lift_subgraph_as_module(gm, graph, comp_name="", class_name=module_name)
    return made, tuple(inputs), tuple(outputs)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Let `gm` call `sub_gm` for `orig_outputs`, after the last of them or `insertion_point`."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    last = insertion_point if insertion_point is not None else max(orig_outputs)
    with gm.graph.inserting_after(last):
        call = gm.graph.call_module(name, args=orig_inputs)
    results = sub_gm.graph.output_node().args[0]
    if not isinstance(results, (tuple, list)):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    with gm.graph.inserting_after(call):
        proxy = Proxy(call)
        picked = [proxy[i].node for i in reversed(range(len(orig_outputs)))][::-1]
    for old, new in zip(orig_outputs, picked, strict=True):
        new.meta.pop("origin", None)
        old.replace_all_uses_with(new, propagate_meta=True)
    call.meta["val"] = tuple(n.meta.get("val") for n in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Remove nodes that have been put elsewhere, in topological order."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule,
    partitions: list[dict[Node, int | None]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """`gm` with each group of nodes in a submodule `<prefix><number>`."""
    for i, partition in enumerate(partitions):
        nodes = sorted(partition)  # the graph's order is a topological one
        sub, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{i}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, sub, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    return stable_topological_sort(gm)
