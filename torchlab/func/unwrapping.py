"""`debug_unwrap`: what the wrappers of transforms hold.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.debug_unwrap.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.duals import Dual
from torchlab._core.dispatch.levels import Level
from torchlab._core.tensor import Tensor


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor that a wrapper of a transform holds, with `recurse` the innermost of all; other
    tensors as they are. For looking at values only: transforms know nothing of it."""
    found: Any = tensor
    while isinstance(found, Level):
        found = found.primal if isinstance(found, Dual) else found.value  # type: ignore[attr-defined]
        if not recurse:
            break
    return found  # type: ignore[no-any-return]


__all__ = ["debug_unwrap"]
