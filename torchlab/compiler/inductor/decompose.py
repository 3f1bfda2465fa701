"""Operators replaced by simpler ones that the code generator fuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core import events
from torchlab._core.backends.meta import MetaArray
from torchlab._core.kind import kind
from torchlab._core.tape import NOGRAD, TLS
from torchlab._core.tensor import Tensor
from torchlab.compiler.capture.fake import FakeMode, Value
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node, map_arg

_KEEP = frozenset(
    ("convolution", "_scaled_dot_product_attention", "max_pool2d_with_indices", "embedding")
)
"""Library calls that no fusion beats."""


def wanted(op: Any, args: Any) -> Callable[..., Any] | None:
    """The decomposition of `op`, if the code generator gains from it."""
    if op.decompose is None or op.expr is not None or op.family == "composite" or op.name in _KEEP:
        return None
    return op.decompose


def decomposed(graph: Graph) -> Graph:
    """The same computation after decompositions; values, origins and the order of inputs stay."""
    mode = FakeMode(decompose=wanted)
    values: dict[Node, Any] = {}
    was = TLS.grad
    TLS.grad = False
    NOGRAD.append(0)
    try:
        for node in graph.nodes:
            if node.op == "placeholder":
                f = _fake(node.meta["val"])
                mode.placeholder(f, "input")
                values[node] = f
            elif node.op == "output":
                results = map_arg(node.args[0], lambda n: values[n])
                mode.graph.output([mode.node_of(r) for r in results])
            elif not hasattr(node.target, "schema"):  # operator.getitem
                values[node] = values[node.args[0]][node.args[1]]
            else:
                mode.origin = node.meta.get("origin")
                args, kwargs = map_arg((node.args, node.kwargs), lambda n: values[n])
                values[node] = mode.__torch_dispatch__(
                    node.target, (), positional(node.target, args, kwargs), {}
                )
    finally:
        NOGRAD.pop()
        TLS.grad = was
    mode.graph.eliminate_dead_code()
    if events.graph_pass.listeners:
        events.graph_pass.emit(name="decompose", before=str(graph), after=str(mode.graph))
    return mode.graph


def positional(op: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """All arguments of an operator by position, defaults included."""
    result = list(args)
    for a in op.schema.arguments[len(args) :]:
        result.append(kwargs[a.name] if a.name in kwargs else a.default)
    return tuple(result)


def _fake(v: Value) -> Tensor:
    f = object.__new__(Tensor)
    f._a = MetaArray(v.shape, v.dtype.np, v.stride)
    k = kind(v.dtype)
    f._k = k.c if f._a.flags.c_contiguous else k.v
    f._s = f._v = f._g = f._e = None
    return f
