"""`torch.nn.modules.pixelshuffle`: pixel shuffling, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.shuffling import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
