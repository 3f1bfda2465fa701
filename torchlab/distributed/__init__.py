"""`torchlab.distributed`: programs for several processes, run as one.

Groups have one process (groups.py), in which all collective functions have their meaning
(collectives.py). A larger group is refused when it is made.

Source: https://docs.pytorch.org/docs/2.13/distributed.html
"""

from __future__ import annotations

from typing import Any

from torchlab.distributed.collectives import (
    Work,
    all_gather,
    all_gather_object,
    all_reduce,
    barrier,
    broadcast,
    broadcast_object_list,
    gather,
    reduce,
    scatter,
)
from torchlab.distributed.groups import (
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    group_of,
    init_process_group,
    is_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    new_group,
)
from torchlab.distributed.reduce_op import ReduceOp

__all__ = [
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "new_group",
    "reduce",
    "scatter",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torchlab.distributed' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": that part of torch.distributed is missing from"
           " torchlab, which has groups of one process")
    )  # fmt: skip
