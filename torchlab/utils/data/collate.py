"""Making a batch of samples: `default_collate`, and `default_convert` for single samples.

Source: https://docs.pytorch.org/docs/2.13/data.html#torch.utils.data.default_collate
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import sharing
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import edge_of
from torchlab._core.tensor import Tensor

_TEXT = (str, bytes)


def _no_text(array: Any) -> None:
    if array.dtype.kind in "SaUO":
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
            f"lists; found {array.dtype}"
        )


def default_convert(data: Any) -> Any:
    """NumPy arrays in a sample become tensors; containers are rebuilt, all else stays."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SaUO" else aten.as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, Sequence) and not isinstance(data, _TEXT):
        return _like(data, [default_convert(v) for v in data])
    return data


def _like(original: Any, values: Any) -> Any:
    """`values` in the original's class, or as they are where that class cannot be made so."""
    try:
        return type(original)(values)
    except TypeError:
        return values


into_shared_memory = False
"""Set in a loader's workers: batches are put together where the loader sees them."""


def _stack(batch: list[Tensor]) -> Tensor:
    if into_shared_memory:
        first = batch[0]._a
        plain = all(
            type(t) is Tensor
            and t._k.plain
            and edge_of(t) is None
            and t._a.shape == first.shape
            and t._a.dtype == first.dtype
            for t in batch
        )
        if plain and first.size:
            out = sharing.empty((len(batch), *first.shape), first.dtype)
            np.stack([t._a for t in batch], out=out._a)
            return out
    return aten.stack(batch, 0)


def default_collate(batch: Any) -> Any:
    """A batch of samples as tensors with one dimension more: samples are tensors, arrays, numbers,
    text (kept), or mappings and sequences of these, which are collated entry by entry.

    Raises TypeError for other types, RuntimeError for sequences or tensors of unequal sizes.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack(list(batch))
    if isinstance(first, np.ndarray) and first.ndim:
        _no_text(first)
        return _stack([aten.as_tensor(b) for b in batch])
    if isinstance(first, (np.ndarray, np.generic)):
        _no_text(first)
        return aten.as_tensor(np.array(batch))
    if isinstance(first, float):
        return aten.tensor(batch, dtype=dt.float64)
    if isinstance(first, int):
        return aten.tensor(batch)
    if isinstance(first, _TEXT):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {k: default_collate([sample[k] for sample in batch]) for k in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(entries) for entries in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        entries = [default_collate(list(e)) for e in zip(*batch, strict=True)]
        return entries if isinstance(first, tuple) else _like(first, entries)
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}"
    )


__all__ = ["default_collate", "default_convert"]
