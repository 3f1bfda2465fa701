"""Which bytes of a storage a layout touches, and whether layouts touch the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torchlab._core.layout.shape import Shape, numel, prefix
from torchlab._core.layout.strides import is_non_overlapping_and_dense


class Extent(NamedTuple):
    """A layout with its place in a storage: stride and offset in elements, itemsize in bytes."""

    shape: Shape
    stride: Shape
    offset: int = 0
    itemsize: int = 1


def memory_range(shape: Shape, stride: Shape, offset: int, itemsize: int) -> tuple[int, int]:
    """(first byte, byte after the last) that the layout touches, counted from the storage's start.

    Negative strides are allowed. Without elements both are the offset's byte.
    """
    low = high = offset
    for size, step in zip(shape, stride, strict=True):
        if size == 0:
            return offset * itemsize, offset * itemsize
        if step > 0:
            high += (size - 1) * step
        elif step < 0:
            low += (size - 1) * step
    return low * itemsize, (high + 1) * itemsize


def storage_nbytes(shape: Shape, stride: Shape, offset: int, itemsize: int) -> int:
    """Bytes a storage must have to hold the layout; 0 for one without elements."""
    if 0 in shape:
        return 0
    return memory_range(shape, stride, offset, itemsize)[1]


def as_strided_check(
    shape: Sequence[int],
    stride: Sequence[int],
    offset: int,
    storage_nbytes: int,
    itemsize: int,
    op: str = "as_strided",
) -> None:
    """Refuse a layout that does not lie within a storage of `storage_nbytes` bytes.

    Raises RuntimeError, also for negative sizes, strides or offsets and for lengths that differ.
    """
    where = prefix(op)
    if len(shape) != len(stride):
        raise RuntimeError(
            f"{where}mismatch in length of strides and shape: {list(stride)} and {list(shape)}"
        )
    for step in stride:
        if step < 0:
            raise RuntimeError(
                f"{where}Negative strides are not supported at the moment, got strides:"
                f" {list(stride)}"
            )
    for size in shape:
        if size < 0:
            raise RuntimeError(
                f"{where}Storage size calculation overflowed with sizes={list(shape)} and"
                f" strides={list(stride)}: a size is negative"
            )
    if offset < 0:
        raise RuntimeError(f"{where}Tensor: invalid storage offset {offset}")
    if 0 in shape:
        return
    last = offset + sum([(n - 1) * s for n, s in zip(shape, stride, strict=True)])
    needed = (last + 1) * itemsize
    if needed > storage_nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(stride)}, storage offset {offset}, and"
            f" itemsize {itemsize} requiring a storage size of {needed} are out of bounds for"
            f" storage of size {storage_nbytes}"
        )


def has_internal_overlap(shape: Shape, stride: Shape) -> str:
    """Whether two indices share a place in memory: "no" (dense), "yes" (an expanded dim) or
    "too_hard" (not decided: the answer would take a search)."""
    if is_non_overlapping_and_dense(shape, stride):
        return "no"
    for size, step in zip(shape, stride, strict=True):
        if step == 0 and size > 1:
            return "yes"
    return "too_hard"


def overlap(a: Extent, b: Extent) -> str:
    """How two layouts over *one* storage overlap: "full" (same elements, same order), "partial",
    "no", or "too_hard" when one is not dense. Layouts over different storages never overlap."""
    if a == b:
        return "full"
    if 0 in a.shape or 0 in b.shape:
        return "no"
    if not (
        is_non_overlapping_and_dense(a.shape, a.stride)
        and is_non_overlapping_and_dense(b.shape, b.stride)
    ):
        return "too_hard"
    a_begin, b_begin = a.offset * a.itemsize, b.offset * b.itemsize
    a_end = a_begin + numel(a.shape) * a.itemsize
    b_end = b_begin + numel(b.shape) * b.itemsize
    if a_begin == b_begin and a_end == b_end:
        return "full" if a.stride == b.stride else "partial"
    return "partial" if a_begin < b_end and b_begin < a_end else "no"
