"""`torch.nn.modules.flatten`: flattening, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.flatten import Flatten, Unflatten

__all__ = ["Flatten", "Unflatten"]
