"""What a loader's worker knows and how it is seeded, in the module that PyTorch has it in."""

from __future__ import annotations

from typing import Any

from torchlab.utils.data.worker import WorkerInfo, get_worker_info, numpy_seed

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]


def __getattr__(name: str) -> Any:
    if name == "_worker_info":
        return get_worker_info()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The seed of NumPy's random numbers in a worker: four 32-bit words."""
    return [int(word) for word in numpy_seed(base_seed, worker_id)]
