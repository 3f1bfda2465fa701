"""`torch.distributed.rpc`, as PyTorch has it where it was built without: here programs run as one
process.

Source: https://docs.pytorch.org/docs/2.13/rpc.html
"""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether other processes can be called: False."""
    return False
