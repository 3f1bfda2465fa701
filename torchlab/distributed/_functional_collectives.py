"""What the processes of a group do together, as functions that give new tensors.

    gathered = all_gather_tensor(x, gather_dim=0, group=mesh)

A group is a process group, a mesh of one dimension, or a mesh with the number of a dimension. In a
group of one the results are copies of the process's own, and there is nothing to wait for.

Source: https://docs.pytorch.org/docs/2.13/distributed.html#collective-functions
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.distributed.device_mesh import DeviceMesh
from torchlab.distributed.groups import ProcessGroup, group_of

__all__ = [
    "AsyncCollectiveTensor", "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce",
    "all_reduce_coalesced", "all_to_all_single", "all_to_all_single_autograd", "broadcast",
    "permute_tensor", "reduce_scatter_tensor", "reduce_scatter_tensor_autograd", "wait_tensor",
]  # fmt: skip


class AsyncCollectiveTensor(Tensor):
    """A result that is still to come; no result of a group of one process is."""

    def wait(self) -> Tensor:
        """The tensor, once it is there."""
        return wait_tensor(self)


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, once it is there."""
    return tensor


def _group(group: Any) -> ProcessGroup:
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if not isinstance(group, ProcessGroup):
        raise ValueError(f"a group is a ProcessGroup or a DeviceMesh, not {type(group).__name__}")
    return group_of(group)


def _copy(x: Tensor) -> Tensor:
    return aten.clone(x)  # type: ignore[no-any-return]


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of the process `src`."""
    _group(group)
    return _copy(self)


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The processes' tensors put together by `reduceOp` ("sum", "avg", …)."""
    _group(group)
    return _copy(self)


def all_reduce_coalesced(
    self: Sequence[Tensor], reduceOp: str, group: Any, tag: str = ""
) -> list[Tensor]:
    """`all_reduce` of several tensors."""
    return [all_reduce(t, reduceOp, group) for t in self]


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The processes' tensors one after the other along a dimension."""
    _group(group)
    return _copy(self)


def reduce_scatter_tensor(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """This process's part, along a dimension, of the tensors put together."""
    _group(group)
    return _copy(self)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """What each process has for this one. RuntimeError if the parts are not the whole."""
    _group(group)
    for sizes in (output_split_sizes, input_split_sizes):
        if sizes is not None and list(sizes) != [self.shape[0]]:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return _copy(self)


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of the process that sends to this one: `src_dst[rank]` is to whom one sends."""
    _group(group)
    if list(src_dst) != [0]:
        raise RuntimeError(f"permute_tensor: {list(src_dst)} for a group of one process")
    return _copy(self)


# Copies are differentiated as such.
all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
