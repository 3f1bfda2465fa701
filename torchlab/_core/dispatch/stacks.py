"""Small stacks: what the generated call of `stack` runs for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_OFTEN = 100  # calls after which a compiled function is worth its making


class Stacks:
    """`fill(out, arrays)` writes arrays of one shape into the rows of `out` and returns it. For
    others it returns something else or raises ValueError. `compiled` gives a compiled one, or None;
    the operators of joining set it."""

    __slots__ = ("fill", "compiled", "_calls")

    def __init__(self) -> None:
        self.fill: Callable[[Any, list[Any]], Any] = self._counted
        self.compiled: Callable[[], Any] | None = None
        self._calls = 0

    def _counted(self, out: Any, arrays: list[Any]) -> Any:
        self._calls += 1
        if self._calls == _OFTEN:
            self.fill = (self.compiled and self.compiled()) or _by_numpy
        return _by_numpy(out, arrays)


def _by_numpy(out: Any, arrays: list[Any]) -> Any:
    out[...] = arrays
    return out


STACKS = Stacks()

__all__ = ["STACKS", "Stacks"]
