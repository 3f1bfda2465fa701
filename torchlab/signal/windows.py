"""`torchlab.signal.windows`: window functions of M samples, largest value 1.

`sym=True` gives a symmetric window, for filters; `sym=False` one that repeats with period M, for
spectral analysis. The result is float32 or float64, shape (M,).
Source of the semantics: https://docs.pytorch.org/docs/2.13/signal.html
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.formats import strided
from torchlab._core.ops._making import How
from torchlab._core.ops._tapers import cosine_sum, samples, triangle
from torchlab._core.ops._tapers import kaiser as kaiser_shape

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


Shape = Callable[[int], np.ndarray]  # n → n samples, symmetric about the middle


def _window(written: Callable[..., Shape]) -> Callable[..., Any]:
    """The public function of a window: `written(M, sym, …)` gives its shape; the options that all
    windows have come from here."""
    name = written.__name__

    @functools.wraps(written)
    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = strided,
        device: Any = None,
        requires_grad: bool = False,
        **own: Any,
    ) -> Any:
        shape = written(M, sym, **own)
        if not hasattr(M, "__index__"):
            raise TypeError(f"{name}(): the window length M must be int, not {type(M).__name__}")
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        d = dt.get_default_dtype() if dtype is None else dtype
        if d not in (dt.float32, dt.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {d}")
        how = How(name, None, d, None, device, requires_grad)
        # A window may lie off the middle: its single sample is not 1 then
        one = float(shape(1)[0]) if M == 1 else 1.0
        return how.around(samples(shape, M, not sym, one).astype(d.np), d)

    del window.__wrapped__  # type: ignore[attr-defined]
    first, _, *more = inspect.signature(written).parameters.values()
    options = [p for p in inspect.signature(window).parameters.values() if p.kind is p.KEYWORD_ONLY]
    window.__signature__ = inspect.Signature([first, *more, *options])  # type: ignore[attr-defined]
    return window


@_window
def exponential(M: int, sym: bool, *, center: float | None = None, tau: float = 1.0) -> Shape:
    """exp(−|n − center| / tau); `center` (default: the middle) only with sym=False."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = center if center is not None else (M if not sym and M > 1 else M - 1) / 2
    return lambda n: np.exp(-np.abs(np.arange(n) - middle) / tau)


@_window
def cosine(M: int, sym: bool) -> Shape:
    """sin(π (n + ½) / M): half a wave, that does not reach 0."""
    return lambda n: np.sin(np.pi * (np.arange(n) + 0.5) / n)


@_window
def gaussian(M: int, sym: bool, *, std: float = 1.0) -> Shape:
    """exp(−x² / (2 std²)), x counted in samples from the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return lambda n: np.exp(-(((np.arange(n) - (n - 1) / 2) / std) ** 2) / 2)


@_window
def kaiser(M: int, sym: bool, *, beta: float = 12.0) -> Shape:
    """I0(β √(1 − x²)) / I0(β), x from −1 to 1: nearly all energy in the main lobe."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return lambda n: kaiser_shape(n, beta) if n > 1 else np.ones(n)


@_window
def bartlett(M: int, sym: bool) -> Shape:
    """A triangle from 0 to 1 to 0."""
    return lambda n: triangle(n) if n > 1 else np.ones(n)


@_window
def general_cosine(M: int, sym: bool, *, a: Iterable[float]) -> Shape:
    """a0 − a1 cos x + a2 cos 2x − …, x from 0 to 2π."""
    if M > 1 and not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    coefficients = list(a) if M > 1 else [1.0]
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    return lambda n: cosine_sum(n, coefficients)


@_window
def general_hamming(M: int, sym: bool, *, alpha: float = 0.54) -> Shape:
    """alpha − (1 − alpha) cos x."""
    return _cosines(alpha, 1.0 - alpha)


@_window
def hamming(M: int, sym: bool) -> Shape:
    """0.54 − 0.46 cos x."""
    return _cosines(0.54, 0.46)


@_window
def hann(M: int, sym: bool) -> Shape:
    """½ (1 − cos x)."""
    return _cosines(0.5, 0.5)


@_window
def blackman(M: int, sym: bool) -> Shape:
    """0.42 − 0.5 cos x + 0.08 cos 2x."""
    return _cosines(0.42, 0.5, 0.08)


@_window
def nuttall(M: int, sym: bool) -> Shape:
    """Four cosine terms with very low side lobes (Nuttall, 1981)."""
    return _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411)


def _cosines(*a: float) -> Shape:
    return lambda n: cosine_sum(n, a) if n > 1 else np.ones(n)
