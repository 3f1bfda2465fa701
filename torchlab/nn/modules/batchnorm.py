"""`torch.nn.modules.batchnorm`: batch normalization, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm, _NormBase
from torchlab.nn.lazy_layers import LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d
from torchlab.nn.sync_batchnorm import SyncBatchNorm

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
    "_BatchNorm",
    "_NormBase",
]
