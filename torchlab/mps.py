"""`torchlab.mps`: Apple's GPUs, which torchlab does not reach. Programs may ask, and get "none".

Source: https://docs.pytorch.org/docs/2.13/mps.html
"""

from __future__ import annotations

from typing import Any

__all__ = ["device_count", "is_available", "manual_seed"]


def is_available() -> bool:
    """Whether there is such a GPU that can be used: no."""
    return False


def device_count() -> int:
    """The number of such GPUs: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator to seed."""
    int(seed)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torchlab.mps' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": torchlab does not reach Apple's GPUs")
    )
