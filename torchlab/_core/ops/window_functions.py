"""Window functions of the main name space: bartlett_window, hann_window and their kin.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.hann_window.html
and its neighbours
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.ops._makers import maker
from torchlab._core.ops._making import COO, How
from torchlab._core.ops._tapers import cosine_sum, kaiser, samples, triangle


def _window(how: How, shape: Callable[[int], np.ndarray], n: Any, periodic: bool) -> Any:
    name, d = how.name, how.kind
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(
            f"{name}(): argument 'window_length' (position 1) must be int, not {type(n).__name__}"
        )
    if how.layout is COO:
        raise RuntimeError(f"{name} is not implemented for sparse types, got layout={how.layout}")
    if not (d.is_floating_point or d.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: dtype={d}")
    n = int(n.__index__())
    if n < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
    if how.layout is not None:
        how.unlike((n,), "arange.start_out")
    if d.is_complex and n > 1:
        raise NotImplementedError(f"\"{name}\" not implemented for '{d.scalar_name}'")
    return how.around(samples(shape, n, periodic).astype(d.np), d)


@maker("bartlett_window")
def bartlett_window(how: How, window_length: int, periodic: bool = True) -> Any:
    """A triangle from 0 to 1 to 0."""
    return _window(how, triangle, window_length, periodic)


@maker("blackman_window")
def blackman_window(how: How, window_length: int, periodic: bool = True) -> Any:
    """0.42 − 0.5 cos x + 0.08 cos 2x."""

    def shape(n: int) -> np.ndarray:
        return np.maximum(cosine_sum(n, (0.42, 0.5, 0.08)), 0)

    return _window(how, shape, window_length, periodic)


@maker("hamming_window")
def hamming_window(
    how: How, window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46
) -> Any:
    """alpha − beta cos x."""
    return _window(how, lambda n: cosine_sum(n, (alpha, beta)), window_length, periodic)


@maker("hann_window")
def hann_window(how: How, window_length: int, periodic: bool = True) -> Any:
    """½ (1 − cos x)."""
    return _window(how, lambda n: cosine_sum(n, (0.5, 0.5)), window_length, periodic)


@maker("kaiser_window")
def kaiser_window(how: How, window_length: int, periodic: bool = True, beta: float = 12.0) -> Any:
    """I0(β √(1 − x²)) / I0(β), with the modified Bessel function of order 0."""
    return _window(how, lambda n: kaiser(n, beta), window_length, periodic)
