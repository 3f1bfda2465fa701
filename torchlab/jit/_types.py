"""The types of scripts: read from annotations, told in TorchScript's words, asked of values.

Source: https://docs.pytorch.org/docs/2.13/jit_language_reference.html#types
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from torchlab._core.device import device
from torchlab._core.dtype import dtype
from torchlab._core.tensor import Tensor
from torchlab.jit._interfaces import implements, is_interface

_NUMBERS = {int: "int", float: "float", bool: "bool", complex: "complex", str: "str"}
_CONTAINERS = (list, tuple, dict)


def text(t: Any) -> str:
    """A type in the words of a schema: `float[]`, `Dict(str, Tensor)`, `int?`."""
    if t is None or t is type(None):
        return "NoneType"
    if t in _NUMBERS:
        return _NUMBERS[t]
    if t is Any:
        return "Any"
    origin, of = typing.get_origin(t), typing.get_args(t)
    if origin is list:
        return text(of[0]) + "[]"
    if origin is dict:
        return f"Dict({text(of[0])}, {text(of[1])})"
    if origin is tuple:
        return f"({', '.join(text(x) for x in of)})"
    if origin is typing.Union or origin is types.UnionType:
        others = [x for x in of if x is not type(None)]
        if len(others) == 1 and len(of) == 2:
            return text(others[0]) + "?"
        return f"Union({', '.join(sorted(text(x) for x in of))})"
    if isinstance(t, Broadcast):
        return f"{text(t.of)}[{t.length}]"
    if t is device:
        return "Device"
    if t is dtype:
        return "int"
    return getattr(t, "__name__", str(t))


@dataclasses.dataclass(frozen=True)
class Broadcast:
    """The type of a list for which one number may be given: it stands for `length` of them."""

    of: Any
    length: int


class Mismatch(Exception):
    """A value is not of a type."""


def cast(value: Any, t: Any) -> Any:
    """The value as a script of that parameter type sees it: an int is a float where a float is
    asked for, a tensor of one element a number. Raises Mismatch."""
    if t is Any or t is typing.Any:
        return value
    if t is None or t is type(None):
        if value is None:
            return None
        raise Mismatch
    if isinstance(t, Broadcast):
        # A list of another length passes, as in PyTorch.
        many = isinstance(value, (list, tuple))
        return cast(value, list[t.of]) if many else [cast(value, t.of)] * t.length  # type: ignore[name-defined]
    origin, of = typing.get_origin(t), typing.get_args(t)
    if origin is None:
        return _cast_plain(value, t)
    if origin is typing.Union or origin is types.UnionType:
        for x in of:  # first what needs no change
            if x in (None, type(None)) and value is None or type(value) is x:
                return value
        for x in of:
            try:
                return cast(value, x)
            except Mismatch:
                continue
        raise Mismatch
    if origin is list and isinstance(value, (list, tuple)):
        return [cast(x, of[0]) for x in value] if _changes(value, of[0]) else value
    if origin is dict and isinstance(value, dict):
        for k, v in value.items():
            cast(k, of[0])
            cast(v, of[1])
        return value
    if origin is tuple and isinstance(value, tuple):
        if len(of) == 2 and of[1] is Ellipsis:
            of = of[:1] * len(value)
        if len(of) != len(value):
            raise Mismatch
        made = tuple(cast(x, y) for x, y in zip(value, of, strict=True))
        same = all(x is y for x, y in zip(made, value, strict=True))
        return value if same or hasattr(value, "_fields") else made
    if origin in _CONTAINERS:
        raise Mismatch
    return value  # Callable, Final and others: nothing is asked


def _changes(values: Any, t: Any) -> bool:
    """Whether a list must be made anew; raises Mismatch if an entry does not fit."""
    return type(values) is not list or any(cast(x, t) is not x for x in values)


def _cast_plain(value: Any, t: Any) -> Any:
    if t is float:
        if isinstance(value, (float, int)):
            return float(value)
    elif t is int:
        if isinstance(value, (int, dtype)):
            return value
    elif t is complex:
        if isinstance(value, (complex, float, int)):
            return complex(value)
    elif t is bool:
        if isinstance(value, bool):
            return value
    elif is_interface(t):
        if implements(value, t):
            return value
    elif not isinstance(t, type) or isinstance(value, t):
        return value
    if t in (float, int, bool, complex) and isinstance(value, Tensor) and value.numel() == 1:
        return t(value.item())
    raise Mismatch


def told(value: Any) -> str:
    """The type of a value, as an error names it."""
    if isinstance(value, Tensor):
        return "Tensor"
    return type(value).__name__


__all__ = ["Broadcast", "Mismatch", "cast", "text", "told"]
