"""Named blocks of a program, for profilers: what lies between a begin and an end of one thread.

`record_function`, steps of optimizers and their like are blocks. Who looks on stands in LISTENERS;
those who have a block to tell of ask first, and build its name only for somebody:

    if blocks.LISTENERS:
        with blocks.block(f"Optimizer.step#{name}.step"):
            return step()
    return step()
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol


class Listener(Protocol):
    """Somebody who looks on."""

    def block_begins(self, name: str) -> Any:
        """A block begins. What it returns, it gets back at the end."""

    def block_ends(self, token: Any) -> None:
        """The block ends that `token` is from."""


LISTENERS: list[Listener] = []

Opened = list[tuple[Listener, Any]]
"""Who was told of a beginning, and their tokens."""


def begin(name: str) -> Opened:
    """Tell all who look on that a block begins."""
    return [(listener, listener.block_begins(name)) for listener in LISTENERS]


def end(opened: Opened) -> None:
    """Tell those who know of the beginning, the last first."""
    for listener, token in reversed(opened):
        listener.block_ends(token)


@contextlib.contextmanager
def block(name: str) -> Iterator[None]:
    """What runs inside is a block; it ends with an exception, too."""
    opened = begin(name)
    try:
        yield
    finally:
        end(opened)


__all__ = ["LISTENERS", "Listener", "Opened", "begin", "block", "end"]
