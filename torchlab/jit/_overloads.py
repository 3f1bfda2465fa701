"""Several declarations of one script, of which the last has the body.

    @torch.jit._overload
    def scaled(x, by): # type: (Tensor, float) -> Tensor
        pass

    @torch.jit._overload
    def scaled(x, by): # type: (Tensor, Tensor) -> Tensor
        pass

    def scaled(x, by):
        return x * by

Source: https://docs.pytorch.org/docs/2.13/jit.html#torchscript-language
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_DECLARED: dict[str, list[Any]] = {}


def _key(fn: Any) -> str:
    return f"{fn.__module__}.{fn.__qualname__}"


def _overload(func: F) -> F:
    """Declare one of the forms of a function; its body means nothing."""
    _DECLARED.setdefault(_key(func), []).append(func)
    return func


def _overload_method(func: F) -> F:
    """Declare one of the forms of a method."""
    return _overload(func)


def declared(fn: Any) -> list[Any]:
    """The forms of a function, in order; none if there is only its body."""
    return _DECLARED.get(_key(fn), [])
