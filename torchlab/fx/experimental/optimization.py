"""Optimisations of modules for inference.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from torchlab import nn
from torchlab.fx._symbolic_trace import symbolic_trace
from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.interpreter import Transformer
from torchlab.fx.node import Node
from torchlab.nn.module import Module
from torchlab.nn.utils.fusion import fuse_conv_bn_eval

__all__ = [
    "matches_module_pattern",
    "replace_node_module",
    "fuse",
    "remove_dropout",
    "extract_subgraph",
    "UnionFind",
]


def _parent_name(target: str) -> tuple[str, str]:
    """(path of the module around it, its name): "a.b.c" → ("a.b", "c")."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Module]) -> bool:
    """Whether the node calls a module of the second class, on what a module of the first class
    gave."""
    if len(node.args) == 0:
        return False
    for expected, at in zip(pattern, (node.args[0], node), strict=True):
        if not isinstance(at, Node) or at.op != "call_module" or at.target not in modules:
            return False
        if type(modules[at.target]) is not expected:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Module], new_module: Module) -> None:
    """Let the node call another module."""
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """The model with each convolution and the batch norm after it made one convolution; it must be
    in eval mode. no_trace: it is a GraphModule already."""
    patterns = [
        (nn.Conv1d, nn.BatchNorm1d),
        (nn.Conv2d, nn.BatchNorm2d),
        (nn.Conv3d, nn.BatchNorm3d),
    ]
    if not inplace:
        model = copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in patterns:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            if len(node.args[0].users) > 1:  # somebody else reads the convolution's result
                continue
            conv, norm = modules[node.args[0].target], modules[node.target]
            if not norm.track_running_stats:
                continue
            replace_node_module(node.args[0], modules, fuse_conv_bn_eval(conv, norm))
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: Module) -> Module:
    """The model without its dropout layers."""
    traced = symbolic_trace(model)

    class DropoutRemover(Transformer):
        def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return DropoutRemover(traced).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """A module of these nodes, with `inputs` as its arguments and `outputs` as its results."""
    graph = Graph()
    table: dict[Node, Node] = {}
    for x in inputs:
        table[x] = graph.placeholder(x.name)
    for node in nodes:
        table[node] = graph.node_copy(node, lambda n: table[n])
    graph.output([table[x] for x in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


class UnionFind:
    """Sets of numbers that can be joined."""

    def __init__(self, n: int) -> None:
        self.parent: list[int | None] = [None] * n
        self.size: list[int] = [0] * n

    def make_set(self, v: int) -> None:
        """A set of `v` alone."""
        self.parent[v] = v
        self.size[v] = 1

    def find(self, v: int) -> int:
        """The number that stands for the set of `v`."""
        parent = self.parent[v]
        if parent is None:
            raise AssertionError(f"{v} is in no set: call make_set({v}) first")
        if parent == v:
            return v
        self.parent[v] = self.find(parent)
        return self.parent[v]  # type: ignore[return-value]

    def join(self, a: int, b: int) -> int | None:
        """Make the sets of `a` and `b` one; the number that stands for it."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return None
