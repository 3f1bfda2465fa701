"""`torch.profiler.itt`: one's own ranges and marks for Intel's VTune, through `ittapi`.

Source: https://docs.pytorch.org/docs/2.13/profiler.html#intel-instrumentation-and-tracing-technology-apis
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from typing import Any

from torchlab._core.lazy import lazy

_itt = lazy("ittapi")
_domain: list[Any] = []


def is_available() -> bool:
    """Whether the package `ittapi` is there."""
    return importlib.util.find_spec("ittapi") is not None


def _place() -> Any:
    if not _domain:
        if not is_available():
            raise RuntimeError(
                "ITT functions not installed. Are you sure you have a ITT build? (torchlab: pip"
                " install ittapi)"
            )
        _domain.append(_itt.domain("PyTorch"))
    return _domain[0]


def range_push(msg: str) -> None:
    """Open a range; ranges of a thread are nested."""
    _itt.task_begin(_place(), msg)


def range_pop() -> None:
    """End the innermost range."""
    _itt.task_end(_place())


def mark(msg: str) -> None:
    """An event without a length: a range that ends at once."""
    range_push(msg)
    range_pop()


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block. The arguments are put into the text with `str.format`."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]
