"""What the makers of tensors share: sizes, memory formats, the last step of a new tensor."""

from __future__ import annotations

from typing import Any

from torchlab._core import layout
from torchlab._core.tape import TLS
from torchlab._core.tensor import (
    Tensor,
    channels_last,
    channels_last_3d,
    preserve_format,
    strides_of,
)


def finish(t: Tensor, requires_grad: bool = False) -> Tensor:
    """Inference tensors in inference mode; a leaf that wants gradients if asked."""
    if TLS.inference:
        t._k = t._k.i
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
