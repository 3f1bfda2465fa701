"""The function of `torchlab.utils.data.pinning` under the name of the module that PyTorch has it
in."""

from __future__ import annotations

from torchlab.utils.data.pinning import pin_memory

__all__ = ["pin_memory"]
