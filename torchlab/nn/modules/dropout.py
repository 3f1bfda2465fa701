"""`torch.nn.modules.dropout`: dropout, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.dropout import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from torchlab.nn.dropout import _Dropout as _DropoutNd

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
    "_DropoutNd",
]
