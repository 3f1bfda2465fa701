"""Collective functions in which every process has a part for every other, and those of objects. In
a group of one a process exchanges with itself.

Source: https://docs.pytorch.org/docs/2.13/distributed.html#collective-functions
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.distributed.collectives import Work, _done, _root, _tensor, _tensors, barrier
from torchlab.distributed.groups import group_of
from torchlab.distributed.reduce_op import ReduceOp


def _like(given: Tensor, wanted: Tensor, op: str) -> None:
    """RuntimeError unless a result fits into the tensor for it."""
    if given.dtype != wanted.dtype:
        raise RuntimeError(
            f"{op}: the output's dtype is {given.dtype}, and the input's {wanted.dtype}"
        )
    if given.shape != wanted.shape:
        raise RuntimeError(
            f"{op}: invalid tensor size (expected {tuple(wanted.shape)}, got {tuple(given.shape)})"
        )


def _into(output: Tensor, value: Tensor, op: str, async_op: bool) -> Work | None:
    _like(output, value, op)
    output.detach().copy_(value)
    return _done(async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Put the processes' lists together by `op`; each process gets the entry of its rank."""
    _tensor(output, "output")
    _tensors(input_list, "input_list", "reduce_scatter", group_of(group))
    return _into(output, input_list[0], "reduce_scatter", async_op)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """As `reduce_scatter`, of a tensor cut into as many parts as there are processes."""
    _tensor(output, "output")
    _tensor(input, "input")
    group_of(group)
    return _into(output, input, "reduce_scatter_single", async_op)


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Join the processes' tensors, by rank, into one in every process."""
    _tensor(input_tensor, "input_tensor")
    _tensor(output_tensor, "output_tensor")
    group_of(group)
    return _into(output_tensor, input_tensor, "all_gather_single", async_op)


def _renamed(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.distributed.{old}` is deprecated. Please use `torch.distributed.{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """The earlier name of `reduce_scatter_single`."""
    _renamed("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """The earlier name of `all_gather_single`."""
    _renamed("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send the i-th tensor of each process's list to the process i."""
    found = group_of(group)
    _tensors(output_tensor_list, "output_tensor_list", "all_to_all", found)
    _tensors(input_tensor_list, "input_tensor_list", "all_to_all", found)
    return _into(output_tensor_list[0], input_tensor_list[0], "all_to_all", async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """As `all_to_all`, of one tensor cut along its first dimension."""
    _tensor(output, "output")
    _tensor(input, "input")
    group_of(group)
    for sizes, tensor in ((output_split_sizes, output), (input_split_sizes, input)):
        if sizes and sum(sizes) != tensor.shape[0]:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return _into(output, input, "all_to_all_single", async_op)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Put every process's object into the list of the process `dst`, by rank."""
    _root(dst, group_dst, "gather_object", group_of(group))
    if object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    object_gather_list[0] = copy.deepcopy(obj)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put one object of the list of the process `src` into the first place of everyone's."""
    found = group_of(group)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    _root(src, group_src, "scatter_object_list", found)
    if scatter_object_input_list is None:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    if len(scatter_object_input_list) != found.size():
        raise RuntimeError(
            f"scatter_object_list: Incorrect input list size {len(scatter_object_input_list)}."
            f" Input list size should be {found.size()}, same as size of the process group."
        )
    scatter_object_output_list[0] = copy.deepcopy(scatter_object_input_list[0])


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """As `barrier`, with an error that names who did not come: here nobody is missing."""
    barrier(group)


__all__ = [
    "all_gather_into_tensor",
    "all_gather_single",
    "all_to_all",
    "all_to_all_single",
    "gather_object",
    "monitored_barrier",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter_object_list",
]
