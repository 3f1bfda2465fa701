"""Split a graph module into submodules, one for each partition of its nodes.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node, map_arg
from torchlab.fx.proxy import Proxy
from torchlab.nn.module import Module

__all__ = ["Partition", "split_module", "split_module_simple"]


class Partition:
    """The nodes that go into one submodule, what they need and what others need of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs:"
            f" {self.outputs},\n partitions depended on: {self.dependencies},\n partition"
            f" dependents: {self.dependents}"
        )


def _attribute(m: Any, path: str) -> Any:
    for part in path.split("."):
        m = getattr(m, part)
    return m


class _Split:
    """The splitting of one module."""

    def __init__(self, m: GraphModule, root_m: Module, callback: Callable[[Node], Any]) -> None:
        self.m, self.root, self.callback = m, root_m, callback
        self.partitions: dict[str, Partition] = {}
        self.of: dict[Node, str] = {}
        self.affix: str | None = None

    def assign(self) -> None:
        """Ask for every node's partition, and note what crosses between partitions."""
        for node in self.m.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            asked = self.callback(node)
            name = str(asked) if self.affix is None else f"{self.affix}_{asked}"
            partition = self.partitions.setdefault(name, Partition(name))
            partition.node_names.append(node.name)
            self.of[node] = name
        for node in self.m.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                continue
            here = self.of.get(node)

            def cross(source: Node, here: str | None = here) -> Node:
                there = self.of.get(source)
                if there == here:
                    return source
                if there is not None:
                    self.partitions[there].outputs.setdefault(source.name)
                if here is not None:
                    self.partitions[here].inputs.setdefault(source.name)
                if there is not None and here is not None:
                    self.partitions[there].dependents.setdefault(here)
                    self.partitions[here].dependencies.setdefault(there)
                return source

            map_arg((node.args, node.kwargs), cross)

    def sorted(self) -> list[str]:
        """The partitions so that each comes after those it depends on."""
        waiting = {k: set(p.dependencies) for k, p in self.partitions.items()}
        ready = [k for k, needs in waiting.items() if not needs]
        done: list[str] = []
        while ready:
            name = ready.pop()
            done.append(name)
            for k in self.partitions[name].dependents:
                waiting[k].discard(name)
                if not waiting[k]:
                    ready.append(k)
        if len(done) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return done

    def fill(self, keep_names: bool, keep_inputs: bool, renamed: dict[str, str] | None) -> None:
        """Copy the nodes into their partitions' graphs."""
        by_name = {n.name: n for n in self.m.graph.nodes}
        for partition in self.partitions.values():
            for i, name in enumerate(partition.inputs):
                source = by_name[name]
                made = partition.graph.placeholder(
                    name if keep_inputs else f"arg_{i}", type_expr=source.type
                )
                made.meta = source.meta.copy()
                partition.environment[source] = made
        for node in self.m.graph.nodes:
            if node not in self.of:
                continue
            partition = self.partitions[self.of[node]]
            args, kwargs = map_arg((node.args, node.kwargs), partition.environment.__getitem__)
            target = node.target
            if node.op == "call_module":
                target = "_".join(node.target.split("."))
                partition.targets[target] = _attribute(self.root, node.target)
                if renamed is not None:
                    renamed[f"{partition.submod_name}.{target}"] = node.target
            made = partition.graph.create_node(
                node.op, target, args, kwargs, node.name if keep_names else None, node.type
            )
            made.meta = node.meta.copy()
            partition.environment[node] = made

    def stitch(self, order: list[str], tuple_return: bool) -> GraphModule:
        """The graph that calls the submodules one after the other."""
        graph = Graph()
        values: dict[str, Any] = {}
        parts: dict[str, Any] = {}
        by_name = {n.name: n for n in self.m.graph.nodes}
        for op in ("placeholder", "get_attr"):
            for node in self.m.graph.nodes:
                if node.op != op:
                    continue
                made = graph.node_copy(node)
                values[node.name] = made
                if op == "get_attr":
                    parts[node.target] = _attribute(self.m, node.target)
        for name in order:
            partition = self.partitions[name]
            results = [partition.environment[by_name[k]] for k in partition.outputs]
            many = len(results) != 1 or tuple_return
            partition.graph.output(tuple(results) if many else results[0])
            parts[partition.submod_name] = GraphModule(partition.targets, partition.graph)
            call = graph.call_module(
                partition.submod_name, tuple(values[k] for k in partition.inputs)
            )
            if not many:
                values.update(dict.fromkeys(partition.outputs, call))
                continue
            proxy = Proxy(call)
            for i, k in enumerate(partition.outputs):
                values[k] = proxy[i].node
        for node in self.m.graph.nodes:
            if node.op == "output":
                made = graph.output(map_arg(node.args[0], lambda n: values[n.name]), node.type)
                made.meta = node.meta.copy()
        return GraphModule(parts, graph)


def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that calls submodules `submod_<k>`, where `split_callback(node)` gives k.

    root_m: where the submodules of `m` are. qualname_map: is filled with "path in the result" →
    "path in root_m". keep_original_order: call the submodules in the order of their first nodes.
    keep_original_node_name, keep_original_input_name: names inside the submodules. partition_affix:
    `submod_<affix>_<k>`. tuple_return: submodules with one result give a tuple, too.

    Raises:
        RuntimeError: two partitions need each other.
    """
    work = _Split(m, root_m, split_callback)
    work.affix = partition_affix
    work.assign()
    order = work.sorted()
    if keep_original_order:
        order = list(work.partitions)
    work.fill(bool(keep_original_node_name), keep_original_input_name, qualname_map)
    return work.stitch(order, tuple_return)


def split_module_simple(
    m: GraphModule,
    node_to_partition: dict[Node, int],
    *,
    partition_affix: str | None = None,
) -> GraphModule:
    """`split_module` with the nodes' partitions in a dict; names are kept, results are tuples."""
    return split_module(
        m,
        m,
        lambda n: node_to_partition[n],
        keep_original_order=True,
        keep_original_node_name=True,
        partition_affix=partition_affix,
        tuple_return=True,
    )
