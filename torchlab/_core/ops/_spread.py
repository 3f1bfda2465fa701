"""Evenly spaced numbers, with PyTorch's rounding.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.linspace.html
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
