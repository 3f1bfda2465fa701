"""Window functions of the main name space: bartlett_window, hann_window and their kin.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.hann_window.html
and its neighbours
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.op import face
from torchlab._core.formats import strided
from torchlab._core.ops._tapers import cosine_sum, kaiser, sampled, triangle


def _window(
    name: str,
    shape: Callable[[int], np.ndarray],
    n: Any,
    periodic: bool,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Any:
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(
            f"{name}(): argument 'window_length' (position 1) must be int, not {type(n).__name__}"
        )
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got layout={layout}")
    d = dtype or dt.get_default_dtype()
    if not (d.is_floating_point or d.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: dtype={d}")
    n = int(n.__index__())
    if n < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
    if d.is_complex and n > 1:
        raise NotImplementedError(f"\"{name}\" not implemented for '{d.scalar_name}'")
    return sampled(shape, n, periodic, d, device, requires_grad)


@face("bartlett_window", method=False)
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A triangle from 0 to 1 to 0."""
    return _window(
        "bartlett_window", triangle, window_length, periodic, dtype, layout, device, requires_grad
    )


@face("blackman_window", method=False)
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """0.42 − 0.5 cos x + 0.08 cos 2x."""
    return _window(
        "blackman_window",
        lambda n: np.maximum(cosine_sum(n, (0.42, 0.5, 0.08)), 0),
        window_length,
        periodic,
        dtype,
        layout,
        device,
        requires_grad,
    )


@face("hamming_window", method=False)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """alpha − beta cos x."""
    return _window(
        "hamming_window",
        lambda n: cosine_sum(n, (alpha, beta)),
        window_length,
        periodic,
        dtype,
        layout,
        device,
        requires_grad,
    )


@face("hann_window", method=False)
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """½ (1 − cos x)."""
    return _window(
        "hann_window",
        lambda n: cosine_sum(n, (0.5, 0.5)),
        window_length,
        periodic,
        dtype,
        layout,
        device,
        requires_grad,
    )


@face("kaiser_window", method=False)
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """I0(β √(1 − x²)) / I0(β), with the modified Bessel function of order 0."""
    return _window(
        "kaiser_window",
        lambda n: kaiser(n, beta),
        window_length,
        periodic,
        dtype,
        layout,
        device,
        requires_grad,
    )
