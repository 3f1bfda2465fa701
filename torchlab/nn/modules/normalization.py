"""`torch.nn.modules.normalization`: normalizations, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.normalization import GroupNorm, LayerNorm, RMSNorm
from torchlab.nn.response_norm import CrossMapLRN2d, LocalResponseNorm

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
