"""The base of context managers that are decorators too, for those of libraries.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.no_grad.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab.autograd.grad_mode import _Mode

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _DecoratorContextManager(_Mode):
    """A context manager that decorates functions, generators included. A class whose constructor
    has parameters overrides `clone`."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another one of the kind: every call of a decorated function enters its own."""
        return type(self)()

    def _again(self) -> Any:
        return self.clone()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without parameters, which may be written without brackets."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        made = object.__new__(cls)
        return made if orig_func is None else made(orig_func)
