"""The shapes of window functions: arrays of float64, from which tensors are made.

Every function gives n samples that are symmetric about the middle; a window that repeats itself
with period n is the symmetric one of n + 1 samples without its last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from torchlab._core.lazy import lazy

special = lazy("scipy.special")


def cosine_sum(n: int, a: Sequence[float]) -> np.ndarray:
    """a0 − a1 cos x + a2 cos 2x − …, x from 0 to 2π."""
    x = 2 * np.pi * np.arange(n) / max(n - 1, 1)
    k = np.arange(len(a))
    return (np.asarray(a, np.float64) * (-1.0) ** k) @ np.cos(np.outer(k, x))


def triangle(n: int) -> np.ndarray:
    """From 0 up to 1 and down to 0."""
    return 1 - np.abs(2 * np.arange(n) / max(n - 1, 1) - 1)


def kaiser(n: int, beta: float) -> np.ndarray:
    """I0(β √(1 − x²)) / I0(β), x from −1 to 1."""
    x = 2 * np.arange(n) / max(n - 1, 1) - 1
    return (
        special.i0e(beta * np.sqrt(np.maximum(1 - x * x, 0)))
        * np.exp(beta * (np.sqrt(np.maximum(1 - x * x, 0)) - 1))
        / special.i0e(beta)
    )


def samples(
    shape: Callable[[int], np.ndarray], n: int, periodic: bool, one: float = 1.0
) -> np.ndarray:
    """n samples of a window; a single sample is `one`."""
    if n < 2:
        return np.full(n, one)
    return np.ascontiguousarray(shape(n + 1)[:-1] if periodic else shape(n))
