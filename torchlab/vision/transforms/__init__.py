"""`torchvision.transforms`: what is done to images before a network sees them.

Source: https://docs.pytorch.org/vision/0.28/transforms.html
"""

from torchlab.vision.transforms import autoaugment, functional, transforms
from torchlab.vision.transforms.autoaugment import *  # noqa: F403
from torchlab.vision.transforms.transforms import *  # noqa: F403

__all__ = ["autoaugment", "functional", "transforms"]
__all__ += autoaugment.__all__
__all__ += transforms.__all__
