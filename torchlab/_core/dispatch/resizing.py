"""Another size for a tensor that stays itself: in its memory if that is large enough, else in more
memory, which then every tensor over the same storage has.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.resize_.html
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends import pinned
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import compute
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import geometry, leaf_changed, relocate, storage_of
from torchlab._core.tensor import Tensor


def array_over(s: Storage, shape: Any, strides: Any, offset: int, dtype: np.dtype) -> Any:
    """An array over a storage's memory; strides and offset in elements."""
    size = dtype.itemsize
    flat = s.bytes[offset * size :]
    flat = flat[: flat.size - flat.size % size].view(dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, tuple(x * size for x in strides))


def tensors_over(s: Storage) -> list[Tensor]:
    """All tensors that have this memory. (They point at their storage, not the other way round;
    memory changes rarely enough to look.)"""
    records = s.records()
    found = [t for t in gc.get_referrers(*records) if isinstance(t, Tensor)]
    return [t for t in found if any(t._s is r for r in records)]


# Tensors that do not fit into their storage any more, by id: they keep the old memory until it has
# grown again. (Tensors compare elements: no keys of a weak dictionary.)
_left_out: dict[int, tuple[Any, Any]] = {}


def moved(s: Storage, replacement: Storage) -> None:
    """Let a storage, and the tensors over it that fit, have other memory."""
    places = []
    for t in tensors_over(s):
        if t._a.size:
            found = _left_out.pop(id(t), None)
            places.append((t, geometry(t) if found is None else found[1]))
    s.move(replacement)
    for t, where in places:
        shape, strides, offset = where
        end = offset + 1 + sum((n - 1) * x for n, x in zip(shape, strides, strict=True))
        if end * t._a.itemsize <= s.nbytes:
            relocate(t, array_over(s, *where, t._a.dtype))
        else:
            at = id(t)
            _left_out[at] = (weakref.ref(t, lambda r, at=at: _left_out.pop(at, None)), where)


def reallocate(s: Storage, replacement: Storage) -> None:
    """Give a storage other memory that begins with the old bytes, and its tensors with it."""
    n = min(s.nbytes, replacement.nbytes)
    replacement.bytes[:n] = s.bytes[:n]
    moved(s, replacement)


def resize(t: Tensor, shape: tuple[int, ...], strides: Any, op: str) -> None:
    """Let `t` have this shape and these strides (in elements), from its first element on."""
    k = t._k
    before = t._a.shape
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
            locked = pinned.is_pinned(s.owner)
            reallocate(s, storage_of(compute.empty((count,), k.dtype, k.device, locked=locked)))
        t._a = array_over(s, shape, strides, offset, k.np)
    t._k = k.c if t._a.flags.c_contiguous else k.v
    leaf_changed(t, before, k)


__all__ = ["array_over", "moved", "reallocate", "resize", "tensors_over"]
