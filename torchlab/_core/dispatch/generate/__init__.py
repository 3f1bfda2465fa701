"""The generated code: an operator's Python call, its in-place and out= forms, its tape node.

Every piece is source text made from the declaration when it is first needed, compiled once, and
registered in `linecache`, so that debuggers and tracebacks show it.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.generate import calls, inference, nodes, writes
from torchlab._core.dispatch.generate.faces import face

__all__ = ["build", "face"]


def build(op: Any, what: str) -> Any:
    """The form `what` of `op`: method, function, core, inplace, out, node inference or
    node_at_defaults."""
    if what == "node":
        return nodes.node_class(op)
    if what == "node_at_defaults":
        return nodes.node_class(op, nodes.plan_at_defaults(op))
    if what == "inference":
        return inference.inference_call(op)
    if what == "inplace":
        return writes.inplace_call(op)
    if what == "out":
        return writes.out_call(op)
    return calls.call(op, what)
