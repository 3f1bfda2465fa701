"""`torch._check` and its likes: assertions that an exported program may contain.

Source: https://docs.pytorch.org/docs/2.13/export.html
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torchlab._core.dtype import bool_
from torchlab._core.tensor import Tensor

_NO_MESSAGE = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please"
    " report an enhancement request to PyTorch.)"
)


def _asserted(error: type[Exception], cond: Any, message: Callable[[], str] | None) -> None:
    if not isinstance(cond, bool):  # what is asked of symbolic sizes says that it is one
        if isinstance(cond, Tensor):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use"
                " torch._check_tensor_all() to assert that all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        if message is not None and not callable(message):
            raise TypeError("message must be a callable")
        raise error(_NO_MESSAGE if message is None else str(message()))


def _check(cond: Any, message: Callable[[], str] | None = None) -> None:
    """RuntimeError with what `message` gives unless `cond`, a bool or a question about sizes."""
    _asserted(RuntimeError, cond, message)


def _check_index(cond: Any, message: Callable[[], str] | None = None) -> None:
    """IndexError unless `cond`."""
    _asserted(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], str] | None = None) -> None:
    """ValueError unless `cond`."""
    _asserted(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], str] | None = None) -> None:
    """TypeError unless `cond`."""
    _asserted(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], str] | None = None) -> None:
    """NotImplementedError unless `cond`."""
    _asserted(NotImplementedError, cond, message)


def _check_tensor_all(cond: Any, message: Callable[[], str] | None = None) -> None:
    """RuntimeError unless all elements of `cond`, a tensor of bools, are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_with(error_type: Any, cond: Any, message: Callable[[], str]) -> None:
    """`error_type` with what `message` gives unless `cond`, a bool or a question about sizes.

    Raises:
        AssertionError: `error_type` is no class of errors.
    """
    kind = isinstance(error_type, type) and issubclass(error_type, Exception)
    if not kind or issubclass(error_type, Warning):
        raise AssertionError(
            f"error_type must be a subclass of Exception but not Warning, got {error_type}"
        )
    _asserted(error_type, cond, message)


def _check_tensor_all_with(
    error_type: Any, cond: Any, message: Callable[[], str] | None = None
) -> None:
    """`error_type` unless all elements of `cond`, a tensor of bools, are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _asserted(error_type, bool(cond.all()), message)


def _check_is_size(
    i: Any, message: Callable[[], str] | None = None, *, max: int | None = None
) -> None:
    """RuntimeError unless `i` can be a size: 0 or more, and at most `max`. Deprecated."""
    warnings.warn(
        "_check_is_size will be removed in a future PyTorch release along with"
        " guard_size_oblivious.     Use _check(i >= 0) instead.",
        FutureWarning,
        stacklevel=2,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


__all__ = [
    "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
    "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
]  # fmt: skip
