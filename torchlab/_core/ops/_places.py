"""What the families that read and write at indices share: checked index arrays, the layout that
advanced indexing gives, positions in memory, and adding at positions. Arrays in, arrays out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.ops._row_sums import add_rows, quick


def written(into: Any) -> Any:
    """A kernel from a function that writes into its first array: the kernel writes into a copy of
    the same memory format. The in-place form calls `into` itself and so copies nothing."""

    def kernel(xp: Any, a: Any, *rest: Any) -> Any:
        r = preserved(xp, a)
        into(xp, r, *rest)
        return r

    return _marked(kernel, into)


def written_row_major(into: Any) -> Any:
    """As `written`, for operators whose new results PyTorch makes row-major."""

    def kernel(xp: Any, a: Any, *rest: Any) -> Any:
        r = a.copy(order="C")
        into(xp, r, *rest)
        return r

    return _marked(kernel, into)


def _marked(kernel: Any, into: Any) -> Any:
    kernel.into = into
    kernel.__doc__ = into.__doc__
    return kernel


def elements(a: Any) -> tuple[int, ...]:
    """The strides of an array in elements."""
    size = a.itemsize
    return tuple(x // size for x in a.strides)


def preserved(xp: Any, a: Any) -> Any:
    """A copy in the memory format that `clone` gives."""
    if a.flags.c_contiguous or a.size == 0:
        return a.copy(order="C")
    return in_order(xp, a.copy(order="K"), layout.empty_like_strides(a.shape, elements(a)))


def scalar_name(a: Any) -> str:
    """PyTorch's name of the array's type in messages: Float, Long …"""
    return dt.from_numpy(a.dtype).scalar_name


def index_arrays(xp: Any, shape: Any, indices: Any) -> list[Any]:
    """One int64 array (or None for a dim that is kept) for each dim: masks become the positions
    where they hold. Raises IndexError as PyTorch for types, masks and counts that do not fit."""
    found: list[Any] = []
    for i, x in enumerate(indices):
        if x is None:
            found.append(None)
            continue
        kind, size = x.dtype.kind, x.dtype.itemsize
        if kind == "b" or (kind == "u" and size == 1):
            at = len(found)
            if x.shape != tuple(shape[at : at + x.ndim]):
                raise IndexError(
                    f"The shape of the mask {list(x.shape)} at index {i} does not match the shape "
                    "of the indexed "
                    f"tensor {list(shape)} at index {at}"
                )
            found.extend(xp.nonzero(x) if x.ndim else xp.nonzero(x.reshape(1)))
        elif kind == "i" and size >= 4:
            found.append(x)
        else:
            raise IndexError(
                "index: tensors used as indices must be long, int, byte or bool tensors, but got "
                f"{x.dtype.name} at index {i}"
            )
    if len(found) > len(shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(shape)} (got {len(found)})"
        )
    return found + [None] * (len(shape) - len(found))


_FEW = 512


class Places:
    """Which elements advanced indexing names, and the shape in which it gives them: where the index
    arrays stand side by side their common shape takes their place, else it comes first."""

    __slots__ = ("arrays", "key", "shape", "source", "at", "common")

    def __init__(self, source: Any, arrays: list[Any]) -> None:
        given = [i for i, x in enumerate(arrays) if x is not None]
        try:
            common = np.broadcast_shapes(*[arrays[i].shape for i in given])
        except ValueError:
            shapes = ", ".join(str(list(arrays[i].shape)) for i in given)
            raise IndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                f"{shapes}"
            ) from None
        if 0 not in common and any(source[i] == 0 for i in given):
            raise IndexError("index is out of bounds for dimension with size 0")
        adjacent = not given or given[-1] - given[0] == len(given) - 1
        self.at = (given[0] if given else 0) if adjacent else 0
        kept = [n for n, x in zip(source, arrays, strict=True) if x is None]
        self.shape = (*kept[: self.at], *common, *kept[self.at :])
        self.arrays, self.common, self.source = arrays, common, tuple(source)
        self.key = tuple(slice(None) if x is None else x for x in arrays)

    def check(self) -> None:
        """Raise PyTorch's IndexError for an index outside its dim (if anything is read at all)."""
        if 0 in self.shape:
            return
        for d, x in enumerate(self.arrays):
            if x is not None:
                check_range(x, self.source[d], d)

    def strides(self, strides: Any) -> Any:
        """The strides PyTorch gives the result for a source with these strides (elements)."""
        kept = [s for s, x in zip(strides, self.arrays, strict=True) if x is None]
        n = len(self.common)
        before, after = kept[: self.at], kept[self.at :]
        operands = [(*before, *(0,) * n, *after)]
        shapes = [self.shape]
        for x in self.arrays:
            if x is not None:
                wide = np.broadcast_to(x, self.common)
                own = tuple(s // x.itemsize for s in wide.strides)
                shape = (*(1,) * len(before), *self.common, *(1,) * len(after))
                placed = layout.view_strides(self.common, own, shape)
                operands.append(placed if placed is not None else layout.contiguous_strides(shape))
                shapes.append(shape)
        return layout.ti_output_strides(self.shape, shapes, operands)

    def add(self, xp: Any, a: Any, values: Any, ufunc: Any = None) -> None:
        """a[places] += values, places that are named several times counted (`ufunc` for another
        sum).
        """
        narrow = a.dtype.itemsize == 2 and a.dtype.kind not in "iub"
        if values.size < _FEW and not narrow:  # cheaper to begin, dearer for each element
            (ufunc or xp.add).at(a, self.key, values)
        elif (
            ufunc is None
            and self._whole_rows
            and quick(xp, a.dtype, a.size)
            and a.flags.c_contiguous
            and a.size <= 4 * math.prod(self.shape)
        ):
            where = self.arrays[0].ravel()
            rows = xp.broadcast_to(values, self.shape).reshape(where.size, -1)
            add_rows(a.reshape(len(a), -1), xp.where(where < 0, where + len(a), where), rows)
        else:
            add_at(xp, a, self.positions(xp), values, ufunc)

    @property
    def _whole_rows(self) -> bool:
        """Whether only the first dim is indexed."""
        return self.arrays[0] is not None and all(x is None for x in self.arrays[1:])

    def positions(self, xp: Any) -> Any:
        """The row-major positions of all places in the source, in the result's shape."""
        steps = layout.contiguous_strides(self.source)
        kept = [d for d, x in enumerate(self.arrays) if x is None]
        where = xp.zeros((), np.int64)
        n, total = len(self.common), len(self.shape)
        for d, x in enumerate(self.arrays):
            if x is None:
                place = kept.index(d)
                place += n if place >= self.at else 0
                i = xp.arange(self.source[d]).reshape((-1,) + (1,) * (total - place - 1))
            else:
                i = xp.where(x < 0, x + self.source[d], x) if x.size else x.astype(np.int64)
                i = xp.broadcast_to(i, self.common).reshape(
                    self.common + (1,) * (total - self.at - n)
                )
            where = where + i.astype(np.int64) * steps[d]
        return xp.broadcast_to(where, self.shape)


def check_range(x: Any, size: int, dim: int) -> None:
    if x.size == 0:
        return
    low, high = int(x.min()), int(x.max())
    if low < -size or high >= size:
        bad = low if low < -size else high
        raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


def add_at(xp: Any, a: Any, positions: Any, values: Any, ufunc: Any = None) -> None:
    """a.flat[positions] += values, repeated positions counted; any strides. 16-bit floats are
    summed
    in float32. `ufunc` other than add may be given."""
    ufunc = xp.add if ufunc is None else ufunc
    narrow = a.dtype.itemsize == 2 and a.dtype.kind not in "iub"
    if a.flags.c_contiguous and not narrow:
        flat = a.reshape(-1)
    else:
        flat = a.astype(np.float32 if narrow else a.dtype, order="C").reshape(-1)
    values = xp.broadcast_to(xp.asarray(values, flat.dtype), positions.shape)
    ufunc.at(flat, positions.ravel(), values.ravel())
    if not a.flags.c_contiguous or narrow:
        a[...] = flat.reshape(a.shape).astype(a.dtype, copy=False)


def in_order(xp: Any, r: Any, strides: Any) -> Any:
    """The fresh array `r` with exactly these strides (elements), copied if it has others."""
    size = r.itemsize
    if r.size == 0 or tuple(s // size for s in r.strides) == tuple(strides):
        return r
    if layout.is_contiguous(r.shape, tuple(strides)):
        r = r if r.flags.c_contiguous else r.copy(order="C")
        # The strides of dims of size 1 say nothing, but PyTorch's are PyTorch's.
        same = tuple(s // size for s in r.strides) == tuple(strides)
        return (
            r
            if same
            else np.lib.stride_tricks.as_strided(r, r.shape, tuple(s * size for s in strides))
        )
    flat = xp.empty(1 + sum((n - 1) * s for n, s in zip(r.shape, strides, strict=True)), r.dtype)
    made = np.lib.stride_tricks.as_strided(flat, r.shape, tuple(s * size for s in strides))
    made[...] = r
    return made


def copied(xp: Any, a: Any, strides: Any = None) -> Any:
    """A fresh array with a's elements and the given strides (elements; row-major if None)."""
    if strides is None or a.size == 0:
        return a.copy(order="C")
    return in_order(xp, a.copy(order="C"), strides)


def format_strides(a: Any, shape: Any) -> Any:
    """Channels-last strides for a new result of `shape` if `a` is channels last, else None."""
    n = len(shape)
    if (
        n in (4, 5)
        and a.ndim == n
        and layout.suggest_memory_format(a.shape, elements(a)).startswith("channels")
    ):
        return layout.channels_last_strides(tuple(shape))
    return None
