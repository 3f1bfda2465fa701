"""Pictures of graphs.

    g = FxGraphDrawer(traced, "net")
    g.get_dot_graph().write_svg("net.svg")

PyTorch gives objects of pydot; here they are torchlab's own, with the same names (see `dot`), and
Graphviz alone is needed, for the pictures.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

from torchlab.fx._naming import _type_repr, pretty_target
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node, _format_arg
from torchlab.fx.passes import dot
from torchlab.fx.passes.shape_prop import TensorMetadata
from torchlab.nn.module import Module

__all__ = ["FxGraphDrawer"]

_COLORS = (
    "AliceBlue", "Chartreuse1", "DarkSeaGreen1", "CadetBlue1", "AntiqueWhite", "LemonChiffon1",
    "PaleTurquoise1", "LavenderBlush1", "BlanchedAlmond", "MistyRose1", "DarkOrange1", "Cornsilk1",
)  # fmt: skip
_HIGHLIGHT = {"placeholder": "AliceBlue", "get_attr": "LightYellow", "output": "PowderBlue"}


class FxGraphDrawer:
    """Draws a graph module: one box for each node, with its kind, target, arguments and what is
    known of its value (`meta["tensor_meta"]`).

    ignore_getattr: leave attribute nodes out; ignore_parameters_and_buffers: of those, parameters
    and buffers only. skip_node_names_in_args: arguments that are nodes are arrows, not text.
    parse_stack_trace: show the source line. dot_graph_shape: Graphviz's shape of the boxes
    ("record"). normalize_args: name the arguments by the target's signature.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name = name
        self.dot_graph_shape = dot_graph_shape or "record"
        self.normalize_args = normalize_args
        self._options = (
            ignore_getattr,
            ignore_parameters_and_buffers,
            skip_node_names_in_args,
            parse_stack_trace,
        )
        self._dot_graphs: dict[str, dot.Dot] = {name: self._to_dot(graph_module, name)}
        for path, inner in _graph_modules(graph_module):
            self._dot_graphs[f"{name}_{path}"] = self._to_dot(inner, f"{name}_{path}")

    def get_dot_graph(self, submod_name: str | None = None) -> dot.Dot:
        """The picture of the module, or of the graph module at a path in it."""
        if submod_name is None:
            return self.get_main_dot_graph()
        return self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> dot.Dot:
        """The picture of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> dot.Dot:
        """The picture of the graph module at a path."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, dot.Dot]:
        """Name → picture, of the module and of every graph module in it."""
        return self._dot_graphs

    # ---- boxes -----------------------------------------------------------------------------------

    def _get_node_style(self, node: Node) -> dict[str, str]:
        style = {
            "shape": self.dot_graph_shape,
            "fillcolor": "#CAFFE3",
            "style": '"filled,rounded"',
            "fontcolor": "#000000",
        }
        if node.op in _HIGHLIGHT:
            style["fillcolor"] = _HIGHLIGHT[node.op]
        else:
            text = pretty_target(node.target)
            digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
            style["fillcolor"] = _COLORS[int(digest, 16) % len(_COLORS)]
        return style

    def _get_node_label(
        self, module: Module, node: Node, skip_node_names_in_args: bool, parse_stack_trace: bool
    ) -> str:
        parts = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            inner: Any = module.get_submodule(node.target)
            parts.append(f"target={node.target}")
            parts.append(f"type={_type_repr(type(inner))}")
            parts += [
                f"{name}: {getattr(inner, name)}"
                for name in getattr(inner, "__constants__", ())
                if hasattr(inner, name)
            ]
        else:
            parts.append(f"target={pretty_target(node.target)}")
            args, kwargs = self._arguments(module, node)
            if len(args) > 0:
                parts.append(f"args={_shown(args, skip_node_names_in_args)}")
            if len(kwargs) > 0:
                parts.append(f"kwargs={_shown(kwargs, skip_node_names_in_args)}")
            parts.append(f"num_users={len(node.users)}")
        parts += _metadata(node.meta.get("tensor_meta"))
        if parse_stack_trace:
            origin = node.meta.get("origin") or node.stack_trace
            if origin:
                parts.append(f"file={origin}")
        return "{" + "|".join(map(_escaped, parts)) + "}"

    def _arguments(self, module: Module, node: Node) -> tuple[Any, Any]:
        if self.normalize_args:
            try:
                normal = node.normalized_arguments(module, normalize_to_only_use_kwargs=True)
            except RuntimeError:  # several overloads fit
                normal = None
            if normal is not None:
                return normal.args, normal.kwargs
        return node.args, node.kwargs

    def _to_dot(self, graph_module: GraphModule, name: str) -> dot.Dot:
        no_attributes, no_parameters, skip_names, with_stack = self._options
        graph = dot.Dot(name, rankdir="TB")
        tensors = {
            k for k, _ in itertools.chain(graph_module.named_parameters(),
                                          graph_module.named_buffers())
        }  # fmt: skip

        def left_out(node: Node) -> bool:
            return node.op == "get_attr" and (
                no_attributes or (no_parameters and node.target in tensors)
            )

        for node in graph_module.graph.nodes:
            if left_out(node):
                continue
            label = self._get_node_label(graph_module, node, skip_names, with_stack)
            graph.add_node(dot.Node(node.name, label=label, **self._get_node_style(node)))
        for node in graph_module.graph.nodes:
            if not left_out(node):
                for user in node.users:
                    graph.add_edge(dot.Edge(node.name, user.name))
        return graph


def _graph_modules(module: Module, prefix: str = "") -> Iterator[tuple[str, GraphModule]]:
    for name, child in module.named_children():
        if isinstance(child, GraphModule):
            yield name, child


def _shown(value: Any, skip_nodes: bool) -> str:
    if not skip_nodes:
        return _format_arg(value, max_list_len=10)
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if not isinstance(v, Node)}
        return _format_arg(kept, max_list_len=10)
    return _format_arg(tuple(v for v in value if not isinstance(v, Node)), max_list_len=10)


def _metadata(meta: Any) -> list[str]:
    if meta is None:
        return []
    if isinstance(meta, TensorMetadata):
        shape = "[" + ", ".join(map(str, meta.shape)) + "]"
        found = [f"dtype={meta.dtype}", f"shape={shape}", f"requires_grad={meta.requires_grad}"]
        found.append(f"stride={meta.stride}")
        if meta.is_quantized:
            found += [f"{k}={v}" for k, v in meta.qparams.items()]
        return found
    if isinstance(meta, dict):
        return [x for v in meta.values() for x in _metadata(v)]
    if isinstance(meta, (tuple, list)):
        return [x for v in meta for x in _metadata(v)]
    return []


def _escaped(text: str) -> str:
    """Characters that Graphviz's records give a meaning, taken as they are."""
    for c in "\\{}|<>":
        text = text.replace(c, "\\" + c)
    return text.replace("\n", "\\n")
