"""Calls that compute the same are made once.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.pytree import tree_flatten
from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.immutable_collections import immutable_list
from torchlab.fx.node import Node, _draws, _random
from torchlab.fx.passes.infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]


def get_CSE_banned_ops() -> set[Any]:
    """Names of operators whose calls differ though their arguments do not: those that draw, and
    those that make uninitialised memory."""
    return set(_BANNED)


_BANNED = ("empty", "empty_like", "empty_strided", "new_empty")


class CSEPass(PassBase):
    """Common subexpressions: `graph_module` with each computed once.

    banned_ops: targets (or the names of aten operators) to leave alone.
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        super().__init__()
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module: GraphModule) -> PassResult:
        """(a module with the new graph, whether anything changed)."""
        graph = Graph()
        modified = False
        table: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        for n in graph_module.graph.nodes:
            if n.op in ("placeholder", "output", "get_attr") or self._leave(n):
                table[n] = graph.node_copy(n, lambda x: table[x])
                continue
            key = _key(n, table)
            if key in known:
                modified = True
                table[n] = known[key]
                continue
            table[n] = graph.node_copy(n, lambda x: table[x])
            if key is not None:
                known[key] = table[n]
        return PassResult(GraphModule(graph_module, graph), modified)

    def _leave(self, n: Node) -> bool:
        name = getattr(n.target, "_opname", getattr(n.target, "__name__", n.target))
        packet = getattr(n.target, "overloadpacket", n.target)
        return (
            n.op != "call_function"
            or n.is_impure()
            or _random(n.target)
            or _draws(n.target)
            or name in _BANNED
            or packet in self.banned_ops
            or n.target in self.banned_ops
        )


def _key(n: Node, table: dict[Node, Node]) -> Any:
    """What two calls must share to be one; None where that cannot be said."""
    leaves, spec = tree_flatten([_list(n.args), _list(n.kwargs)])
    parts = tuple((table[x], Node) if isinstance(x, Node) else (x, type(x)) for x in leaves)
    key = (n.target, parts, str(spec))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _list(a: Any) -> Any:
    if isinstance(a, slice):
        return ["slice", _list(a.start), _list(a.stop), _list(a.step)]
    if isinstance(a, (tuple, list, immutable_list)):
        return [_list(x) for x in a]
    if isinstance(a, dict):
        return {k: _list(v) for k, v in sorted(a.items())}
    return a
