"""The mark that PyTorch puts on the names of `torch.fx` it promises to keep.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """A decorator that notes whether a name is promised to stay."""

    def mark(fn: _T) -> _T:
        (_BACK_COMPAT_OBJECTS if is_backward_compatible else _MARKED_WITH_COMPATIBILITY)[fn] = None
        return fn

    return mark
