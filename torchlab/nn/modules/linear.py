"""`torch.nn.modules.linear`: linear layers, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.bilinear import Bilinear
from torchlab.nn.lazy_layers import LazyLinear
from torchlab.nn.linear import Identity, Linear
from torchlab.nn.multihead_attention import NonDynamicallyQuantizableLinear

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear", "NonDynamicallyQuantizableLinear"]
