"""`torchlab.mps`: Apple's GPUs, which torchlab does not reach. Programs may ask, and get "none".

Source: https://docs.pytorch.org/docs/2.13/mps.html
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "is_available",
    "manual_seed",
    "recommended_max_memory",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "synchronize",
]


def _missing(doing: str) -> RuntimeError:
    return RuntimeError(f"Cannot execute {doing}() without MPS backend.")


def is_available() -> bool:
    """Whether there is such a GPU that can be used: no."""
    return False


def device_count() -> int:
    """The number of such GPUs: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator to seed."""
    int(seed)


def seed() -> None:
    """RuntimeError: there is no generator."""
    raise _missing("getDefaultGenerator")


def get_rng_state(device: Any = "mps") -> Any:
    """RuntimeError: there is no generator."""
    raise _missing("getDefaultGenerator")


def set_rng_state(new_state: Any, device: Any = "mps") -> None:
    """RuntimeError: there is no generator."""
    raise _missing("getDefaultGenerator")


def synchronize() -> None:
    """RuntimeError: there is no such GPU."""
    raise _missing("deviceSynchronize")


def empty_cache() -> None:
    """RuntimeError: there is no such GPU."""
    raise _missing("emptyCache")


def set_per_process_memory_fraction(fraction: float) -> None:
    """RuntimeError: there is no such GPU. TypeError for what is no float, ValueError for one that
    is not in [0, 2]."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 2:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~2")
    raise _missing("setMemoryFraction")


def current_allocated_memory() -> int:
    """RuntimeError: there is no such GPU."""
    raise _missing("getCurrentAllocatedMemory")


def driver_allocated_memory() -> int:
    """RuntimeError: there is no such GPU."""
    raise _missing("getDriverAllocatedMemory")


def recommended_max_memory() -> int:
    """RuntimeError: there is no such GPU."""
    raise _missing("getRecommendedMaxMemory")


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torchlab.mps' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": torchlab does not reach Apple's GPUs")
    )
