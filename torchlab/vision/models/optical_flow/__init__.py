"""Models of the motion between two images, with torchvision's constructors and state dicts.

Source: https://docs.pytorch.org/vision/0.28/models.html#optical-flow
"""

from __future__ import annotations

from torchlab.vision.models.optical_flow import raft
from torchlab.vision.models.optical_flow.raft import *  # noqa: F403

__all__ = ["raft"]
__all__ += raft.__all__
