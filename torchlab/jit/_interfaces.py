"""Classes that say which methods a script may call.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.interface.html
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
_MARK = "__torch_script_interface__"


class Attribute(NamedTuple):
    """A value of a module, with the type that a script is to give it."""

    value: Any
    type: Any


def interface(obj: T) -> T:
    """Let a class be the type of all that has its methods."""
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    setattr(obj, _MARK, obj)
    return obj


def is_interface(t: Any) -> bool:
    """Whether a class is an interface itself; one derived from it is none."""
    return isinstance(t, type) and t.__dict__.get(_MARK) is t


def implements(value: Any, t: type) -> bool:
    """Whether a value has the methods of an interface."""
    methods = (n for n, f in t.__dict__.items() if inspect.isfunction(f))
    return all(callable(getattr(value, n, None)) for n in methods)
