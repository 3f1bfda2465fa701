"""`torchlab.distributed`: programs for several processes, run as one.

Groups have one process (groups.py), in which all collective functions have their meaning
(collectives.py). A larger group is refused when it is made.

Source: https://docs.pytorch.org/docs/2.13/distributed.html
"""

from __future__ import annotations

from typing import Any

from torchlab.distributed.backend import Backend
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
from torchlab.distributed.device_mesh import DeviceMesh, init_device_mesh
from torchlab.distributed.exchanges import (
    all_gather_into_tensor,
    all_gather_single,
    all_to_all,
    all_to_all_single,
    gather_object,
    monitored_barrier,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter_object_list,
)
from torchlab.distributed.groups import (
    GroupMember,
    ProcessGroup,
    _rank_not_in_group,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    group_of,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    new_group,
)
from torchlab.distributed.reduce_op import ReduceOp

__all__ = [
    "Backend",
    "DeviceMesh",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "monitored_barrier",
    "new_group",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torchlab.distributed' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": that part of torch.distributed is missing from"
           " torchlab, which has groups of one process")
    )  # fmt: skip
