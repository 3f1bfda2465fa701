"""What the processes of a group do together. In a group of one the results are the process's own.

Arguments are checked as if there were more. `async_op=True` gives work that is done.

Source: https://docs.pytorch.org/docs/2.13/distributed.html#collective-functions
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.distributed.groups import ProcessGroup, group_of
from torchlab.distributed.reduce_op import ReduceOp


class Work:
    """Something that was begun; it is done."""

    def wait(self, timeout: Any = None) -> bool:
        """Wait until it is done: True at once."""
        return True

    def is_completed(self) -> bool:
        """Whether it is done."""
        return True


def _tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor"
            f"\n             but got {type(value)} instead."
        )


def _tensors(value: Any, name: str, op: str, group: ProcessGroup) -> None:
    if not isinstance(value, (list, tuple)) or not all(isinstance(t, Tensor) for t in value):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]"
            f"\n             but got {type(value)}."
        )
    if len(value) != group.size():
        raise RuntimeError(
            f"{op}: `{name}` has to have one tensor for each of the {group.size()} processes, not"
            f" {len(value)}"
        )


def _root(rank: int | None, group_rank: int | None, op: str, group: ProcessGroup) -> None:
    if rank is not None and group_rank is not None:
        raise ValueError(f"{op}: give the rank in the world or in the group, not both")
    given = rank if rank is not None else group_rank
    given = 0 if given is None else given
    if not 0 <= given < group.size():
        raise RuntimeError(f"{op}: invalid root rank: {given}, the group has {group.size()}")


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def all_reduce(
    tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the processes' tensors together by `op`, in place, in every process."""
    _tensor(tensor, "tensor")
    group_of(group)
    return _done(async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As `all_reduce`, in the process `dst` only."""
    _tensor(tensor, "tensor")
    _root(dst, group_dst, "reduce", group_of(group))
    return _done(async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy the tensor of the process `src` into everyone's."""
    _tensor(tensor, "tensor")
    _root(src, group_src, "broadcast", group_of(group))
    return _done(async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy every process's tensor into `tensor_list`, by rank."""
    _tensor(tensor, "tensor")
    _tensors(tensor_list, "tensor_list", "all_gather", group_of(group))
    tensor_list[0].detach().copy_(tensor)
    return _done(async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As `all_gather`, in the process `dst` only."""
    found = group_of(group)
    _tensor(tensor, "tensor")
    _root(dst, group_dst, "gather", found)
    if gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    _tensors(gather_list, "gather_list", "gather", found)
    gather_list[0].detach().copy_(tensor)
    return _done(async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy one tensor of the list of the process `src` to each process."""
    found = group_of(group)
    _tensor(tensor, "tensor")
    _root(src, group_src, "scatter", found)
    if scatter_list is None:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _tensors(scatter_list, "scatter_list", "scatter", found)
    tensor.detach().copy_(scatter_list[0])
    return _done(async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put every process's object into `object_list`, by rank."""
    found = group_of(group)
    if len(object_list) < found.size():
        raise ValueError(f"all_gather_object: the list has to have {found.size()} places")
    object_list[0] = obj


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Put the objects of the process `src` into everyone's list."""
    _root(src, group_src, "broadcast_object_list", group_of(group))


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None
) -> Work | None:
    """Wait until all processes are here."""
    group_of(group)
    return _done(async_op)
