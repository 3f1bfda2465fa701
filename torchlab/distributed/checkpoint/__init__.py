"""`torch.distributed.checkpoint`: checkpoints that several processes write in pieces. A program is
one process here: `torch.save`, or safetensors, writes all there is.

Source: https://docs.pytorch.org/docs/2.13/distributed.checkpoint.html
"""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torchlab.distributed.checkpoint' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": one process writes all with torch.save")
    )
