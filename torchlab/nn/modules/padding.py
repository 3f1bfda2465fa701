"""`torch.nn.modules.padding`: padding, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from torchlab.nn.padding import _CircularPad as _CircularPadNd
from torchlab.nn.padding import _ConstantPad as _ConstantPadNd
from torchlab.nn.padding import _ReflectionPad as _ReflectionPadNd
from torchlab.nn.padding import _ReplicationPad as _ReplicationPadNd

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
    "_CircularPadNd",
    "_ConstantPadNd",
    "_ReflectionPadNd",
    "_ReplicationPadNd",
]
