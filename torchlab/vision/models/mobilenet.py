"""The models of `mobilenetv2` and `mobilenetv3` under one name.

Source: https://docs.pytorch.org/vision/0.28/models.html
"""

from __future__ import annotations

from torchlab.vision.models import mobilenetv2, mobilenetv3
from torchlab.vision.models.mobilenetv2 import *  # noqa: F403
from torchlab.vision.models.mobilenetv3 import *  # noqa: F403

__all__ = []
__all__ += mobilenetv2.__all__
__all__ += mobilenetv3.__all__
