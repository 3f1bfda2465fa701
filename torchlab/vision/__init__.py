"""torchvision's public names on torchlab.

Source: https://docs.pytorch.org/vision/0.28/
"""

from __future__ import annotations

from torchlab.vision import datasets, models, ops, transforms, utils

__all__ = ["datasets", "models", "ops", "transforms", "utils"]
