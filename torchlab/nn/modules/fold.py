"""`torch.nn.modules.fold`: patches, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.patches import Fold, Unfold

__all__ = ["Fold", "Unfold"]
