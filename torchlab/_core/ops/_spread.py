"""Evenly spaced numbers, with PyTorch's rounding.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.linspace.html,
https://docs.pytorch.org/docs/2.13/generated/torch.arange.html
"""

from __future__ import annotations

from typing import Any

import numpy as np


def _fused(x: Any, n: np.ndarray, y: Any) -> np.ndarray:
    """x · n + y, rounded once as a fused multiply-add does, for integers n: truncated to integers
    the last bit decides. (Dekker: A floating-point technique for extending the available precision,
    1971.)"""
    x, y, n = np.float64(x), np.float64(y), n.astype(np.float64)
    product = x * n
    high = x * 134217729.0  # 2^27 + 1 splits x into halves whose products are exact
    high = high - (high - x)
    lost = (high * n - product) + (x - high) * n
    total = product + y
    part = total - product
    return total + ((product - (total - part)) + (y - part) + lost)


def spread(start: Any, end: Any, steps: int, w: Any) -> np.ndarray:
    """`steps` numbers of NumPy's type w, from both ends in its own precision, as PyTorch."""
    if steps == 1:
        return np.array([start], w)
    step = w((w(end) - w(start)) / w(max(steps - 1, 1)))
    i = np.arange(steps)
    if w in (np.float32, np.float64):
        up, down = _fused(step, i, w(start)), _fused(-step, steps - 1 - i, w(end))
    else:
        up, down = w(start) + step * i.astype(w), w(end) - step * (steps - 1 - i).astype(w)
    return np.where(i < steps // 2, up, down).astype(w)


_REGISTER = 32  # bytes of the vectors in which PyTorch fills a range
_WHOLE = {2: 1 << 8, 4: 1 << 24, 8: 1 << 53}  # itemsize → below that every integer is a number


def in_lanes(start: Any, step: Any, n: int, w: Any) -> np.ndarray:
    """start, start + step … as n numbers of the floating type w, as PyTorch's `arange` rounds them:
    the first of each vector of 256 bits to w, and from there the rest of the vector."""
    i, itemsize = np.arange(n), np.dtype(w).itemsize
    wide = np.float32 if itemsize == 2 else np.float64
    start, step = float(wide(start)), float(wide(step))
    whole = start.is_integer() and step.is_integer()
    if whole and abs(start) + abs(step) * n < _WHOLE[itemsize]:
        return (start + step * i).astype(w)
    lanes = _REGISTER // itemsize
    lane = i % lanes
    lane[n - n % (2 * lanes) :] = 0  # what fills no two vectors is computed one by one
    with np.errstate(over="ignore", invalid="ignore"):
        first = _fused(step, i - lane, start).astype(wide).astype(w).astype(np.float64)
        numbers = np.where(np.isinf(first), first, _fused(step, lane, first))
        return numbers.astype(wide).astype(w)
