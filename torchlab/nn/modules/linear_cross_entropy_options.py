"""`torch.nn.modules.linear_cross_entropy_options`: the class under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.linear_cross_entropy_options import LinearCrossEntropyOptions

__all__ = ["LinearCrossEntropyOptions"]
