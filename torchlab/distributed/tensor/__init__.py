"""`torch.distributed.tensor`: the ways in which a tensor may lie over a mesh, and the class of such
tensors. A program is one process here, so there are none of them.

Source: https://docs.pytorch.org/docs/2.13/distributed.tensor.html
"""

from __future__ import annotations

from torchlab.distributed.device_mesh import DeviceMesh, init_device_mesh
from torchlab.distributed.tensor._dtensor import DTensor, distribute_module, distribute_tensor
from torchlab.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor",
]  # fmt: skip
