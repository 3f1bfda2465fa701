"""What registering a hook returns. Source:
https://docs.pytorch.org/docs/2.13/generated/torch.nn.Module.html"""

from __future__ import annotations

from torchlab.nn._calls import RemovableHandle

__all__ = ["RemovableHandle"]
