"""`fork` and `wait`: calls whose results come as futures. They run at once, as PyTorch's do outside
its interpreter.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.fork.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab.futures._future import Future


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """The future of `func(*args, **kwargs)`, which has run when this returns. Raises its error."""
    if not callable(func):
        raise TypeError(f"Object of type '{type(func).__name__}' is not an instance of 'function'")
    made = Future()
    made.set_result(func(*args, **kwargs))
    return made


def wait(future: Future) -> Any:
    """The result of a `fork`."""
    if not isinstance(future, Future):
        raise TypeError(f"wait(): expected a torch.jit.Future, not {type(future).__name__}")
    return future.wait()


__all__ = ["Future", "fork", "wait"]
