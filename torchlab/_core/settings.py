"""Settings of the whole process: determinism, the precision of products, warnings.

torchlab's kernels give the same numbers in every run whatever these say: NumPy and the generated
code add in a fixed order. The settings are kept all the same, because programs ask for them, and
operators that PyTorch refuses in deterministic mode may look at them.

Source: https://docs.pytorch.org/docs/2.13/notes/randomness.html and the pages of the functions
"""

from __future__ import annotations

import os
import sys
import warnings

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}

_deterministic = False
_warn_only = False
_precision = "highest"
_warn_always = False


def _needs(kind: type, value: object, function: str) -> None:
    if not isinstance(value, kind):
        raise RuntimeError(f"{function} expects a {kind.__name__}, but got {type(value).__name__}")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for operators that give the same result in every run. torchlab's always do."""
    global _deterministic, _warn_only
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"use_deterministic_algorithms(): argument '{name}' must be bool, not"
                f" {type(value).__name__}"
            )
    _deterministic, _warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms(True)` holds."""
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was asked to warn instead of raising."""
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default": any algorithm; 1 or "warn": warn; 2 or "error": deterministic ones only."""
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got"
                f" {debug_mode}"
            )
        debug_mode = _DEBUG_MODES[debug_mode]
    if not isinstance(debug_mode, int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, see `set_deterministic_debug_mode`."""
    if not _deterministic:
        return 0
    return 1 if _warn_only else 2


def set_float32_matmul_precision(precision: str) -> None:
    """ "highest", "high" or "medium": what a product of float32 matrices may round to on the way.
    Products here are computed in float32, which every value allows."""
    global _precision
    _needs(str, precision, "set_float32_matmul_precision")
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            " set_float32_matmul_precision call has no effect.",
            stacklevel=2,
        )
        return
    _precision = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` has set."""
    return _precision


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that are given once per process are given each time."""
    global _warn_always
    _needs(bool, b, "set_warn_always")
    _warn_always = b


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` has set."""
    return _warn_always


_warned: set[str] = set()


def warn_once(key: str, message: str) -> None:
    """Warn the first time in this process, or each time if `set_warn_always(True)` holds."""
    if key not in _warned or _warn_always:
        _warned.add(key)
        warn_user(message)


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's that led here: the nearest one outside torchlab's files and
    its generated calls."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_PACKAGE, "<torchlab ")):
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
