"""Sizes alone: dims, broadcasting, inferred sizes, and the result shapes of common operators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import index as to_int
from typing import Any, TypeAlias

Shape: TypeAlias = tuple[int, ...]


def prefix(op: str) -> str:
    """What stands before an error's phrase: the operator's name, if it is known."""
    return f"{op}: " if op else ""


def as_size(x: Any) -> int:
    """An integer of any kind as an int; a symbolic one (a `torch.SymInt`) stays what it is.
    TypeError for what is none."""
    if type(x) is bool:
        raise TypeError("a size is an integer, not a bool")
    return x if isinstance(x, int) else to_int(x)


def numel(shape: Sequence[int]) -> int:
    """Number of elements of a shape; 1 for the shape of a scalar, `()`."""
    return math.prod(shape)


def wrap_dim(dim: int, ndim: int, op: str = "") -> int:
    """`dim` as a non-negative index; negative dims count from the end.

    A 0-d tensor is treated as if it had one dim, so -1 and 0 are allowed and give 0.
    Raises IndexError outside [-ndim, ndim - 1].
    """
    if ndim == 0:
        ndim = 1
    if 0 <= dim < ndim:
        return dim
    if -ndim <= dim < 0:
        return dim + ndim
    raise IndexError(
        f"{prefix(op)}Dimension out of range (expected to be in range of"
        f" [{-ndim}, {ndim - 1}], but got {dim})"
    )


def wrap_dims(dims: Iterable[int], ndim: int, op: str = "") -> tuple[int, ...]:
    """Each of `dims` as a non-negative index, in the order given.

    Raises IndexError for a dim out of range, RuntimeError for one named twice.
    """
    wrapped = tuple([wrap_dim(dim, ndim, op) for dim in dims])
    for i, index in enumerate(wrapped):
        if index in wrapped[:i]:
            raise RuntimeError(
                f"{prefix(op)}dim {index} appears multiple times in the list of dims"
            )
    return wrapped


def broadcast_shapes(*shapes: Shape, op: str = "") -> Shape:
    """The shape that all `shapes` expand to: aligned at the last dim, 1 gives way to any size.

    Raises RuntimeError for sizes that differ and are not 1. In the message "a" is the shape
    broadcast so far and "b" the next operand.
    """
    if not shapes:
        return ()
    result = shapes[0]
    for shape in shapes[1:]:
        if len(shape) != len(result) or shape != result:
            result = _broadcast_pair(result, shape, op)
    return tuple(result)


def _broadcast_pair(a: Shape, b: Shape, op: str) -> Shape:
    if not b:
        return a
    if not a:
        return b
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    lead = len(longer) - len(shorter)
    out = list(longer)
    for i in range(len(shorter) - 1, -1, -1):
        big, small = longer[lead + i], shorter[i]
        if big == small or small == 1:
            continue
        if big != 1:
            size_a, size_b = (big, small) if longer is a else (small, big)
            raise RuntimeError(
                f"{prefix(op)}The size of tensor a ({size_a}) must match the size of tensor b"
                f" ({size_b}) at non-singleton dimension {lead + i}"
                f" (shapes {list(a)} and {list(b)})"
            )
        out[lead + i] = small
    return tuple(out)


def infer_size(shape: Sequence[int], count: int, op: str = "") -> Shape:
    """`shape` with its one -1 replaced so that it holds `count` elements.

    Raises RuntimeError when two sizes are -1, one is below -1, the number of elements differs, or
    the -1 could be anything because another size is 0.
    """
    known = 1
    unknown = -1
    for i, size in enumerate(shape):
        if size >= 0:
            known *= size
        elif size == -1:
            if unknown >= 0:
                raise RuntimeError(
                    f"{prefix(op)}only one dimension can be inferred, but shape {list(shape)}"
                    " has -1 more than once"
                )
            unknown = i
        else:
            raise RuntimeError(
                f"{prefix(op)}invalid shape dimension {size} at index {i} of shape {list(shape)}"
            )
    if unknown < 0:
        if known == count:
            return tuple(shape)
    elif known > 0:
        if count % known == 0:
            return (*shape[:unknown], count // known, *shape[unknown + 1 :])
    elif count == 0:
        raise RuntimeError(
            f"{prefix(op)}cannot reshape tensor of 0 elements into shape {list(shape)} because the"
            " unspecified dimension size -1 can be any value and is ambiguous"
        )
    raise RuntimeError(f"{prefix(op)}shape '{list(shape)}' is invalid for input of size {count}")


def reduction_shape(
    shape: Shape, dims: int | Sequence[int] | None, keepdim: bool = False, op: str = ""
) -> Shape:
    """Shape after reducing `dims`; None or an empty sequence reduces all dims.

    With `keepdim` the reduced dims stay, with size 1. Raises as `wrap_dims`.
    """
    ndim = len(shape)
    if dims is None:
        return (1,) * ndim if keepdim else ()
    if isinstance(dims, Sequence):
        reduced = wrap_dims(dims, ndim, op)
        if not reduced:
            return (1,) * ndim if keepdim else ()
    else:
        reduced = (wrap_dim(dims, ndim, op),)
    if keepdim:
        return tuple([1 if i in reduced else size for i, size in enumerate(shape)])
    return tuple([size for i, size in enumerate(shape) if i not in reduced])


def matmul_shape(a: Shape, b: Shape, op: str = "") -> Shape:
    """Result shape of `a @ b`: 1-d operands are vectors, leading dims broadcast as a batch.

    Raises RuntimeError when an operand is 0-d, when the inner sizes differ, or when the batch dims
    do not broadcast.
    """
    na, nb = len(a), len(b)
    if na == 2 and nb == 2 and a[1] == b[0]:
        return (a[0], b[1])
    if na == 0 or nb == 0:
        raise RuntimeError(
            f"{prefix(op)}both arguments to matmul need to be at least 1D,"
            f" but they are {na}D and {nb}D"
        )
    batch = broadcast_shapes(a[:-2], b[:-2], op=op) if na > 2 and nb > 2 else a[:-2] or b[:-2]
    if a[-1] != (b[0] if nb == 1 else b[-2]):
        raise RuntimeError(prefix(op) + _matmul_mismatch(a, b, batch))
    rows = a[-2:-1] if na > 1 else ()
    columns = b[-1:] if nb > 1 else ()
    return (*batch, *rows, *columns)


def _matmul_mismatch(a: Shape, b: Shape, batch: Shape) -> str:
    """The phrase of the kernel that PyTorch would have called with these operands."""
    na, nb = len(a), len(b)
    rows = numel(a[:-1])
    shapes = f" (shapes {list(a)} and {list(b)})"
    if na == 1 and nb == 1:
        return (
            f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same"
            f" number of elements, but got {a[0]} and {b[0]} elements respectively"
        )
    if nb == 1:
        return f"size mismatch, got input ({rows}), mat ({rows}x{a[-1]}), vec ({b[0]}){shapes}"
    if nb == 2:
        return (
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {b[0]}x{b[1]}){shapes}"
        )
    count = numel(batch)
    return (
        "Expected size for first two dimensions of batch2 tensor to be:"
        f" [{count}, {a[-1]}] but got: [{count}, {b[-2]}].{shapes}"
    )


def cat_shape(shapes: Sequence[Shape], dim: int = 0, op: str = "cat") -> Shape:
    """Result shape of concatenating along `dim`; operands of shape (0,) are passed over, whatever
    the others' number of dims (PyTorch's legacy rule).

    Raises ValueError for an empty list, RuntimeError for a 0-d operand or for sizes that differ
    outside `dim`, IndexError for `dim` out of range.
    """
    if not shapes:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    first: Shape | None = None
    for i, shape in enumerate(shapes):
        if not shape:
            raise RuntimeError(
                f"{prefix(op)}zero-dimensional tensor (at position {i}) cannot be concatenated"
            )
        if first is None and (len(shape) != 1 or shape[0] != 0):
            first = shape
    if first is None:
        return (0,)  # PyTorch does not look at `dim` then
    ndim = len(first)
    dim = wrap_dim(dim, ndim, op)
    total = 0
    for i, shape in enumerate(shapes):
        if len(shape) == 1 and shape[0] == 0:
            continue
        if len(shape) != ndim:
            raise RuntimeError(
                f"{prefix(op)}Tensors must have same number of dimensions:"
                f" got {ndim} and {len(shape)}"
            )
        for d in range(ndim):
            if d != dim and shape[d] != first[d]:
                raise RuntimeError(
                    f"{prefix(op)}Sizes of tensors must match except in dimension {dim}. Expected"
                    f" size {first[d]} but got size {shape[d]} for tensor number {i} in the list."
                )
        total += shape[dim]
    return (*first[:dim], total, *first[dim + 1 :])


def flatten_shape(shape: Shape, start_dim: int = 0, end_dim: int = -1, op: str = "") -> Shape:
    """Shape with the dims from `start_dim` to `end_dim`, both included, merged into one.

    A 0-d shape becomes (1,). Raises IndexError for a dim out of range, RuntimeError when start
    comes after end.
    """
    ndim = len(shape)
    start = wrap_dim(start_dim, ndim, op)
    end = wrap_dim(end_dim, ndim, op)
    if start > end:
        raise RuntimeError(
            f"{prefix(op)}flatten() has invalid args: start_dim cannot come after end_dim"
            f" (start_dim {start}, end_dim {end})"
        )
    if ndim == 0:
        return (1,)
    return (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])


def unflatten_shape(shape: Shape, dim: int, sizes: Sequence[int], op: str = "unflatten") -> Shape:
    """Shape with `dim` split into `sizes`, of which one may be -1.

    Raises IndexError for a dim out of range, RuntimeError for a 0-d shape or when `sizes` is empty
    or does not multiply up to the dim's size.
    """
    if not sizes:
        raise RuntimeError(f"{prefix(op)}sizes must be non-empty")
    dim = wrap_dim(dim, len(shape), op)
    if not shape:
        raise RuntimeError(f"{prefix(op)}a 0-dim tensor has no dim to split into {list(sizes)}")
    size = shape[dim]
    negatives = [s for s in sizes if s < 0]
    known = math.prod([s for s in sizes if s >= 0])
    if len(negatives) <= 1 and all(s == -1 for s in negatives):
        fits = known == size if not negatives else (size % known == 0 if known else size == 0)
        if not fits:
            raise RuntimeError(
                f"{prefix(op)}Provided sizes {list(sizes)} don't multiply up to the size of"
                f" dim {dim} ({size}) in the input tensor"
            )
    return (*shape[:dim], *infer_size(sizes, size, op), *shape[dim + 1 :])
