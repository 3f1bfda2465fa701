"""`torchlab.linalg`: the operators of that name space.

Source: https://docs.pytorch.org/docs/2.13/linalg.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch import registry
from torchlab._core.errors import LinAlgError as LinAlgError


def __getattr__(name: str) -> Any:
    try:
        value = registry.function(name, "linalg")
    except AttributeError:
        raise AttributeError(f"module 'torchlab.linalg' has no attribute '{name}'") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"LinAlgError", *registry.FUNCTIONS.get("linalg", ())})
