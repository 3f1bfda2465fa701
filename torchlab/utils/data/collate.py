"""Making a batch of samples: `default_collate`, and `default_convert` for single samples.

Source: https://docs.pytorch.org/docs/2.13/data.html#torch.utils.data.default_collate
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import sharing
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import edge_of
from torchlab._core.tensor import Tensor

_TEXT = (str, bytes)
_REFUSAL = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _no_text(array: Any) -> None:
    if array.dtype.kind in "SaUO":
        raise TypeError(_REFUSAL.format(array.dtype))


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
    """`values` in the original's class, or as they are where that class cannot be made so.

    A container that can change is copied and filled: what else it carries comes along (the factory
    of a defaultdict, a tokenizer's encodings).
    """
    if type(original) in (dict, list):
        return values
    try:
        if isinstance(original, MutableMapping):
            filled: Any = copy.copy(original)
            filled.update(values)
        elif isinstance(original, MutableSequence):
            filled = copy.copy(original)
            for i, value in enumerate(values):
                filled[i] = value
        else:
            filled = type(original)(values)
        return filled
    except TypeError:
        return values


allocate: sharing.Allocate | None = None
"""Set in a loader's workers: batches are put together where the loader sees them."""


def _stack(batch: list[Tensor]) -> Tensor:
    if allocate is not None:
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
            out = sharing.empty((len(batch), *first.shape), first.dtype, allocate)
            np.stack([t._a for t in batch], out=out._a)
            return out
    return aten.stack(batch, 0)


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """A batch of samples, in which `collate_fn_map` says what becomes of which class.

    collate_fn_map: a class, or a tuple of them, → a function (batch, *, collate_fn_map). Mappings
    and sequences that are not in it are collated entry by entry. Raises TypeError for other
    classes, RuntimeError for sequences of unequal sizes.
    """
    first = batch[0]
    if collate_fn_map is not None:
        made = collate_fn_map.get(type(first))
        if made is not None:
            return made(batch, collate_fn_map=collate_fn_map)
        for kinds, made in collate_fn_map.items():
            if isinstance(first, kinds):
                return made(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        entries = {
            k: collate([sample[k] for sample in batch], collate_fn_map=collate_fn_map)
            for k in first
        }
        return _like(first, entries)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(
            *(collate(e, collate_fn_map=collate_fn_map) for e in zip(*batch, strict=True))
        )
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [collate(e, collate_fn_map=collate_fn_map) for e in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple) else _like(first, parts)
    raise TypeError(_REFUSAL.format(type(first)))


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Tensors of one shape, stacked along a new first dimension."""
    return _stack(list(batch))


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """NumPy arrays as tensors, stacked. Raises TypeError for text and objects."""
    _no_text(batch[0])
    if not batch[0].ndim:
        return collate_numpy_scalar_fn(batch)
    return _stack([aten.as_tensor(b) for b in batch])


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """NumPy numbers in one tensor of their dtype. Raises TypeError for text and objects."""
    _no_text(batch[0])
    return aten.as_tensor(np.array(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Python's floats in a tensor of float64."""
    return aten.tensor(batch, dtype=dt.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Python's integers in a tensor of int64, truths in one of bool."""
    return aten.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Text, and bytes, as they are."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""What `default_collate` makes of which class. A program that enters a class of its own here
teaches it to every loader."""


def default_collate(batch: Any) -> Any:
    """A batch of samples as tensors with one dimension more: samples are tensors, arrays, numbers,
    text (kept), or mappings and sequences of these, which are collated entry by entry.

    Raises TypeError for other types, RuntimeError for sequences or tensors of unequal sizes.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


__all__ = [
    "collate", "collate_float_fn", "collate_int_fn", "collate_numpy_array_fn",
    "collate_numpy_scalar_fn", "collate_str_fn", "collate_tensor_fn", "default_collate",
    "default_collate_fn_map", "default_convert",
]  # fmt: skip
