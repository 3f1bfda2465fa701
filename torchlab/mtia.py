"""`torchlab.mtia`: Meta's accelerators, which torchlab does not reach. Programs may ask, and get
"none".

Source: https://docs.pytorch.org/docs/2.13/mtia.html
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "device_count",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "reset_peak_memory_stats",
]


def is_available() -> bool:
    """Whether there is such an accelerator: no."""
    return False


def is_initialized() -> bool:
    """Whether one is in use: no."""
    return False


def device_count() -> int:
    """The number of such accelerators: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator to seed."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Nothing: there is no generator to seed."""
    manual_seed(seed)


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold: 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The peak of `memory_allocated`: 0."""
    return 0


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The allocator's counters: none."""
    return {}


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing: there are no peaks."""


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torchlab.mtia' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": torchlab does not reach Meta's accelerators")
    )
