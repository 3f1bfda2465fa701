"""Split a graph module by tags that its nodes carry.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node, map_arg
from torchlab.fx.passes.utils.common import HolderModule, lift_subgraph_as_module
from torchlab.fx.proxy import Proxy

__all__ = ["getattr_recursive", "setattr_recursive", "Component", "split_by_tags"]


def getattr_recursive(obj: object, name: str) -> Any:
    """What stands at a dotted path."""
    for part in name.split("."):
        if isinstance(obj, (list, tuple)):
            obj = obj[int(part)]
        else:
            obj = getattr(obj, part)
    return obj


def setattr_recursive(obj: object, attr: str, value: object) -> None:
    """Put a value at a dotted path."""
    *prefix, last = attr.split(".")
    for part in prefix:
        obj = getattr(obj, part)
    setattr(obj, last, value)


@dataclass
class Component:
    """A part of the graph that becomes a submodule."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> GraphModule | tuple[GraphModule, dict[str, str]]:
    """A module with one submodule for each tag, called in the order of `tags`. Every call node has
    an attribute `tag`; a node may read only nodes of its own and of earlier tags.

    return_fqn_mapping: also old path → new path of parameters and submodules. return_tuple:
    submodules with one result give a tuple, too.
    """
    parts = [Component(Graph(), i, tag) for i, tag in enumerate(tags)]
    by_tag = {c.name: c for c in parts}
    of: dict[Node, Component] = {}
    inside: dict[Node, Node] = {}
    main = Graph()
    values: dict[Node, Any] = {}
    result: Any = None
    for node in gm.graph.nodes:
        if node.op == "output":
            result = node
            map_arg(node.args[0], lambda n: _leaves(n, of))
        elif node.op == "placeholder":
            values[node] = main.node_copy(node)
        elif node.op != "get_attr":
            if not hasattr(node, "tag"):
                raise AssertionError(f"Node {node} ({node.op}: {node.target}) does not have tag")
            _into(node, by_tag[node.tag], of, inside)
    mapping: dict[str, str] = {}
    for c in parts:
        outs = tuple(inside[n] for n in c.orig_outputs)
        single = len(outs) == 1 and not return_tuple
        c.graph.output(outs[0] if single else outs)
        c.gm, names = lift_subgraph_as_module(gm, c.graph, comp_name=c.name)
        mapping.update(names)
        call = main.call_module(c.name, tuple(values[n] for n in c.orig_inputs))
        if single:
            values[c.orig_outputs[0]] = call
            continue
        proxy = Proxy(call)
        for i, n in enumerate(c.orig_outputs):
            values[n] = proxy[i].node
    for n in result.all_input_nodes if result is not None else ():
        if n.op == "get_attr" and n not in values:
            values[n] = main.node_copy(n)
    if result is not None:
        main.output(map_arg(result.args[0], lambda n: values[n])).meta = result.meta.copy()
    root: Any = HolderModule({c.name: c.gm for c in parts})
    for n in gm.graph.nodes:
        if n.op == "get_attr" and n in values:
            setattr_recursive(root, n.target, getattr_recursive(gm, n.target))
    made = GraphModuleCls(root, main)
    return (made, mapping) if return_fqn_mapping else made


def _leaves(n: Node, of: dict[Node, Component]) -> Node:
    """`n` is read outside its component."""
    c = of.get(n)
    if c is not None and n not in c.orig_outputs:
        c.orig_outputs.append(n)
    return n


def _into(node: Node, c: Component, of: dict[Node, Component], inside: dict[Node, Node]) -> None:
    """Copy a node into its component."""
    latest = max((of[n].order for n in node.all_input_nodes if n in of), default=0)
    if c.order < latest:
        raise AssertionError(f"node {node} is tagged '{c.name}', and reads a node of a later tag")
    of[node] = c

    def input_of(n: Node) -> Node:
        if n.op == "get_attr":
            if n not in c.getattr_maps:
                c.getattr_maps[n] = c.graph.get_attr(n.target, type_expr=n.type)
                c.getattr_maps[n].meta = n.meta.copy()
            return c.getattr_maps[n]
        if of.get(n) is c:
            return inside[n]
        _leaves(n, of)
        if n not in c.orig_inputs:
            c.orig_inputs.append(n)
            made = c.graph.placeholder(n.name, type_expr=n.type)
            made.meta = n.meta.copy()
            c.input_placeholders.append(made)
        return c.input_placeholders[c.orig_inputs.index(n)]

    made = c.graph.node_copy(node, input_of)
    made.tag = node.tag  # type: ignore[attr-defined]
    inside[node] = made
