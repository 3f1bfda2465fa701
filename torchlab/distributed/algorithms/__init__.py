"""`torch.distributed.algorithms`: training with uneven inputs.

Source: https://docs.pytorch.org/docs/2.13/distributed.algorithms.join.html
"""

from __future__ import annotations

from torchlab.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
