"""What the makers of tensors share: sizes, memory formats, the last step of a new tensor."""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.device import AWAY
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.formats import channels_last, channels_last_3d, preserve_format
from torchlab._core.kind import kind
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor, strides_of

_new = object.__new__
_facts: dict[dt.dtype, tuple[Any, Any]] = {}  # default type → (NumPy dtype, kind)


def plain(size: Any, make: Any) -> Tensor | None:
    """What a maker called with sizes alone gives while nothing of this thread is special: a
    row-major host tensor of the default type around `make(shape, NumPy dtype)`. None otherwise."""
    if SLOW or AWAY:
        return None
    shape = size
    for x in shape:
        if type(x) is not int or x < 0:
            if len(size) != 1 or type(x) is not tuple:
                return None
            shape = x
            for y in shape:
                if type(y) is not int or y < 0:
                    return None
    dtype = dt.get_default_dtype()
    facts = _facts.get(dtype)
    if facts is None:
        facts = _facts[dtype] = dtype.np, kind(dtype)
    t = _new(Tensor)
    try:
        t._a = make(shape, facts[0])
    except (MemoryError, ValueError):  # said by the long way, in PyTorch's words
        return None
    t._k = facts[1]
    t._e = t._s = t._v = t._g = None
    return t


def finish(t: Tensor, requires_grad: bool = False) -> Tensor:
    """Inference tensors in inference mode; a leaf that wants gradients if asked."""
    if TLS.inference:
        t._k = t._k.i
    if type(requires_grad) is not bool:
        raise TypeError(
            f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}"
        )
    return t.requires_grad_() if requires_grad else t


def sizes_of(size: Any, name: str = "empty") -> tuple[int, ...]:
    """`f(2, 3)` and `f((2, 3))` both give (2, 3)."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    try:
        out = tuple(x if type(x) is int else int(x.__index__()) for x in size)
    except (TypeError, AttributeError):
        bad = next(x for x in size if not hasattr(x, "__index__"))
        raise TypeError(
            f"{name}(): argument 'size' must be tuple of ints, but found element of type"
            f" {type(bad).__name__}"
        ) from None
    for x in out:
        if x < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {x}: {list(out)}")
    return out


def format_strides(shape: Any, memory_format: Any, like: Any = None) -> Any:
    """Strides for a memory format; None means row-major."""
    if memory_format is channels_last or memory_format is channels_last_3d:
        return layout.channels_last_strides(tuple(shape))
    if memory_format is preserve_format and like is not None:
        return layout.empty_like_strides(like._a.shape, strides_of(like))
    return None


def into_out(t: Tensor, out: Tensor) -> Tensor:
    out.resize_(t.shape)  # type: ignore[attr-defined]
    return out.copy_(t)  # type: ignore[attr-defined]
