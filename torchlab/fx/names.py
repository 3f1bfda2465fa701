"""Unique names for the nodes of a graph and for the globals of its code."""

from __future__ import annotations

import builtins
import keyword
import math
import re
import sys
from typing import Any, NamedTuple

from torchlab._core.device import device
from torchlab.fx import _pytree as fx_pytree
from torchlab.utils import _pytree as pytree

_NUMBERED = re.compile(r"(.*)_(\d+)$")
_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_CAMEL = re.compile(r"(?<=[a-z])([A-Z])")


class _CustomBuiltin(NamedTuple):
    """A name that every generated code may use: how to import it, and what it is."""

    import_str: str
    obj: Any


_custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin(
    "torch", "import torchlab as torch", sys.modules[__name__.partition(".")[0]]
)
_register_custom_builtin("device", "from torchlab import device", device)
_register_custom_builtin("fx_pytree", "import torchlab.fx._pytree as fx_pytree", fx_pytree)
_register_custom_builtin("pytree", "import torchlab.utils._pytree as pytree", pytree)


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


def _snake_case(s: str) -> str:
    """`LayerNorm` → `layer_norm`."""
    return _CAMEL.sub(r"_\1", s).lower()


class _Namespace:
    """Gives each object a name that nobody else has, near to the one wished for."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """A new name; for an `obj` that has one already, that."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = _NUMBERED.match(candidate)
        base, number = (match[1], int(match[2])) if match is not None else (candidate, 0)
        if self._taken(candidate, obj):
            number = number or self._base_count.get(base, 0)
            while self._taken(candidate, obj):
                number += 1
                candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """`obj` has this name already; AssertionError if it has another."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"object {obj} has no name yet")
        self._obj_to_name[obj] = name
        self._used_names.add(name)

    def _taken(self, name: str, obj: Any) -> bool:
        if name in self._used_names or keyword.iskeyword(name):
            return True
        if name in builtins.__dict__:
            return obj is not builtins.__dict__[name]
        return name in _custom_builtins and obj is not _custom_builtins[name].obj
