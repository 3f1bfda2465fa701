"""`torch.distributed.fsdp`: modules in pieces on several processes, of which there is one here.

Source: https://docs.pytorch.org/docs/2.13/fsdp.html
"""

from __future__ import annotations

from torchlab.distributed.fsdp.fully_sharded_data_parallel import (
    BackwardPrefetch,
    CPUOffload,
    CPUOffloadPolicy,
    FSDPModule,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    OffloadPolicy,
    ShardingStrategy,
    StateDictConfig,
    StateDictType,
    fully_shard,
)

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullStateDictConfig",
    "FullyShardedDataParallel", "MixedPrecision", "MixedPrecisionPolicy", "OffloadPolicy",
    "ShardingStrategy", "StateDictConfig", "StateDictType", "fully_shard",
]  # fmt: skip
