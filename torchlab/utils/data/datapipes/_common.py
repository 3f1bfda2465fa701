"""What several data pipes need."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any


def warn_of_local(fn: Callable[..., Any]) -> None:
    """Warn of a function that a worker process could not be sent."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    local = getattr(fn, "__name__", "") == "<lambda>" or "<locals>" in getattr(
        fn, "__qualname__", ""
    )
    if local:
        warnings.warn(
            "Local function is not supported by pickle, please use regular python function or"
            " functools.partial instead.",
            stacklevel=3,
        )


def check_columns(fn: Callable[..., Any], columns: Any) -> None:
    """ValueError if `fn` cannot be called with as many arguments as there are columns."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:
        return  # some builtin functions do not tell
    count = len(columns) if isinstance(columns, (list, tuple)) else 1
    named = fn.func if isinstance(fn, functools.partial) else fn
    head = f"The function {getattr(named, '__name__', named)} takes"
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in positional)
    keywords = sum(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    if keywords:
        raise ValueError(
            f"{head} {keywords} non-default keyword-only parameters, which is not allowed."
        )
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        most, total = count, count
    else:
        most, total = len(positional), len(parameters)
    if count > total:
        raise ValueError(f"{head} {total} parameters, but {count} are required.")
    if needed > count or most < count:
        takes = needed if needed > count else most
        raise ValueError(f"{head} {takes} positional parameters, but {count} are required.")


def need_length(pipe: Any, source: Any) -> int:
    """`len(source)`; TypeError that speaks of `pipe` if it has none."""
    try:
        return len(source)
    except TypeError:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length") from None


def length_of(pipe: Any, sources: Any) -> list[int]:
    """The lengths of several pipes; TypeError if one has none."""
    return [need_length(pipe, s) for s in sources]
