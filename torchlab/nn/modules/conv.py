"""`torch.nn.modules.conv`: convolutions, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.conv import Conv1d, Conv2d, Conv3d
from torchlab.nn.conv import _Conv as _ConvNd
from torchlab.nn.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from torchlab.nn.conv_transpose import _ConvTranspose as _ConvTransposeNd
from torchlab.nn.lazy_layers import (
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
)

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "_ConvNd",
    "_ConvTransposeNd",
]
