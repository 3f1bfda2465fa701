"""Classifiers of videos with torchvision's constructors and the names of its state dicts.

Source: https://docs.pytorch.org/vision/0.28/models.html#video-classification
"""

from __future__ import annotations

from torchlab.vision.models.video import mvit, resnet, swin_transformer
from torchlab.vision.models.video import s3d as _s3d

_PARTS = (mvit, resnet, _s3d, swin_transformer)
for _part in _PARTS:
    globals().update({name: getattr(_part, name) for name in _part.__all__})

__all__ = ["mvit", "resnet", "swin_transformer"]
__all__ += [name for part in _PARTS for name in part.__all__]
