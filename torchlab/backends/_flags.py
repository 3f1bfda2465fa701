"""Modules whose attributes are switches with a type: `torch.backends.cudnn.benchmark = True`.

A switch keeps what programs set and gives it back. Whether it decides anything is said where it is
declared: most are about libraries that torchlab does not use.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def switch(name: str, default: Any, types: type | tuple[type, ...], doc: str = "") -> property:
    """A property that holds a value of one of `types`; RuntimeError for others."""
    wanted = types if isinstance(types, tuple) else (types,)
    key = f"_value_of_{name}"

    def get(self: Any) -> Any:
        return self.__dict__.get(key, default)

    def put(self: Any, value: Any) -> None:
        if type(value) not in wanted:
            expected = " or ".join("None" if t is type(None) else t.__name__ for t in wanted)
            raise RuntimeError(
                f"{self.__name__.replace('torchlab', 'torch')}.{name} expects a {expected}, but got"
                f" {type(value).__name__}"
            )
        self.__dict__[key] = value

    return property(get, put, doc=doc)


class Switches(ModuleType):
    """The class of such modules; subclasses declare properties. Their `flags` and `set_flags`."""


def become(name: str, cls: type[Switches]) -> Any:
    """Make the module `name` an object of `cls`, and return it."""
    module = sys.modules[name]
    module.__class__ = cls
    return module


def set_all(module: Any, values: dict[str, Any]) -> tuple[Any, ...]:
    """Set switches (None leaves one as it is) and return what they were, in that order."""
    before = tuple(getattr(module, name) for name in values)
    for name, value in values.items():
        if value is not None:
            setattr(module, name, value)
    return before


@contextlib.contextmanager
def kept(module: Any, values: dict[str, Any]) -> Iterator[None]:
    """Inside the block the switches have other values; afterwards those of before."""
    before = set_all(module, values)
    try:
        yield
    finally:
        for name, value in zip(values, before, strict=True):
            setattr(module, name, value)
