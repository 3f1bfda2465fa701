"""`torchlab.signal.windows`: window functions of M samples, largest value 1.

`sym=True` gives a symmetric window, for filters; `sym=False` one that repeats with period M, for
spectral analysis. The result is float32 or float64, shape (M,).
Source of the semantics: https://docs.pytorch.org/docs/2.13/signal.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.formats import strided
from torchlab._core.ops._tapers import cosine_sum, sampled, triangle
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


def _checked(name: str, M: int, dtype: Any, layout: Any) -> None:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    d = dtype if dtype is not None else dt.get_default_dtype()
    if d not in (dt.float32, dt.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {d}")


def _made(
    shape: Callable[[int], np.ndarray],
    M: int,
    sym: bool,
    dtype: Any,
    device: Any,
    grad: bool,
    one: float = 1.0,
) -> Any:
    if not hasattr(M, "__index__"):
        raise TypeError(f"the window length M must be an int, not {type(M).__name__}")
    return sampled(shape, M, not sym, dtype, device, grad, one)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """exp(−|n − center| / tau); `center` (default: the middle) only with sym=False."""
    _checked("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = center if center is not None else (M if not sym and M > 1 else M - 1) / 2
    one = math.exp(-abs(middle) / tau)  # also a single sample lies off the center
    return _made(
        lambda n: np.exp(-np.abs(np.arange(n) - middle) / tau),
        M,
        sym,
        dtype,
        device,
        requires_grad,
        one,
    )


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """sin(π (n + ½) / M): half a wave, that does not reach 0."""
    _checked("cosine", M, dtype, layout)
    return _made(
        lambda n: np.sin(np.pi * (np.arange(n) + 0.5) / n), M, sym, dtype, device, requires_grad
    )


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """exp(−x² / (2 std²)), x counted in samples from the middle."""
    _checked("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _made(
        lambda n: np.exp(-(((np.arange(n) - (n - 1) / 2) / std) ** 2) / 2),
        M,
        sym,
        dtype,
        device,
        requires_grad,
    )


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """I0(β √(1 − x²)) / I0(β), x from −1 to 1: nearly all energy in the main lobe."""
    _checked("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _made(lambda n: kaiser_shape(n, beta), M, sym, dtype, device, requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """A triangle from 0 to 1 to 0."""
    _checked("bartlett", M, dtype, layout)
    return _made(triangle, M, sym, dtype, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """a0 − a1 cos x + a2 cos 2x − …, x from 0 to 2π."""
    _checked("general_cosine", M, dtype, layout)
    if M > 1 and not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    coefficients = list(a) if M > 1 else [1.0]
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    return _made(lambda n: cosine_sum(n, coefficients), M, sym, dtype, device, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """alpha − (1 − alpha) cos x."""
    return general_cosine(
        M,
        a=[alpha, 1.0 - alpha],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """0.54 − 0.46 cos x."""
    return general_hamming(
        M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """½ (1 − cos x)."""
    return general_hamming(
        M,
        alpha=0.5,
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """0.42 − 0.5 cos x + 0.08 cos 2x."""
    _checked("blackman", M, dtype, layout)
    return general_cosine(
        M,
        a=[0.42, 0.5, 0.08],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Four cosine terms with very low side lobes (Nuttall, 1981)."""
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
