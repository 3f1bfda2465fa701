"""What example arguments are made of: descriptions from which `samples.make` makes tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class F:
    """A float64 tensor of this shape. Its values are all different, at least 0.005 apart, within
    `low` … `high`, so that no finite difference crosses a kink or changes an order."""

    shape: tuple[int, ...] = (2, 3)
    low: float = 0.2
    high: float = 0.95


@dataclass(frozen=True)
class I:  # noqa: E742
    """An int64 tensor with these elements."""

    values: Any


@dataclass(frozen=True)
class B:
    """A bool tensor of this shape, about half of it true (the first element always)."""

    shape: tuple[int, ...] = (2, 3)


@dataclass(frozen=True)
class C:
    """A complex128 tensor of this shape."""

    shape: tuple[int, ...] = (2, 3)


@dataclass(frozen=True)
class M:
    """A well-conditioned symmetric positive matrix of n rows."""

    n: int = 3
