"""Which nodes came from the same call in the program.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torchlab.fx.graph import Graph
from torchlab.fx.node import Node

__all__ = ["get_source_partitions", "check_subgraphs_connected", "SourcePartition"]


@dataclass
class SourcePartition:
    """The nodes of one call: what they read of others, whose values others read, and parameters."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph,
    wanted_sources: list[Any],
    filter_fn: Callable[[Node], bool] | None = None,
) -> dict[Any, list[SourcePartition]]:
    """Source → its calls, from `meta["source_fn_stack"]`, or `meta["nn_module_stack"]` where there
    is none: a class of modules or a function, as in `wanted_sources`.

    filter_fn: only partitions all of whose nodes it accepts.
    """
    groups: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        stack = node.meta.get("source_fn_stack")
        if stack:
            name, source = stack[-1]
        elif node.meta.get("nn_module_stack"):
            name, source = list(node.meta["nn_module_stack"].values())[-1]
        else:
            continue
        if source not in wanted_sources:
            continue
        groups.setdefault(source, {}).setdefault(name, []).append(node)
    found = {
        source: [_partition(nodes, source) for nodes in calls.values()]
        for source, calls in groups.items()
    }
    if filter_fn is None:
        return found
    return {
        source: kept
        for source, parts in found.items()
        if (kept := [p for p in parts if all(map(filter_fn, p.nodes))])
    }


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    own = set(nodes)
    inputs: dict[Node, None] = {}
    outputs: dict[Node, None] = {}
    params: dict[Node, None] = {}
    for node in nodes:
        for arg in node.all_input_nodes:
            if arg in own:
                continue
            if arg.op == "get_attr":
                params.setdefault(arg)
            else:
                inputs.setdefault(arg)
        if node.op == "get_attr":
            params.setdefault(node)
        if any(user not in own for user in node.users):
            outputs.setdefault(node)
    return SourcePartition(nodes, source, list(inputs), list(outputs), list(params))


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether a value of the first is an input of the second."""
    return any(n in subgraph1.nodes for node in subgraph2.nodes for n in node.all_input_nodes)
