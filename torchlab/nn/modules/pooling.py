"""`torch.nn.modules.pooling`: pooling, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AvgPool1d,
    AvgPool2d,
    MaxPool1d,
    MaxPool2d,
)
from torchlab.nn.pooling import _AdaptiveAvgPool as _AdaptiveAvgPoolNd
from torchlab.nn.pooling import _AvgPool as _AvgPoolNd
from torchlab.nn.pooling import _MaxPool as _MaxPoolNd
from torchlab.nn.pooling_places import (
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from torchlab.nn.pooling_places import _MaxUnpool as _MaxUnpoolNd
from torchlab.nn.pooling_volumes import (
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool3d,
)
from torchlab.nn.pooling_volumes import _AdaptiveMaxPool as _AdaptiveMaxPoolNd
from torchlab.nn.pooling_volumes import _LPPool as _LPPoolNd

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "_AdaptiveAvgPoolNd",
    "_AdaptiveMaxPoolNd",
    "_AvgPoolNd",
    "_LPPoolNd",
    "_MaxPoolNd",
    "_MaxUnpoolNd",
]
