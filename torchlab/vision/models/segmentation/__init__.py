"""Models that name the class of every pixel, with torchvision's constructors and state dicts.

Source: https://docs.pytorch.org/vision/0.28/models.html#semantic-segmentation
"""

from __future__ import annotations

from torchlab.vision.models.segmentation import deeplabv3, fcn, lraspp

_PARTS = (deeplabv3, fcn, lraspp)
for _part in _PARTS:
    globals().update({name: getattr(_part, name) for name in _part.__all__})

__all__ = ["deeplabv3", "fcn", "lraspp"]
__all__ += [name for part in _PARTS for name in part.__all__]
