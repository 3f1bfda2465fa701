"""Unique names for the nodes of a graph and for the globals of its code."""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any

_NUMBERED = re.compile(r"(.*)_(\d+)$")
_TAKEN = frozenset(("self", "torch", "inf", "nan", "device", "fx_pytree", "pytree", "NoneType"))


class Names:
    """Gives each object a name that nobody else has, near to the one wished for."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}
        self._of: dict[int, str] = {}

    def create(self, candidate: str, obj: Any = None) -> str:
        """A new name; for an `obj` that has one already, that."""
        if obj is not None and id(obj) in self._of:
            return self._of[id(obj)]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = "_" + candidate
        base, number = candidate, None
        match = _NUMBERED.match(candidate)
        if match is not None:
            base, number = match[1], int(match[2])
        name = candidate
        if name in self._used or self._illegal(name):
            number = self._next.get(base, number or 0)
            while True:
                number += 1
                name = f"{base}_{number}"
                if name not in self._used and not self._illegal(name):
                    break
            self._next[base] = number
        self._used.add(name)
        if obj is not None:
            self._of[id(obj)] = name
        return name

    @staticmethod
    def _illegal(name: str) -> bool:
        return keyword.iskeyword(name) or name in _TAKEN or (hasattr(builtins, name))


def snake(name: str) -> str:
    """`LayerNorm` and `__getitem__` as the name of a value: `layer_norm`, `getitem`."""
    name = name.rsplit(".", 1)[-1] if "." in name and not name.replace(".", "").isalnum() else name
    text = re.sub(r"(?<!^)(?<![A-Z_])(?=[A-Z])", "_", name).lower().replace(".", "_")
    return text.strip("_") or "value"
