"""`torchlab.multiprocessing`: Python's `multiprocessing`, in which tensors are shared, not copied.

    queue = mp.SimpleQueue()
    queue.put(tensor)            # the other process sees the same memory

Everything of `multiprocessing` is here, too. Importing this module lets all of it share tensors.

Source: https://docs.pytorch.org/docs/2.13/multiprocessing.html
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import *  # noqa: F403
from multiprocessing import resource_tracker

from torchlab._core.memory import shared
from torchlab.multiprocessing.reductions import init_reductions
from torchlab.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]
__all__ += multiprocessing.__all__  # type: ignore[attr-defined]


def set_sharing_strategy(new_strategy: str) -> None:
    """How memory that is shared from now on is passed: "file_descriptor" or "file_system" (by name,
    for programs that run out of descriptors)."""
    known = get_all_sharing_strategies()
    if new_strategy not in known:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {known}")
    if new_strategy == "file_system" and os.name == "posix":
        # One tracker for all processes that are started from now on: that of a child would remove
        # what the child has sent when it ends.
        resource_tracker.ensure_running()
    shared.strategy = new_strategy


def get_sharing_strategy() -> str:
    """How memory that is shared from now on is passed."""
    return shared.strategy


def get_all_sharing_strategies() -> set[str]:
    """The strategies of this system."""
    return shared.strategies()


init_reductions()
