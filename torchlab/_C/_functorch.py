"""What `torch._C._functorch` tells of the wrappers that function transforms put around tensors.

`grad` and its like put none around them here (Note [Levels] in torchlab._core.dispatch.levels):
what asks for those wrappers is missing.

Source: https://docs.pytorch.org/docs/2.13/func.ux_limitations.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.batches import Batched
from torchlab._functorch.vmap import _add_batch_dim, _remove_batch_dim

__all__ = [
    "_add_batch_dim",
    "_remove_batch_dim",
    "get_unwrapped",
    "is_batchedtensor",
    "is_legacy_batchedtensor",
    "maybe_get_bdim",
    "maybe_get_level",
]


def is_batchedtensor(tensor: Any) -> bool:
    """Whether `vmap` hides a dimension of the tensor."""
    return isinstance(tensor, Batched) and tensor.bdim is not None


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """False: `torch._vmap_internals`, whose tensors these were, is `vmap` here."""
    return False


def maybe_get_bdim(tensor: Any) -> int:
    """The hidden dimension; -1 without one."""
    return tensor.bdim if is_batchedtensor(tensor) else -1


def maybe_get_level(tensor: Any) -> int:
    """The number of the transform that wrapped the tensor; -1 without one."""
    return tensor._level or -1  # type: ignore[no-any-return]


def get_unwrapped(tensor: Any) -> Any:
    """What a batched tensor holds."""
    if not isinstance(tensor, Batched):
        raise RuntimeError("No wrappers present!")
    return tensor.value
