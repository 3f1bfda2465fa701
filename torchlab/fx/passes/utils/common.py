"""Making modules of parts of graphs, and comparing graphs.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from typing import Any

from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.passes.utils.matcher_utils import SubgraphMatcher
from torchlab.nn.module import Module

__all__ = ["HolderModule", "lift_subgraph_as_module", "compare_graphs"]


class HolderModule(Module):
    """A module that has the given submodules, and nothing else."""

    def __init__(self, d: dict[str, Module | None]) -> None:
        super().__init__()
        for k, v in d.items():
            self.add_module(k, v)


def lift_subgraph_as_module(
    gm: GraphModule,
    subgraph: Graph,
    comp_name: str = "",
    class_name: str = "GraphModule",
) -> tuple[GraphModule, dict[str, str]]:
    """(module, names): `subgraph`, whose targets are paths in `gm`, with a copy of the attributes
    that it names. names: path in `gm` → path below `comp_name`."""
    holder = HolderModule({})
    names: dict[str, str] = {}
    for n in subgraph.nodes:
        if n.op not in ("call_module", "get_attr"):
            continue
        names[n.target] = f"{comp_name}.{n.target}"
        own: Any = holder
        theirs: Any = gm
        *prefix, last = n.target.split(".")
        for part in prefix:
            theirs = getattr(theirs, part)
            if not hasattr(own, part):
                own.add_module(part, HolderModule({}))
            own = getattr(own, part)
        value = getattr(theirs, last)
        if not isinstance(value, Module) and last in theirs.__dict__.get("_buffers", {}):
            own.register_buffer(last, value)
        elif not hasattr(own, last):
            setattr(own, last, value)
    return GraphModule(holder, subgraph, class_name), names


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs do the same in the same way, whatever their nodes are called."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(left.nodes) == len(right.nodes) and len(matcher.match(right)) > 0
