"""`torchlab.xpu`: Intel's GPUs, which torchlab does not reach. Programs may ask, and get "none".

Source: https://docs.pytorch.org/docs/2.13/xpu.html
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
]


def is_available() -> bool:
    """Whether there is such a GPU that can be used: no."""
    return False


def device_count() -> int:
    """The number of such GPUs: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator to seed."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Nothing: there is no generator to seed."""
    manual_seed(seed)


def is_initialized() -> bool:
    """Whether one is in use: no."""
    return False


def empty_cache() -> None:
    """Nothing: there is no memory to give back."""


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torchlab.xpu' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": torchlab does not reach Intel's GPUs")
    )
