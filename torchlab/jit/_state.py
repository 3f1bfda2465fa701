"""Whether this thread runs a script, and what functions are marked as.

Source: https://docs.pytorch.org/docs/2.13/jit_language_reference.html#torch.jit.is_scripting
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

MARK = "_torchscript_modifier"


class _State(threading.local):
    def __init__(self) -> None:
        self.scripts = 0  # how many calls of scripts this thread is in
        self.recorder: Any = None  # of the trace that this thread makes


STATE = _State()


def is_scripting() -> bool:
    """Whether the code that asks runs as a script."""
    return STATE.scripts > 0


def is_tracing() -> bool:
    """Whether `torch.jit.trace` runs the code that asks."""
    return STATE.recorder is not None


def outside(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that a script calls and that is no script itself."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        was, STATE.scripts = STATE.scripts, 0
        try:
            return fn(*args, **kwargs)
        finally:
            STATE.scripts = was

    return call


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Leave a function as it is: scripts call it as Python, whatever it consists of. With
    `drop=True` they may name it, but not call it."""
    if callable(drop):
        setattr(drop, MARK, "ignored")
        return drop
    if kwargs or not isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )

    def mark(fn: Any) -> Any:
        setattr(fn, MARK, "unused" if drop else "ignored")
        return fn

    return mark


def unused(fn: Any) -> Any:
    """A function that scripts may name, but not call: calling it raises an error."""
    if isinstance(fn, property):
        for part in (fn.fget, fn.fset):
            if part is not None:
                setattr(part, MARK, "unused")
        return fn
    setattr(fn, MARK, "unused")
    return fn


def export(fn: Any) -> Any:
    """A method that becomes a script together with its module's `forward`."""
    setattr(fn, MARK, "exported")
    return fn


def mark_of(fn: Any) -> str | None:
    return getattr(fn, MARK, None)


__all__ = ["export", "ignore", "is_scripting", "is_tracing", "unused"]
