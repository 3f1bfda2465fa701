"""`torch.ops.aten.sym_size` and its likes: a tensor's geometry as nodes of a graph.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Graph.create_size_node
"""

from __future__ import annotations

from torchlab._core.dispatch import arrivals
from torchlab._core.tensor import Tensor


@arrivals.virtual("sym_size.int(Tensor self, int dim) -> SymInt")
def SYM_SIZE(self: Tensor, dim: int) -> int:
    """`self.size(dim)`."""
    return self.size(dim)


@arrivals.virtual("sym_stride.int(Tensor self, int dim) -> SymInt")
def SYM_STRIDE(self: Tensor, dim: int) -> int:
    """`self.stride(dim)`."""
    return self.stride(dim)


@arrivals.virtual("sym_storage_offset.default(Tensor self) -> SymInt")
def SYM_STORAGE_OFFSET(self: Tensor) -> int:
    """`self.storage_offset()`."""
    return self.storage_offset()
