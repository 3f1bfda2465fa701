"""Arguments that are one number for all dimensions, or one for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def each_of(x: Any, n: int) -> tuple[int, ...]:
    """`x` for each of n dimensions: (x, …, x), or x itself as a tuple if it is one already."""
    return tuple(x) if isinstance(x, Iterable) else (x,) * n
