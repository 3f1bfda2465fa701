"""`torchlab.special`: the operators of that name space.

Source: https://docs.pytorch.org/docs/2.13/special.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch import registry


def __getattr__(name: str) -> Any:
    try:
        value = registry.function(name, "special")
    except AttributeError:
        raise AttributeError(f"module 'torchlab.special' has no attribute '{name}'") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(registry.FUNCTIONS.get("special", ()))
