"""`torch.distributed._composable`: an older path of what changes modules in place."""

from __future__ import annotations

from torchlab.distributed.fsdp import fully_shard

__all__ = ["fully_shard"]
