"""Changing targets, and the memory that values take.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torchlab._core.tensor import Tensor
from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node
from torchlab.fx.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "replace_target_nodes_with",
    "size_bytes",
    "get_size_of_all_nodes",
    "get_tensor_meta",
    "get_size_of_node",
]


def replace_target_nodes_with(
    fx_module: GraphModule,
    old_op: str,
    old_target: Callable[..., Any] | str,
    new_op: str,
    new_target: Callable[..., Any] | str,
) -> None:
    """Let all nodes of one kind and target be of another kind and target, in place."""
    graph = Graph()
    table: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args = tuple(_mapped(node.args, table))
            kwargs = {k: _mapped([v], table)[0] for k, v in node.kwargs.items()}
            if isinstance(new_target, str) != (new_op != "call_function"):
                raise AssertionError(
                    f"a node of the kind {new_op} cannot have the target {new_target!r}"
                )
            table[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            table[node] = graph.node_copy(node, lambda n: table[n])
    fx_module.graph = graph


def _mapped(values: Any, table: dict[Node, Node]) -> list[Any]:
    return [table[v] if isinstance(v, Node) else v for v in values]


class size_bytes(NamedTuple):
    """Bytes of a node's value; with those of the parameters that it alone uses."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Tensor] | None = None) -> None:
    """Every node gets `size_bytes`. args: inputs to run the graph with first, for the shapes."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)  # type: ignore[attr-defined]


def get_tensor_meta(node: Node) -> TensorMetadata:
    """`meta["tensor_meta"]`; RuntimeError if there is none."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation "
            "has run."
        )
    return meta  # type: ignore[no-any-return]


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of a node's value and, for modules, of their parameters."""
    total = 0
    if node.op == "call_module":
        module = dict(fx_module.named_modules())[node.target]
        total += sum(p.numel() for _, p in module.named_parameters())
    meta = get_tensor_meta(node)
    count = meta.shape.numel()
    total += count
    each = meta.dtype.itemsize
    return size_bytes(each * count, each * total)
