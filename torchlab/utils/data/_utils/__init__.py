"""Where PyTorch keeps parts of its loader that programs import all the same."""

from __future__ import annotations

from torchlab.utils.data._utils import collate, pin_memory, worker

__all__ = ["collate", "pin_memory", "worker"]
