"""Names of types in error messages."""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor


def typename(x: Any) -> str:
    """A type's name in error messages, as `torch.typename` gives it."""
    if isinstance(x, Tensor):
        return x.type()  # type: ignore[attr-defined]
    cls = x if isinstance(x, type) else type(x)
    module = cls.__module__
    return (
        cls.__qualname__
        if module in ("builtins", "__builtin__", None)
        else f"{module}.{cls.__qualname__}"
    )
