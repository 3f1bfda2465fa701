"""The backward of max pooling by windows of 2×2 side by side, the most common one.

Note: four comparisons in one word
    Elements are compared with their window's maximum row by row, for which the maxima are doubled:
    a 64-bit product writes each twice. The truth values of a window, one byte each, then make one
    32-bit word, first element lowest; its lowest set bit is the first maximum, the one that gets
    the gradient. Doubled gradients, as integers, times these bytes are the result. All passes are
    over contiguous memory, a few rows at a time that stay in the cache.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_TWICE = np.uint64(0x1_0000_0001)
_ROOM = 1 << 17  # elements of the input at a time


def halves(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, *others: Any) -> bool:
    """Whether `halved_gradient` knows this pooling; `others` must lie as the input does, and have
    no window that ends outside of it (ceil_mode)."""
    half = tuple(n // 2 for n in x.shape[-2:])
    return (
        tuple(kernel) == tuple(stride) == (2, 2)
        and not any(padding)
        and tuple(dilation) == (1, 1)
        and all(a.shape[-2:] == half for a in others)
        and all(a.dtype.char == "f" and a.flags.c_contiguous and a.size for a in (x, *others))
        and sys.byteorder == "little"
    )


def _twice(a: Any) -> Any:
    """Each number twice, as integers."""
    r = a.view(np.uint32).astype(np.uint64)
    r *= _TWICE
    return r.view(np.uint32)


def halved_gradient(g: Any, x: Any, y: Any) -> Any:
    """The gradient of x (…, H, W) from g for y (…, H // 2, W // 2); y has no NaN."""
    height, width = y.shape[-2:]
    whole = x.shape[-2:]
    even = whole == (2 * height, 2 * width)
    r = (np.empty if even else np.zeros)(x.shape, x.dtype)
    inner = (slice(None), slice(2 * height), slice(2 * width))
    images, results = (a.reshape(-1, *whole)[inner] for a in (x, r.view(np.uint32)))
    tops, gradients = (a.reshape(-1, height, width) for a in (y, g))
    step = max(1, _ROOM // (whole[0] * whole[1]))
    for i in range(0, len(images), step):
        part = slice(i, i + step)
        image, result = images[part], results[part]
        top = _twice(tops[part]).view(x.dtype)
        gradient = _twice(gradients[part])
        hits = (image[:, 1::2] == top).view(np.uint16).astype(np.uint32)
        hits <<= 16
        hits |= (image[:, ::2] == top).view(np.uint16)
        hits &= -hits
        np.multiply(gradient, hits.astype(np.uint16).view(np.uint8), out=result[:, ::2])
        hits >>= 16
        np.multiply(gradient, hits.astype(np.uint16).view(np.uint8), out=result[:, 1::2])
    return r
