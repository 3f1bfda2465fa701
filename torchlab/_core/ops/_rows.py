"""What is generated for rows: the steps of softmax and its neighbours, each declared once.

The kernels are compiled at their first use and kept in codegen's cache. The NumPy code beside each
operator computes the same for every other layout and type, and where there is no compiler.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.lazy import lazy

_rows = lazy("torchlab._core.codegen.rows")

STEPS = {
    "softmax": (
        ("x",),
        (
            ("most", "max", "x"),
            ("out", "each", "exp(x - most)"),
            ("total", "sum", "out"),
            ("out", "each", "out / total"),
        ),
    ),
    "softmax_backward": (
        ("g", "y"),
        (("total", "sum", "g * y"), ("out", "each", "(g - total) * y")),
    ),
    "log_softmax": (
        ("x",),
        (
            ("most", "max", "x"),
            ("total", "sum", "exp(x - most)"),
            ("rest", "value", "log(total)"),
            ("out", "each", "x - most - rest"),
        ),
    ),
    "log_softmax_backward": (
        ("g", "y"),
        (("total", "sum", "g"), ("out", "each", "g - exp(y) * total")),
    ),
}
"""name → (arrays, steps of codegen.rows.row_kernel)."""

Kernel = Callable[..., Any]
_DTYPES = {"f": "float32", "d": "float64"}


def rowwise(name: str) -> Callable[[Kernel], Kernel]:
    """Give the kernel(xp, array, …, dim) of an operator whose rows `STEPS[name]` computes the
    generated one in front: for the last dimension of row-major host memory of one float type."""
    made: dict[str, Any] = {}

    def make(char: str) -> Any:
        made[char] = None
        if char in _DTYPES:
            arrays, steps = STEPS[name]
            made[char] = _rows.row_kernel(steps, arrays=arrays, dtype=_DTYPES[char], name=name)
        return made[char]

    def found(first: Any, dim: int) -> Any:
        """The generated kernel, if `first` is for it."""
        if type(first) is not np.ndarray or not first.flags.c_contiguous or not first.size:
            return None
        rank = first.ndim
        if dim != -1 and dim != rank - 1 or not rank:
            return None
        char = first.dtype.char
        return made[char] if char in made else make(char)

    def one(kernel: Kernel) -> Kernel:
        @functools.wraps(kernel)
        def rows(xp: Any, x: Any, dim: int) -> Any:
            k = found(x, dim)
            if k is None:
                return kernel(xp, x, dim)
            out = np.empty(x.shape, x.dtype)
            return k.short(out, x) if out.size < k.parallel_work else k.call(out, x)

        return rows

    def two(kernel: Kernel) -> Kernel:
        @functools.wraps(kernel)
        def rows(xp: Any, x: Any, y: Any, dim: int) -> Any:
            k = found(x, dim)
            if (
                k is None
                or type(y) is not np.ndarray
                or y.dtype is not x.dtype
                or y.shape != x.shape
                or not y.flags.c_contiguous
            ):
                return kernel(xp, x, y, dim)
            out = np.empty(x.shape, x.dtype)
            return k.short(out, x, y) if out.size < k.parallel_work else k.call(out, x, y)

        return rows

    return one if len(STEPS[name][0]) == 1 else two


__all__ = ["STEPS", "rowwise"]
