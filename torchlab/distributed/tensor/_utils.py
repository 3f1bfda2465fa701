"""Which piece of a tensor a process has.

Source: https://docs.pytorch.org/docs/2.13/distributed.tensor.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Any],
    skip_offset: bool = False,
) -> tuple[tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """(the shape of this process's piece, where it begins). One process has all of it, however it
    is cut."""
    shape = tuple(global_shape)
    return shape, () if skip_offset else (0,) * len(shape)
