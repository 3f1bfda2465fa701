"""Finding a pattern in a graph.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.replace_pattern
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from torchlab._core.pytree import tree_flatten
from torchlab._core.tensor import Tensor
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node
from torchlab.fx.operator_schemas import normalize_function

__all__ = ["SubgraphMatcher", "InternalMatch"]


@dataclass
class InternalMatch:
    """A place in a graph that looks like the pattern.

    anchors: where the search began, upwards; nodes_map: the pattern's node → the graph's;
    placeholder_nodes: what stands for the pattern's inputs; returning_nodes: for its outputs.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors,
            self.nodes_map.copy(),
            self.placeholder_nodes.copy(),
            self.returning_nodes.copy(),
        )


class SubgraphMatcher:
    """Finds the places that look like `pattern`.

    match_output: the output node must match, too; match_placeholder: placeholders match only
    placeholders; remove_overlapping_matches: no node is in two places; ignore_literals: numbers and
    strings may differ.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError(
                "SubgraphMatcher cannot be initialized with an empty pattern: give it a graph with "
                "an output"
            )
        for node in pattern.nodes:
            if node.op != "output" and not node.users and not node.is_impure():
                raise AssertionError(
                    "SubgraphMatcher cannot be initialized with an pattern with dead code"
                )
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = (
            [output] if match_output else [n for n in output.all_input_nodes if len(n.users) == 1]
        )

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Whether two get_attr nodes read alike things: tensors of any value, equal others."""
        if not isinstance(pn.target, str) or not isinstance(gn.target, str):
            raise AssertionError("the target of get_attr is a path")
        pattern_value = _attribute(pn)
        graph_value = _attribute(gn)
        if isinstance(graph_value, Tensor):
            return isinstance(pattern_value, Tensor)
        return (
            bool(pattern_value == graph_value)
            if pattern_value is not None
            else (pn.target == gn.target)
        )

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return bool(pn.target == gn.target)

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether inner values of the place are used by nobody else."""
        looked_up = {
            gn: pn
            for pn, gn in nodes_map.items()
            if pn.op != "placeholder" and isinstance(gn, Node)
        }
        for gn, pn in looked_up.items():
            if pn in self.pattern_returning_nodes:
                continue
            if any(user not in looked_up for user in gn.users):
                return False
        return True

    def _remove_overlapping_matches(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        kept: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in matches:
            own = {
                gn
                for pn, gn in match.nodes_map.items()
                if pn.op not in ("placeholder", "output") and isinstance(gn, Node)
            }
            if taken & own:
                continue
            taken |= own
            kept.append(match)
        return kept

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node) and isinstance(gn, Node):
            raise AssertionError("pn and gn cannot both be Node")
        if isinstance(pn, Node):
            if pn.op != "placeholder":
                return False
            if pn in match.nodes_map:
                known = match.nodes_map[pn]
                return not isinstance(known, Node) and bool(known == gn)
            match.nodes_map[pn] = gn
            return True
        if isinstance(gn, Node):
            return False
        return self.ignore_literals or (type(gn) is type(pn) and bool(gn == pn))

    def _match_nodes(
        self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = ""
    ) -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is known for known in match.nodes_map.values()):
            return False
        if not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        saved = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        if self._arguments_match(pn, gn, match):
            return True
        match.nodes_map = saved.nodes_map
        return False

    def _arguments_match(self, pn: Node, gn: Node, match: InternalMatch) -> bool:
        p_args, p_kwargs, g_args, g_kwargs = pn.args, pn.kwargs, gn.args, gn.kwargs
        if pn.op == "call_function" and (
            len(p_args) != len(g_args) or p_kwargs.keys() != g_kwargs.keys()
        ):
            both = _normal(pn), _normal(gn)
            if both[0] is None or both[1] is None:
                return False
            (p_args, p_kwargs), (g_args, g_kwargs) = both
        if p_kwargs.keys() != g_kwargs.keys():
            return False
        p_flat, p_spec = tree_flatten([_plain(p_args), [_plain(p_kwargs[k]) for k in p_kwargs]])
        g_flat, g_spec = tree_flatten([_plain(g_args), [_plain(g_kwargs[k]) for k in p_kwargs]])
        if len(p_flat) != len(g_flat) or p_spec != g_spec:
            return False
        for a, b in zip(p_flat, g_flat, strict=True):
            if isinstance(a, Node) and isinstance(b, Node):
                if not self._match_nodes(a, b, match):
                    return False
            elif not self._match_literals(a, b, match):
                return False
        return True

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places of `graph`, the first one first."""
        candidates: list[tuple[Node, list[Node]]] = []
        for pattern_anchor in self.pattern_anchors:
            found = [
                n for n in graph.nodes if self._nodes_are_equal(pattern_anchor, n, node_name_match)
            ]
            candidates.append((pattern_anchor, found))
        matches: list[InternalMatch] = []

        def search(i: int, match: InternalMatch) -> None:
            if i == len(candidates):
                match.placeholder_nodes = [
                    match.nodes_map[pn]
                    for pn in self.pattern_placeholder_nodes
                    if pn in match.nodes_map
                ]
                match.returning_nodes = [match.nodes_map[pn] for pn in self.pattern_returning_nodes]
                matches.append(match)
                return
            pattern_anchor, found = candidates[i]
            for node in found:
                trial = copy.copy(match)
                if self._match_nodes(pattern_anchor, node, trial, node_name_match):
                    search(i + 1, trial)

        search(0, InternalMatch(anchors=self.pattern_anchors))
        matches = [m for m in matches if self._is_contained(m.nodes_map)]
        if self.remove_overlapping_matches:
            matches = self._remove_overlapping_matches(matches)
        return matches


def _normal(n: Node) -> Any:
    try:
        return normalize_function(n.target, n.args, n.kwargs, normalize_to_only_use_kwargs=True)
    except RuntimeError:  # several overloads fit
        return None


def _plain(a: Any) -> Any:
    """Nested arguments with ordinary lists, so that they compare by their structure."""
    if isinstance(a, (list, tuple)) and not hasattr(a, "_fields"):
        return [_plain(x) for x in a]
    if isinstance(a, dict):
        return {k: _plain(v) for k, v in a.items()}
    if isinstance(a, slice):
        return [_plain(x) for x in (a.start, a.stop, a.step)]
    return a


def _attribute(n: Node) -> Any:
    at: Any = n.graph.owning_module
    for part in n.target.split("."):
        at = getattr(at, part, None)
    return at
