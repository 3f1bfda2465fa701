"""Where PyTorch keeps parts of its loader that programs import all the same: `collate`."""

from __future__ import annotations

from torchlab.utils.data._utils import collate

__all__ = ["collate"]
