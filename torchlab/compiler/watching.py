"""Profilers and compiled functions: a compiled region is one call to those who look on.

Modes that only look on (they have `looks_on`) do not keep a function from running compiled. While
it does, they are off, and are told of a block "Torch-Compiled Region: name"; what runs eagerly
after all, because of a graph break, they see as ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import python_key
from torchlab._core.tape import TLS


class _Watched(threading.local):
    """Those who look on and are off, in the thread's innermost compiled region."""

    def __init__(self) -> None:
        self.away: list[Any] = []


_WATCHED = _Watched()


def onlookers() -> list[Any]:
    """The thread's modes, if all of them only look on."""
    modes = list(TLS.dispatch_modes)
    return modes if all(hasattr(m, "looks_on") for m in modes) else []


def as_region(name: str, modes: list[Any], call: Callable[[], Any]) -> Any:
    """`call()` while `modes` are off and count it as one block."""
    before, _WATCHED.away = _WATCHED.away, modes
    told = [getattr(m, "owner", m) for m in modes]
    tokens = [t.block_begins(f"Torch-Compiled Region: {name}") for t in told]
    for m in reversed(modes):
        python_key.off(m)
    try:
        return call()
    finally:
        for m in modes:
            python_key.on(m)
        for t, token in reversed(list(zip(told, tokens, strict=True))):
            t.block_ends(token)
        _WATCHED.away = before


def in_sight(call: Callable[[], Any]) -> Any:
    """`call()`, seen by those who are off because of a compiled region."""
    modes, _WATCHED.away = _WATCHED.away, []
    for m in modes:
        python_key.on(m)
    try:
        return call()
    finally:
        for m in reversed(modes):
            python_key.off(m)
        _WATCHED.away = modes


__all__ = ["as_region", "in_sight", "onlookers"]
