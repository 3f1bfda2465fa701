"""What the masked operations share: masks, and what stands in for elements that are left out.

A mask is a boolean tensor (others are read as "not zero") that broadcasts to the input's shape;
True means that the element counts.
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.dispatch.registry import aten
from torchlab._core.info import iinfo
from torchlab._core.tensor import Tensor


def checked(op: str, input: Any) -> Tensor:
    """The input; TypeError if it is no tensor."""
    if not isinstance(input, Tensor):
        raise TypeError(f"masked.{op}(): input must be a Tensor, not {type(input).__name__}")
    return input


def full_mask(input: Tensor, mask: Any) -> Tensor:
    """The mask as bool, in the input's shape."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"the mask must be a Tensor, not {type(mask).__name__}")
    if mask.ndim > input.ndim:
        raise IndexError(
            "expected broadcastable mask (got mask dimensionality higher than of the input):"
            f" mask of shape {list(mask.shape)}, input of shape {list(input.shape)}"
        )
    if mask._a.shape != input._a.shape:
        mask = aten.expand(mask, input._a.shape)
    return mask if mask._k.dtype is dt.bool_ else aten.ne(mask, 0)


def filled(input: Tensor, mask: Any, value: Any) -> Tensor:
    """The input with `value` where the mask is False; itself without a mask."""
    if mask is None:
        return input
    kept = full_mask(input, mask)
    return aten.where(kept, input, aten.full((), value, dtype=input.dtype, device=input.device))


def lowest(op: str, d: dt.dtype) -> Any:
    """What `amax` starts from."""
    return _extreme(op, d, -1)


def highest(op: str, d: dt.dtype) -> Any:
    """What `amin` starts from."""
    return _extreme(op, d, 1)


def _extreme(op: str, d: dt.dtype, sign: int) -> Any:
    if d.is_floating_point:
        return sign * math.inf
    if d.category == dt.BOOL:
        raise NotImplementedError(f"identity of {op} on {d} input")
    info = iinfo(d)  # TypeError for complex numbers, which have no order
    return info.min if sign < 0 else info.max


def dims_of(input: Tensor, dim: Any) -> tuple[int, ...]:
    """The dims to reduce; None and () mean all."""
    ndim = input.ndim
    if dim is None or dim == ():
        return tuple(range(ndim))
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    if not ndim:
        for d in given:
            layout.wrap_dim(d, 0)
        return ()
    return tuple(sorted(layout.wrap_dims(given, ndim)))


def converted(input: Tensor, dtype: dt.dtype | None) -> Tensor:
    """The input in another type, if one is given."""
    return input if dtype is None else aten.to(input, dtype)


_RUNNING = frozenset({"softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"})


def _input_mask(input: Tensor, *args: Any, mask: Any = None, **kwargs: Any) -> Tensor:
    """Which elements count, in the input's shape; all of them without a mask."""
    if mask is None:
        return aten.ones(input._a.shape, dtype=dt.bool_, device=input.device)
    return full_mask(input, mask)


def _output_mask(op: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Which elements of `op(input, *args, **kwargs)` say something: those to which at least one
    element that counts has contributed."""
    name = op.__name__
    if name == "logaddexp":
        other = args[0]
        return aten.logical_or(
            _input_mask(input, mask=kwargs.get("input_mask")),
            _input_mask(other, mask=kwargs.get("other_mask")),
        )
    kept = _input_mask(input, mask=kwargs.get("mask"))
    if name in _RUNNING:
        return kept
    at = 1 if name == "norm" else 0
    dim = kwargs.get("dim", args[at] if len(args) > at else (-1 if name == "median" else None))
    if not kept.ndim:
        return kept
    return aten.any(kept, dims_of(input, dim), kwargs.get("keepdim", False))
