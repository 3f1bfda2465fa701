"""Small pieces that several families' kernels share: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np


def fast(ufunc: Any) -> Any:
    """Mark a kernel: for contiguous operands and default values, `ufunc` alone gives its result."""

    def mark(kernel: Any) -> Any:
        kernel.fast_ufunc = ufunc
        return kernel

    return mark


def exact(kernel: Any) -> Any:
    """Mark a kernel that moves or compares values: 16-bit floats need no wider arithmetic."""
    kernel.exact = True
    return kernel


def axes(dim: Any) -> Any:
    """A `dim` argument as NumPy's axis: None, an int, or a tuple."""
    return dim if dim is None or type(dim) is int else tuple(dim)


def into(result: Any, out: Any) -> Any:
    """Hand a finished result over, through `out` if there is one."""
    if out is None:
        return result
    out[...] = result
    return out


def is_int(a: Any) -> bool:
    return a.dtype.kind in "iu"


__all__ = ["axes", "exact", "fast", "into", "is_int", "np"]
