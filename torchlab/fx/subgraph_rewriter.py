"""Finding a pattern in a graph and putting something else in its place.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.replace_pattern
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchlab.fx._symbolic_trace import symbolic_trace
from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule, _assign_attr
from torchlab.fx.node import Node
from torchlab.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from torchlab.nn.module import Module

__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters", "ReplacedPatterns"]


class Match(NamedTuple):
    """`anchor`: where the match was found; `nodes_map`: the pattern's node → the graph's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A Match, and the nodes that came in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


Filter = Callable[[InternalMatch, Graph, Graph], bool]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replace each place in `gm` that looks like `pattern` by `replacement` (same parameters), in
    place.

    Places do not overlap; inner values of a place may not be used outside it.
    """
    return [
        Match(anchor=m.anchor, nodes_map=m.nodes_map)
        for m in _replace_pattern(gm, pattern, replacement)
    ]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """As `replace_pattern`, only where every filter says yes.

    match_filters: functions of (match, original graph, pattern's graph). ignore_literals: numbers
    and strings may differ from the pattern's. replacement_callback: makes the replacement for each
    match, instead of `replacement`.
    """
    return _replace_pattern(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback,
        node_name_match,
    )  # fmt: skip


def _graph(what: Any) -> Graph:
    if isinstance(what, GraphModule):
        return what.graph
    return what if isinstance(what, Graph) else symbolic_trace(what).graph


def _replace_pattern(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    graph, pattern_graph = gm.graph, _graph(pattern)
    matcher = SubgraphMatcher(
        pattern_graph,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=ignore_literals,
    )
    matches = [
        m
        for m in matcher.match(graph, node_name_match=node_name_match)
        if all(ask(m, graph, pattern_graph) for ask in match_filters or ())
    ]
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either replacement GraphModule or replacement callback")
    common = None if replacement is None else _graph(replacement)
    changed: dict[Node, Node] = {}
    done: list[ReplacedPatterns] = []
    for match in matches:
        if replacement_callback is not None:
            put = replacement_callback(match, graph, pattern_graph)
        else:
            put = common  # type: ignore[assignment]
        done.append(_replace_one(graph, pattern_graph, put, match, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return done


def _replace_one(
    graph: Graph, pattern: Graph, put: Graph, match: InternalMatch, changed: dict[Node, Node]
) -> ReplacedPatterns:
    inputs = [n for n in put.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(
            f"the pattern has {len(match.placeholder_nodes)} inputs and its replacement "
            f"{len(inputs)}; they must agree"
        )
    for pn, gn in match.nodes_map.items():  # what earlier replacements have put elsewhere
        if isinstance(gn, Node) and gn in changed:
            match.nodes_map[pn] = changed[gn]
    table: dict[Node, Any] = {}
    for own, gn in zip(inputs, match.placeholder_nodes, strict=True):
        table[own] = changed.get(gn, gn) if isinstance(gn, Node) else gn
    users = {u for n in match.returning_nodes for u in n.users}
    first_user = next((n for n in graph.nodes if n in users), None)
    with (
        graph.inserting_before(first_user)
        if first_user
        else graph.inserting_after(match.returning_nodes[-1])
    ):
        copied = graph.graph_copy(put, table)
    made = [v for k, v in table.items() if k not in inputs]
    results = copied if isinstance(copied, (tuple, list)) else (copied,)
    if len(match.returning_nodes) != len(results):
        raise AssertionError(
            f"the pattern returns {len(match.returning_nodes)} values and its replacement "
            f"{len(results)}; they must agree"
        )
    for gn, new in zip(match.returning_nodes, results, strict=True):
        gn.replace_all_uses_with(new)
        changed[gn] = new
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            gn = match.nodes_map[node]
            if not gn.users:
                graph.erase_node(gn)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _replace_attributes(gm: GraphModule, replacement: Any) -> None:
    """Give `gm` the parameters and submodules that the replacement's nodes name."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()

    def found(module: Any, target: str) -> Any:
        at = module
        for part in target.split("."):
            at = getattr(at, part, None)
            if at is None:
                return None
        return at

    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or found(gm, node.target) is not None:
            continue
        value = found(replacement, node.target)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target '
                f"{node.target}, but the referenced attribute does not exist in the replacement "
                "GraphModule"
            )
        _assign_attr(copy.deepcopy(value), gm, node.target)
    gm.graph.lint()
