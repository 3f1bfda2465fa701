"""The old name `torch.cpu.amp.autocast`: `torch.autocast("cpu", ...)`.

Source: https://docs.pytorch.org/docs/2.13/amp.html
"""

from __future__ import annotations

from torchlab._core import dtype as dt
from torchlab.amp.former import autocast_of

__all__ = ["autocast"]

autocast = autocast_of("cpu", dt.bfloat16)
