"""Nodes under another name: PyTorch's, where it has an operator of its own for what is put together
from others here."""

from __future__ import annotations

from typing import Any

_MADE: dict[Any, type] = {}


def renamed(node: Any, name: str, places: tuple[int, ...] | None = None) -> Any:
    """The node as one of a class called `name`; `places`: which of its edges PyTorch's node has,
    None for all."""
    cls = type(node)
    made = _MADE.get((cls, name, places))
    if made is None:
        facts = {"__slots__": (), "__module__": cls.__module__, "places": places}
        made = _MADE[cls, name, places] = type(name, (cls,), facts)
    node.__class__ = made
    return node


__all__ = ["renamed"]
