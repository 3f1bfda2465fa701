"""Shape, stride and storage as data, and why a tensor is not contiguous or cannot be viewed.

The rules are those of `Tensor.is_contiguous` and `Tensor.view` (PyTorch, "Tensor Views"):
dimensions `d` and `d+1` can be walked as one exactly if `stride[d] == size[d+1] * stride[d+1]`;
dimensions of size 1 do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypedDict


class ViewStep(TypedDict):
    """One tensor of a chain of views, and the call that made it from the one before."""

    op: str  # 'arange(12)', '.view(3, 4)', '.t()'
    shape: list[int]
    stride: list[int]
    offset: int


class StorageInfo(TypedDict):
    """The memory below: `values` are texts of the first cells (None: not read)."""

    id: str
    numel: int
    bytes: int
    address: int | None
    values: list[str] | None


class StrideSnapshot(TypedDict):
    """The whole picture; the last step of `chain` is the tensor that is shown."""

    kind: str  # 'strides'
    version: int
    name: str
    dtype: str
    itemsize: int
    device: str
    storage: StorageInfo
    chain: list[ViewStep]
    asked_view: list[int] | None  # the shape of a `view` to explain


class Contiguity(TypedDict):
    """The answer to `is_contiguous()` and its reason; `dims` are the offending dimensions."""

    contiguous: bool
    dims: list[int]
    reason: str
    needed: list[int]
    overlapping: bool


class ViewAnswer(TypedDict):
    """The answer to `view(shape)`. `dims`: the pair that cannot be merged; `copy_bytes`: what
    `reshape` has to copy instead, 0 if nothing."""

    ok: bool
    shape: list[int]
    stride: list[int] | None
    dims: list[int]
    reason: str
    copy_bytes: int


def row_major(shape: Sequence[int]) -> list[int]:
    """The strides of a contiguous tensor, in elements."""
    stride = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        stride[d] = stride[d + 1] * max(shape[d + 1], 1)
    return stride


def cell_of(index: Sequence[int], stride: Sequence[int], offset: int) -> int:
    """The storage cell of an index: offset + Σ index · stride."""
    return offset + sum(i * s for i, s in zip(index, stride, strict=True))


def indices(shape: Sequence[int], most: int | None = None) -> Iterator[tuple[int, ...]]:
    """All indices in row-major order, at most `most`."""
    total = math.prod(shape)
    strides = row_major(shape)
    for n in range(total if most is None else min(total, most)):
        yield tuple((n // s) % max(size, 1) for s, size in zip(strides, shape, strict=True))


def explain_contiguity(shape: Sequence[int], stride: Sequence[int]) -> Contiguity:
    """Why a tensor of this shape and stride is, or is not, contiguous.

    The offending pair is the innermost one at which walking the last index first does not walk the
    memory cell by cell.
    """
    needed = row_major(shape)
    matter = [d for d in range(len(shape)) if shape[d] != 1]
    overlapping = any(stride[d] == 0 for d in matter) and 0 not in shape

    def answer(ok: bool, dims: list[int], reason: str) -> Contiguity:
        return Contiguity(
            contiguous=ok, dims=dims, reason=reason, needed=needed, overlapping=overlapping
        )

    if 0 in shape:
        return answer(True, [], "it has no elements")
    expected, inner = 1, -1
    for d in reversed(matter):
        if stride[d] == expected:
            expected, inner = expected * shape[d], d
            continue
        if stride[d] == 0:
            reason = f"dim {d} is expanded (stride 0): its {shape[d]} indices share the same cells"
            return answer(False, [d], reason)
        if inner >= 0:
            reason = (
                f"dim {d} (size {shape[d]}, stride {stride[d]}) does not follow on dim {inner} "
                "(size "
                f"{shape[inner]}, stride {stride[inner]}): its step would have to be "
                f"{shape[inner]} × {stride[inner]} = {expected}, but is {stride[d]}"
            )
            return answer(False, [d, inner], reason)
        swapped = [e for e in matter if e < d and 0 < stride[e] < stride[d]]
        if swapped:
            e = min(swapped, key=lambda e: stride[e])
            reason = (
                f"dim {e} (stride {stride[e]}) and dim {d} (stride {stride[d]}) are in exchanged "
                "order: the "
                f"last dim must take the smallest step, 1, but moves {stride[d]} cells while dim "
                f"{e} moves {stride[e]}"
            )
            return answer(False, [e, d], reason)
        reason = (
            f"the last dim {d} (size {shape[d]}) moves {stride[d]} cells at a step, not 1: "
            "cells are skipped"
        )
        return answer(False, [d], reason)
    return answer(
        True, [], "every step of the last index moves one cell, and each dim follows on the next"
    )


def _chunks(shape: Sequence[int], stride: Sequence[int]) -> list[list[int]]:
    """Runs of dimensions that can be walked as one, first to last; size 1 left out."""
    out: list[list[int]] = []
    for d in (d for d in range(len(shape)) if shape[d] != 1):
        if out and stride[out[-1][-1]] == shape[d] * stride[d]:
            out[-1].append(d)
        else:
            out.append([d])
    return out


def explain_view(
    shape: Sequence[int], stride: Sequence[int], asked: Sequence[int], itemsize: int
) -> ViewAnswer:
    """Whether `view(asked)` is possible, its strides, or the pair of dimensions that forbids it.

    Args:
        shape, stride: of the tensor, strides in elements.
        asked: the new shape; one entry may be -1.
        itemsize: bytes of an element, for the cost of the copy.
    """
    numel = math.prod(shape)
    new = list(asked)

    def refused(reason: str, dims: list[int] | None = None, copy_bytes: int = 0) -> ViewAnswer:
        return ViewAnswer(
            ok=False, shape=new, stride=None, dims=dims or [], reason=reason, copy_bytes=copy_bytes
        )

    if new.count(-1) > 1 or any(n < -1 for n in new):
        return refused(f"only one dimension may be -1 and none below it, got {new}")
    if -1 in new:
        rest = -math.prod(new)
        if rest == 0 or numel % rest:
            return refused(f"{numel} elements do not fill the shape {new}")
        new[new.index(-1)] = numel // rest
    if math.prod(new) != numel:
        return refused(
            f"the shape {new} has {math.prod(new)} elements, but the tensor has {numel}; no copy "
            "helps"
        )
    if numel == 0:
        return ViewAnswer(
            ok=True, shape=new, stride=row_major(new), dims=[], reason="no elements", copy_bytes=0
        )
    result = [1] * len(new)
    k = len(new) - 1
    chunks = _chunks(shape, stride)
    for c in range(len(chunks) - 1, -1, -1):
        chunk = chunks[c]
        size, filled, step = math.prod(shape[d] for d in chunk), 1, stride[chunk[-1]]
        while k >= 0 and (filled < size or new[k] == 1):
            result[k] = filled * step
            filled *= new[k]
            k -= 1
        if filled != size:
            outer, inner = chunks[c - 1][-1], chunk[0]
            needed = shape[inner] * stride[inner]
            return refused(
                f"new dim {k + 1} (size {new[k + 1]}) spans dim {outer} (size {shape[outer]}, "
                "stride "
                f"{stride[outer]}) and dim {inner} (size {shape[inner]}, stride "
                f"{stride[inner]}); one stride "
                f"can walk both only if stride[{outer}] were {shape[inner]} × {stride[inner]} = "
                f"{needed}",
                [outer, inner],
                numel * itemsize,
            )
    return ViewAnswer(
        ok=True,
        shape=new,
        stride=result,
        dims=[],
        reason="every new dim lies in one run of cells",
        copy_bytes=0,
    )
