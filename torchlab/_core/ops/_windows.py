"""Windows over the last dimensions of a batch: what the poolings share.

Maxima and sums go over shifted, strided views of the whole batch: one array operation for each tap
of the window, whatever the number of windows.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def window_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    if isinstance(value, int):  # a symbolic one stays one
        return (value,) * n
    if isinstance(value, np.integer):
        return (int(value),) * n
    r = tuple(int(v) for v in value)
    if len(r) == 1:
        return r * n
    if len(r) != n:
        raise RuntimeError(
            f"pool{n}d: {name} must either be a single int, or a tuple of {n} ints, got {list(r)}"
        )
    return r


def window_counts(
    spatial: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[int, ...]:
    """The number of windows along each dimension; none may start in the right padding."""
    out = []
    for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True):
        if k <= 0 or s <= 0 or d <= 0:
            raise RuntimeError("pool: kernel size, stride and dilation should be greater than zero")
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
        room = n + 2 * p - d * (k - 1) - 1
        m = (room + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (m - 1) * s >= n + p:
            m -= 1
        if m < 1:
            raise RuntimeError(
                f"Given input size: {tuple(spatial)}. Calculated output size: too small for "
                f"kernel_size={tuple(kernel)}"
            )
        out.append(m)
    return tuple(out)


def padded_for(
    xp: Any, x: Any, out: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, value: Any
) -> Any:
    """x with `value` around it, as far as the windows reach."""
    k = len(kernel)
    spatial = x.shape[-k:]
    reach = [
        (m - 1) * s + d * (w - 1) + 1
        for m, s, d, w in zip(out, stride, dilation, kernel, strict=True)
    ]
    after = [max(r - p - n, 0) for r, p, n in zip(reach, padding, spatial, strict=True)]
    if not any(padding) and not any(after):
        return x
    shape = [n + p + a for n, p, a in zip(spatial, padding, after, strict=True)]
    r = xp.full((*x.shape[:-k], *shape), value, x.dtype)
    r[(..., *(slice(p, p + n) for p, n in zip(padding, spatial, strict=True)))] = x
    return r


def window_taps(kernel: Any, out: Any, stride: Any, dilation: Any) -> list[tuple[Any, ...]]:
    """For each tap of the window: the index of its elements in a padded array, all windows at
    once."""
    return [
        (
            ...,
            *(
                slice(t * d, t * d + (m - 1) * s + 1, s)
                for t, d, m, s in zip(tap, dilation, out, stride)
            ),
        )
        for tap in itertools.product(*(range(w) for w in kernel))
    ]


def lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" or dtype.kind == "V" else np.iinfo(dtype).min


def check_pooled(name: str, x: Any, k: int) -> None:
    if x.ndim not in (k + 1, k + 2) or any(n == 0 for n in x.shape[-k - 1 :]):
        raise RuntimeError(
            f"{name}: Expected {k + 1}D or {k + 2}D (batch mode) tensor with optional 0 dim batch "
            "size for input, but got: "
            f"{list(x.shape)}"
        )


def stride_or_kernel(stride: Any, kernel: tuple[int, ...]) -> tuple[int, ...]:
    """The stride; by default windows lie side by side."""
    if stride is None or (not isinstance(stride, int) and not len(stride)):
        return kernel
    return window_tuple(stride, len(kernel), "stride")
