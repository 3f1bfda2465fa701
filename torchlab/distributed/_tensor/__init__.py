"""`torch.distributed._tensor`: an older path of `torch.distributed.tensor`."""

from __future__ import annotations

from torchlab.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor",
]  # fmt: skip
