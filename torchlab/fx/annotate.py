"""Types for values while they are traced.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from typing import Any

from torchlab.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: type) -> Any:
    """`val`; if it is a Proxy, its node gets this type. RuntimeError if it has another one."""
    if not isinstance(val, Proxy):
        return val
    if val.node.type is not None:
        raise RuntimeError(
            f"Tried to annotate a value that already had a type on it! Existing type is "
            f"{val.node.type} and new type is {type}. This could happen if you tried to annotate "
            "a function parameter value (in which case you should use the type slot on the "
            "function signature) or you called annotate on the same value twice"
        )
    val.node.type = type
    return val
