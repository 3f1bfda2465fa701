"""`pin_memory(batch)`: the same batch with its tensors in page-locked memory.

Source: https://docs.pytorch.org/docs/2.13/data.html#memory-pinning
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from torchlab._core.tensor import Tensor


def pin_memory(data: Any, device: Any = None) -> Any:
    """`data` with all tensors in it pinned. What has a method `pin_memory` is asked by that;
    mappings, tuples and sequences are rebuilt as what they are (those that cannot, as a dict or a
    list); everything else stays. `device`: nothing, as in PyTorch."""
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        pinned = {key: pin_memory(value) for key, value in data.items()}
        try:
            return _mapping(data, pinned)
        except TypeError:
            return pinned
    if isinstance(data, tuple):
        parts = [pin_memory(part) for part in data]
        kind: Any = type(data)
        return kind(*parts) if hasattr(data, "_fields") else kind(parts)
    if isinstance(data, Sequence):
        parts = [pin_memory(part) for part in data]
        try:
            return _sequence(data, parts)
        except TypeError:
            return parts
    return data


# What can be changed may have more attributes than its constructor takes, so it is copied.


def _mapping(like: Any, items: dict[Any, Any]) -> Any:
    if not isinstance(like, MutableMapping):
        return type(like)(items)
    made = copy.copy(like)
    made.update(items)
    return made


def _sequence(like: Any, parts: list[Any]) -> Any:
    if not isinstance(like, MutableSequence):
        return type(like)(parts)
    made = copy.copy(like)
    for i, part in enumerate(parts):
        made[i] = part
    return made


__all__ = ["pin_memory"]
