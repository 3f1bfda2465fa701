"""Finding a pattern in a graph and putting something else in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node
from torchlab.fx.tracer import symbolic_trace


@dataclass
class Match:
    """`anchor`: the last node of the place that matched; `nodes_map`: the pattern's node → the
    graph's.
    """

    anchor: Node
    nodes_map: dict[Node, Any]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replace each place in `gm` that looks like `pattern` by `replacement` (same parameters),
    in place.

    Inner values of the pattern may not be used outside the place that matches.
    """
    find, put = _graph(pattern), _graph(replacement)
    matches: list[Match] = []
    taken: set[Node] = set()
    last = find.output_node().args[0]
    for node in list(gm.graph.nodes):
        found: dict[Node, Any] = {}
        if not isinstance(last, Node) or not _match(last, node, found):
            continue
        inner = [n for p, n in found.items() if p.op != "placeholder" and isinstance(n, Node)]
        if taken & set(inner) or any(
            u not in inner for n in inner if n is not node for u in n.users
        ):
            continue
        taken.update(inner)
        inputs = [found.get(p) for p in find.nodes if p.op == "placeholder"]
        table: dict[Node, Any] = dict(
            zip([p for p in put.nodes if p.op == "placeholder"], inputs, strict=True)
        )
        with gm.graph.inserting_before(node):
            made = gm.graph.graph_copy(put, table)
        node.replace_all_uses_with(made)
        for n in sorted(inner, key=list(gm.graph.nodes).index, reverse=True):
            gm.graph.erase_node(n)
        matches.append(Match(node, found))
    gm.recompile()
    return matches


def _graph(what: Any) -> Graph:
    return what.graph if isinstance(what, GraphModule) else symbolic_trace(what).graph


def _match(p: Any, n: Any, found: dict[Node, Any]) -> bool:
    if not isinstance(p, Node):
        if isinstance(p, (tuple, list)):
            return (
                isinstance(n, type(p))
                and len(p) == len(n)
                and all(_match(a, b, found) for a, b in zip(p, n, strict=True))
            )
        return type(p) is type(n) and p == n
    if p in found:
        return found[p] is n
    if p.op == "placeholder":
        found[p] = n
        return True
    if (
        not isinstance(n, Node)
        or p.op != n.op
        or p.target != n.target
        or len(p.args) != len(n.args)
        or p.kwargs.keys() != n.kwargs.keys()
    ):
        return False
    found[p] = n
    return all(_match(a, b, found) for a, b in zip(p.args, n.args, strict=True)) and all(
        _match(p.kwargs[k], n.kwargs[k], found) for k in p.kwargs
    )
