"""Types for the parts of tuples and lists.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import operator
import typing

from torchlab.fx.graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Let `getitem` nodes have the type that the sequence's annotation gives them, in place."""
    for node in graph.nodes:
        if node.target is not operator.getitem:
            continue
        sequence, index = node.args
        if getattr(sequence, "type", None) is None:
            continue
        kind, origin = sequence.type, typing.get_origin(sequence.type)
        inner = typing.get_args(kind)
        if origin is list and inner:
            node.type = inner[0]
        elif origin is tuple and inner:
            node.type = inner[0] if len(inner) == 2 and inner[1] is ... else inner[index]
        elif hasattr(kind, "__annotations__") and hasattr(kind, "_fields"):
            node.type = list(typing.get_type_hints(kind).values())[index]
