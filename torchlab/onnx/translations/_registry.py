"""Which function translates which operator.

Source: https://docs.pytorch.org/docs/2.13/onnx_export.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.overload import OpOverload
from torchlab.onnx._builder import Builder

Translation = Callable[..., Any]
"""`f(builder, node, *arguments in the order of the schema)`: the name of the result, or names."""

TRANSLATIONS: dict[Any, Translation] = {}


def translates(*names: Any) -> Callable[[Translation], Translation]:
    """Register a translation for operators: "relu" for all overloads, "add.Tensor" for one, or a
    Python function that graphs call."""

    def declare(fn: Translation) -> Translation:
        for name in names:
            assert name not in TRANSLATIONS, name
            TRANSLATIONS[name] = fn
        return fn

    return declare


def find(target: Any) -> Translation | None:
    """The translation of a node's target."""
    if not isinstance(target, OpOverload):
        return TRANSLATIONS.get(target)
    if target.namespace != "aten":
        return None
    name = target._opname
    found = TRANSLATIONS.get(f"{name}.{target._overloadname}")
    return TRANSLATIONS.get(name) if found is None else found


__all__ = ["TRANSLATIONS", "Builder", "Translation", "find", "translates"]
