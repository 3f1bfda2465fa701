"""`functionalize`: a function without writes in place.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.functionalize.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlab._core import pytree
from torchlab._core.dispatch import asking
from torchlab._core.dispatch.functionals import (
    VIEWS_REMOVED,
    Functional,
    current,
    functional,
)
from torchlab._core.dispatch.levels import LEVELS
from torchlab._core.tensor import Tensor

_WORDS = ("mutations", "mutations_and_views")


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the results of `func` that runs no operator in place: each write makes a new
    tensor, of all views of what is written, too. Only at its end, arguments that `func` writes to
    are copied into.

    remove: "mutations", or "mutations_and_views": then views become copies, as well. What sees the
    operators (a dispatch mode, a tracer) sees the functional ones. RuntimeError for other words.
    """
    if remove not in _WORDS:
        raise RuntimeError(
            f"functionalize(f, remove='{remove}'): received invalid argument for `remove`. Valid"
            f" options are: {', '.join(_WORDS)}"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not _asks:
            asking.prepare(Functional)  # its methods that make tensors ask
            _asks.append(True)
        level = LEVELS.enter(Functional)
        was = VIEWS_REMOVED.get(level)
        VIEWS_REMOVED[level] = remove == "mutations_and_views"
        given: dict[int, tuple[Tensor, Functional]] = {}

        def wrapped(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            if id(x) not in given:
                given[id(x)] = x, functional(x, level)
            return given[id(x)][1]

        try:
            inner = pytree.tree_map(wrapped, (args, kwargs))
            output = func(*inner[0], **inner[1])
            result = pytree.tree_map(
                lambda x: current(x, level) if isinstance(x, Tensor) else x, output
            )
            written = [(x, current(w, level)) for x, w in given.values() if w.writes]
        finally:
            LEVELS.leave()
            VIEWS_REMOVED[level] = bool(was)
        for x, value in written:
            x.copy_(value)  # type: ignore[attr-defined]
        return result

    return wrapper


_asks: list[bool] = []

__all__ = ["functionalize"]
