"""Another size for a tensor that stays itself: in its memory if that is large enough, else in more
memory, which then every tensor over the same storage has.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.resize_.html
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import compute
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import geometry, relocate, storage_of
from torchlab._core.tensor import Tensor


def array_over(s: Storage, shape: Any, strides: Any, offset: int, dtype: np.dtype) -> Any:
    """An array over a storage's memory; strides and offset in elements."""
    size = dtype.itemsize
    if 0 in shape:
        return np.empty(shape, dtype)
    flat = s.bytes[offset * size :]
    flat = flat[: flat.size - flat.size % size].view(dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, tuple(x * size for x in strides))


def reallocate(s: Storage, replacement: Storage) -> None:
    """Give a storage other memory that begins with the old bytes, and its tensors with it."""
    n = min(s.nbytes, replacement.nbytes)
    replacement.bytes[:n] = s.bytes[:n]
    # Tensors point at their storage, not the other way round; this is rare enough to look.
    tensors = [t for t in gc.get_referrers(s) if isinstance(t, Tensor) and t._s is s and t._a.size]
    places = [(t, geometry(t)) for t in tensors]
    s.owner, s._bytes, s.block = replacement, replacement.bytes, None
    for t, (shape, strides, offset) in places:
        end = offset + 1 + sum((n - 1) * x for n, x in zip(shape, strides, strict=True))
        if end * t._a.itemsize <= s.nbytes:
            relocate(t, array_over(s, shape, strides, offset, t._a.dtype))


def resize(t: Tensor, shape: tuple[int, ...], strides: Any, op: str) -> None:
    """Let `t` have this shape and these strides (in elements), from its first element on."""
    k = t._k
    if t._level and type(t._a) is MetaArray:  # Note [Levels]
        raise RuntimeError(
            f"{op}: a tensor inside a function transform has no memory of its own to resize; make a"
            " new one of that size"
        )
    if k.device.type == "meta":
        t._a = MetaArray(shape, k.np, strides)
    else:
        s = storage_of(t)
        offset = geometry(t)[2]
        needed = layout.storage_nbytes(shape, strides, offset, k.itemsize)
        if needed > s.nbytes:
            if s.lent:
                raise RuntimeError(
                    f"{op}: Trying to resize storage that is not resizable: shape {list(shape)}"
                    f" needs {needed} bytes, more than the {s.nbytes} that were lent (by NumPy, for"
                    " instance); clone() the tensor first"
                )
            count = -(-needed // k.itemsize)
            reallocate(s, storage_of(compute.empty((count,), k.dtype, k.device)))
        t._a = array_over(s, shape, strides, offset, k.np)
    t._k = k.c if t._a.flags.c_contiguous else k.v


__all__ = ["array_over", "reallocate", "resize"]
