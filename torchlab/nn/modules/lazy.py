"""`torch.nn.modules.lazy`: what lazy modules share, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.lazy import LazyModuleMixin

__all__ = ["LazyModuleMixin"]
