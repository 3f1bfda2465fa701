"""Combining values at positions of a flattened array, for scatter_reduce and index_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.ops._places import add_at
from torchlab._core.ops._reduce import FLOAT32, is_half

REDUCES = ("sum", "prod", "mean", "amax", "amin")


def half_in_float32(kernel: Any) -> Any:
    """The kernel, computing in float32 where self and source are of one 16-bit type: those of two
    types must reach it as they are, to be refused."""

    def run(xp: Any, a: Any, dim: int, index: Any, source: Any, *rest: Any) -> Any:
        if not is_half(a.dtype) or source.dtype != a.dtype:
            return kernel(xp, a, dim, index, source, *rest)
        wide = (a.astype(FLOAT32), dim, index, source.astype(FLOAT32))
        return kernel(xp, *wide, *rest).astype(a.dtype)

    run.__doc__ = kernel.__doc__
    return run


def _identity(reduce: str, dtype: np.dtype) -> Any:
    if reduce in ("sum", "mean"):
        return dtype.type(0)
    if reduce == "prod":
        return dtype.type(1)
    if dtype.kind == "b":
        return dtype.type(reduce == "amin")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return dtype.type(info.min if reduce == "amax" else info.max)
    return dtype.type(-np.inf if reduce == "amax" else np.inf)


def reduce_at(
    xp: Any, a: Any, positions: Any, values: Any, reduce: str, include_self: bool
) -> None:
    """a.flat[positions] combined with `values` in place; a is row-major. Without `include_self` the
    places that are named at all forget their old values."""
    flat = a.reshape(-1)
    at = positions.ravel()
    if not include_self:
        flat[at] = _identity(reduce, a.dtype)
    if reduce == "mean":
        add_at(xp, a, positions, values)
        counts = xp.full(flat.shape, 1 if include_self else 0, np.int64)
        xp.add.at(counts, at, 1)
        counts = xp.maximum(counts, 1)
        flat[...] = (
            flat // counts.astype(a.dtype)
            if a.dtype.kind in "iu"
            else flat / counts.astype(flat.real.dtype)
        )
        return
    ufunc = {"sum": xp.add, "prod": xp.multiply, "amax": xp.maximum, "amin": xp.minimum}[reduce]
    add_at(xp, a, positions, values, ufunc)
