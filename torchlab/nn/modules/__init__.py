"""`torch.nn.modules`: where PyTorch's scripts look for the base class and the global hooks."""

from __future__ import annotations

from torchlab.nn.modules import module
from torchlab.nn.modules.module import Module
