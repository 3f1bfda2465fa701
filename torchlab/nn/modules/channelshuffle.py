"""`torch.nn.modules.channelshuffle`: channel shuffling, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.shuffling import ChannelShuffle

__all__ = ["ChannelShuffle"]
