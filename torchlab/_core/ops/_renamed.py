"""Nodes under another name: PyTorch's, where it has an operator of its own for what is put together
from others here."""

from __future__ import annotations

from typing import Any

_MADE: dict[tuple[type, str, int], type] = {}


def renamed(node: Any, name: str, skipped: int = 0) -> Any:
    """The node as one of a class called `name`; `skipped`: how many of its edges belong to
    arguments that PyTorch's node does not know."""
    cls = type(node)
    made = _MADE.get((cls, name, skipped))
    if made is None:
        facts = {"__slots__": (), "__module__": cls.__module__, "skipped": skipped}
        made = _MADE[cls, name, skipped] = type(name, (cls,), facts)
    node.__class__ = made
    return node


__all__ = ["renamed"]
