"""A decomposed aten graph as a program for the code generator.

Pointwise operators become their scalar expressions, reductions and views their steps; everything
else is a
library call: the operator's own kernel, on the arrays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.codegen import Builder, PointwiseStep, Program
from torchlab._core.codegen.scalar_types import CATEGORY
from torchlab._core.dispatch.compute import wrap
from torchlab.compiler.capture.fake import Value
from torchlab.compiler.inductor.decompose import positional
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node, map_arg

_COMPLEX = CATEGORY["complex64"]
_RESHAPES = frozenset(("view", "_unsafe_view", "unsqueeze", "squeeze"))
_SAME = frozenset(("detach", "alias"))
_REDUCTIONS = frozenset(("sum", "mean", "amax", "amin", "prod", "any", "all", "argmax", "argmin"))
_LISTS = frozenset(("split", "split_with_sizes", "unbind"))


def lower_graph(graph: Graph, name: str) -> Program:
    """The program of `graph`: one array for each placeholder, in order; its outputs in order."""
    return _Lowering(graph, name).run()


def type_name(v: Value) -> str:
    return v.dtype.np.name


class _Lowering:
    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.builder = Builder(name)
        self.names: dict[Node, str] = {}
        self.stashes: dict[Node, tuple[str, Any]] = {}
        self.constant = 0

    def run(self) -> Program:
        outputs: list[str] = []
        for node in self.graph.nodes:
            if node.op == "placeholder":
                v = node.meta["val"]
                self.names[node] = self.builder.input(node.name, v.shape, type_name(v), v.stride)
            elif node.op == "output":
                outputs = [self.names[n] for n in node.args[0]]
            elif not hasattr(node.target, "schema"):
                self.item(node)
            elif isinstance(node.meta["val"], Value):
                self.names[node] = self.step(node)
        return self.builder.finish(outputs)

    def step(self, node: Node) -> str:
        op = node.target
        args = dict(
            zip(
                (a.name for a in op.schema.arguments),
                positional(op, node.args, node.kwargs),
                strict=True,
            )
        )
        if self.plain(node):
            made = (
                self.pointwise(node, op, args)
                or self.reduction(node, op, args)
                or self.view(node, op, args)
            )
            if made is not None:
                return made
        return self.library(node, op, args)

    def plain(self, node: Node) -> bool:
        """Whether all types are ones that the generator computes with."""
        values = [node.meta["val"], *(n.meta["val"] for n in node.all_input_nodes)]
        return all(
            isinstance(v, Value) and CATEGORY.get(type_name(v), _COMPLEX) != _COMPLEX
            for v in values
        )

    def origin(self, node: Node) -> tuple[str, ...]:
        name = str(node.target) if hasattr(node.target, "schema") else node.name
        return (name, node.meta["origin"]) if node.meta.get("origin") else (name,)

    # ---- pointwise -------------------------------------------------------------------------------

    def pointwise(self, node: Node, op: Any, args: dict[str, Any]) -> str | None:
        expr = op.expr
        if op.name in ("_to_copy", "clone"):
            expr, args = "self", {"self": args["self"]}
        elif op.name == "clamp" and isinstance(args.get("min", 0), type(None)) | isinstance(
            args.get("max", 0), type(None)
        ):
            expr = "minimum(self, max)" if args["min"] is None else "maximum(self, min)"
            args = {k: v for k, v in args.items() if v is not None}
        elif op.name in (
            "zeros_like",
            "ones_like",
            "full_like",
            "new_zeros",
            "new_ones",
            "zeros",
            "ones",
            "full",
            "new_full",
        ):
            value = args.get("fill_value", 1 if "ones" in op.name else 0)
            if not isinstance(value, (bool, int, float)):
                return None
            expr, args = "value", {"value": value}
        elif op.family not in ("unary", "binary", "pointwise"):
            return None
        if expr is None:
            return None
        inputs, scalars = {}, {}
        for k, v in args.items():
            if isinstance(v, Node):
                inputs[k] = self.names[v]
            elif isinstance(v, (bool, int, float)):
                scalars[k] = v
            elif v is not None or k in expr:
                return None
        v = node.meta["val"]
        step = PointwiseStep(
            name=node.name,
            expr=expr,
            inputs=inputs,
            scalars=scalars,
            dtype=type_name(v),
            shape=v.shape,
            stride=_layout(v),
            origin=self.origin(node),
        )
        return self.builder.add(step)

    # ---- reductions ------------------------------------------------------------------------------

    def reduction(self, node: Node, op: Any, args: dict[str, Any]) -> str | None:
        kind = (
            {"max": "amax", "min": "amin"}.get(op.name, op.name)
            if op.overload == "default"
            else op.name
        )
        if kind not in _REDUCTIONS or not isinstance(args.get("self"), Node):
            return None
        source, v = args["self"], node.meta["val"]
        name = self.names[source]
        shape = source.meta["val"].shape
        dims = args.get("dim")
        dims = (
            (dims,)
            if isinstance(dims, int)
            else None
            if dims is None or len(dims) == 0
            else tuple(dims)
        )
        given, result = type_name(source.meta["val"]), type_name(v)
        if kind in ("any", "all"):
            if result != "bool":
                return None
        elif kind in ("argmax", "argmin"):
            if dims is None and len(shape) != 1 or 0 in shape:
                return None
        elif kind in ("amax", "amin"):
            if 0 in shape or given == "bool":
                return None
        elif given != result and (
            args.get("dtype") is not None or CATEGORY[given] == CATEGORY[result]
        ):
            name = self.builder.pointwise(
                f"{node.name}_cast", "self", dtype=result, origin=self.origin(node), self=name
            )
        return self.builder.reduce(
            node.name,
            kind.removeprefix("a") if kind in ("amax", "amin") else kind,
            name,
            dims,
            bool(args.get("keepdim", False)),
            result if kind in ("sum", "prod", "mean") else None,
            self.origin(node),
        )

    # ---- views -----------------------------------------------------------------------------------

    def view(self, node: Node, op: Any, args: dict[str, Any]) -> str | None:
        source = args.get("self")
        if not isinstance(source, Node):
            return None
        shape, have = node.meta["val"].shape, source.meta["val"].shape
        if op.name in _SAME:
            return self.names[source]
        if op.name in _RESHAPES:
            return self.add_view(node, source, "reshape", shape)
        if op.name == "expand":
            return self.add_view(node, source, "expand", shape)
        if op.name == "permute":
            return (
                self.add_view(node, source, "permute", tuple(d % len(have) for d in args["dims"]))
                if have
                else None
            )
        if op.name in ("transpose", "t"):
            if len(have) < 2:
                return self.add_view(node, source, "reshape", shape)
            order = list(range(len(have)))
            a, b = (0, 1) if op.name == "t" else (args["dim0"], args["dim1"])
            order[a], order[b] = order[b], order[a]
            return self.add_view(node, source, "permute", tuple(order))
        if op.name == "select":
            d = args["dim"] % len(have)
            return self.add_view(node, source, "select", (d, args["index"] % have[d]))
        if op.name == "slice":
            d = args["dim"] % len(have)
            start, stop, step = slice(args["start"], args["end"], args["step"]).indices(have[d])
            return self.add_view(node, source, "slice", (d, start, stop, step))
        return None

    def add_view(
        self, node: Node, source: Node, kind: str, args: tuple[int, ...], name: str | None = None
    ) -> str:
        return self.builder.view(
            name or node.name, kind, self.names[source], *args, origin=self.origin(node)
        )

    # ---- library calls ---------------------------------------------------------------------------

    def library(self, node: Node, op: Any, args: dict[str, Any]) -> str:
        inputs, rebuild = self.arguments(args)
        v = node.meta["val"]

        def call(*arrays: Any) -> Any:
            r = op.core(*rebuild(arrays))._a
            return r.copy() if any(np.may_share_memory(r, a) for a in arrays) else r

        call.__name__ = op.name
        return self.builder.extern(
            node.name, call, inputs, v.shape, type_name(v), self.origin(node), _layout(v)
        )

    def arguments(self, args: dict[str, Any]) -> tuple[list[str], Callable[[Any], list[Any]]]:
        """The values that a call reads, and a function from their arrays to the call's
        arguments.
        """
        nodes: list[Node] = []

        def number(n: Node) -> _Slot:
            nodes.append(n)
            return _Slot(len(nodes) - 1)

        template = [map_arg(a, number) for a in args.values()]
        return [self.names[n] for n in nodes], lambda arrays: [_filled(t, arrays) for t in template]

    def item(self, node: Node) -> None:
        """One of several results of an operator."""
        parent, i = node.args
        if not node.users:
            return
        op, v = parent.target, node.meta["val"]
        args = dict(
            zip(
                (a.name for a in op.schema.arguments),
                positional(op, parent.args, parent.kwargs),
                strict=True,
            )
        )
        if op.name in _LISTS and CATEGORY.get(type_name(v), _COMPLEX) != _COMPLEX:
            source = args["self"]
            shape = source.meta["val"].shape
            d = args["dim"] % len(shape)
            if op.name == "unbind":
                self.names[node] = self.add_view(node, source, "select", (d, i))
            else:
                start = sum(x.shape[d] for x in parent.meta["val"][:i])
                self.names[node] = self.add_view(
                    node, source, "slice", (d, start, start + v.shape[d], 1)
                )
            return
        if parent in self.stashes:
            first, stash = self.stashes[parent]

            def take(_: Any, i: int = i) -> Any:
                return stash.results.pop(i)

            take.__name__ = f"{op.name}_{i}"
            self.names[node] = self.builder.extern(
                node.name, take, [first], v.shape, type_name(v), self.origin(node), _layout(v)
            )
            return
        inputs, rebuild = self.arguments(args)
        stash = threading.local()
        others = [n.args[1] for n in parent.users if n.users and n is not node]

        def call(*arrays: Any) -> Any:
            results = op.core(*rebuild(arrays))
            stash.results = {k: results[k]._a for k in others}
            return results[i]._a

        call.__name__ = op.name
        self.names[node] = self.builder.extern(
            node.name, call, inputs, v.shape, type_name(v), self.origin(node), _layout(v)
        )
        self.stashes[parent] = (self.names[node], stash)


class _Slot:
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def _filled(t: Any, arrays: Any) -> Any:
    if type(t) is _Slot:
        return wrap(arrays[t.number])
    if isinstance(t, list):  # the lists of a node's arguments are immutable ones
        return [_filled(x, arrays) for x in t]
    if type(t) is tuple:
        return tuple(_filled(x, arrays) for x in t)
    return t


def _layout(v: Value) -> tuple[int, ...] | None:
    """The strides that a step can give its result; None for row-major ones."""
    return v.stride if _dense(v) else None


def _dense(v: Value) -> bool:
    """Whether the strides fill memory without gaps, in some order of the dims."""
    expected = 1
    for step, n in sorted((s, n) for s, n in zip(v.stride, v.shape, strict=True) if n != 1):
        if step != expected:
            return False
        expected *= n
    return 0 not in v.shape
