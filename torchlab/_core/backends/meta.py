"""The meta device: shapes and strides without memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout


class _Flags:
    __slots__ = ("c_contiguous", "writeable")

    def __init__(self, contiguous: bool) -> None:
        self.c_contiguous = contiguous
        self.writeable = True


class MetaArray:
    """Looks like an array as far as shape, strides (bytes) and dtype go; there are no elements."""

    __slots__ = ("shape", "strides", "dtype", "offset")

    def __init__(self, shape: Any, dtype: np.dtype, strides: Any = None, offset: int = 0) -> None:
        """`strides` in elements, row-major if not given; `offset` in elements."""
        self.shape = tuple(shape)
        if strides is None:
            strides = layout.contiguous_strides(self.shape)
        self.strides = tuple(x * dtype.itemsize for x in strides)
        self.dtype = dtype
        self.offset = offset

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return layout.numel(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def flags(self) -> _Flags:
        return _Flags(
            layout.is_contiguous(self.shape, tuple(x // self.itemsize for x in self.strides))
        )

    @property
    def __array_interface__(self) -> dict[str, Any]:
        # Only the offset arithmetic of `geometry` asks for it.
        return {
            "data": (self.offset * self.itemsize, False),
            "shape": self.shape,
            "strides": self.strides,
            "version": 3,
        }
