"""Fused multiply-adds in NumPy, and with them PyTorch's float32 normal numbers bit for bit.

PyTorch draws contiguous float32 normals of 16 or more elements with eight-lane versions of Cephes'
single-precision `logf` and `sincosf`. Their polynomials are short, and the last bits of the result
depend on every rounding on the way, so this module follows the same sequence. Then initial weights,
and whatever is trained from them, start from the same bits.

Note: where the processor uses a fused multiply-add it rounds once. In float64 the product of two
float32 is exact; so values are kept as float64 arrays that hold float32 numbers, a product and a
sum are computed there, and `_round` rounds to float32. Where the processor rounds after the product
too, so does the code. Rounding twice (to 53 bits, then 24) can still differ from rounding once, in
about one of 10^8 operations.

Sources: S. Moshier, Cephes Mathematical Library, single/logf.c and sinf.c, for the polynomials;
Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_BLOCK = 1 << 15  # pairs in one pass: a dozen temporaries in the cache, and few Python calls
_F = np.float32
LONG = 1 << 15
"""From here on a kernel pays for itself."""

compiled: Callable[[], Any] | None = None
"""Gives the kernel of torchlab._core.codegen.normals, which is to be found above; the operators
that draw put it here."""


def _float32s(*values: float) -> tuple[float, ...]:
    """Each value rounded to float32, as a Python float."""
    return tuple(float(_F(v)) for v in values)


LOG_POLYNOMIAL = _float32s(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
COS_POLYNOMIAL = _float32s(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
SIN_POLYNOMIAL = _float32s(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
# -pi/4 in three parts, each short enough for its product with a small integer to be exact.
PI_4_PARTS = _float32s(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
LN2_HIGH, LN2_LOW = _float32s(0.693359375, -2.12194440e-4)
SQRT_HALF, FOUR_OVER_PI = _float32s(0.707106781186547524, 1.27323954473516)
TWO_PI = _F(2 * np.pi)
_SPLIT = 2.0**27 + 1


def fma64(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """float64 a·b + c with the rounding of a fused multiply-add (but for ties in the 107th bit).

    The product's rounding error comes from Dekker's splitting ("A floating-point technique for
    extending the available precision", 1971), the sum's from Knuth's two-sum.
    """
    if c == 0 or b == 0:
        return a * b + c
    product = a * b
    a_high, b_high = a * _SPLIT, b * _SPLIT
    a_high -= a_high - a
    b_high -= b_high - b
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    virtual = total - product
    error += (product - (total - virtual)) + (c - virtual)
    total += error
    return total


def box_muller_float32(uniforms: np.ndarray, mean: float, std: float) -> None:
    """Turn uniforms in [0, 1) into normals, in place.

    `uniforms` is a contiguous float32 array whose length is a multiple of 16; in each block of 16
    the element j gives the radius and j + 8 the angle of the pair of results (j, j + 8).
    """
    fast = compiled() if uniforms.size >= LONG and compiled is not None else None
    if fast is not None:
        fast(uniforms, mean, std)
        return
    blocks = uniforms.reshape(-1, 2, 8)
    step = _BLOCK // 8
    mean, std = _float32s(mean, std)
    for start in range(0, len(blocks), step):
        block = blocks[start : start + step]
        squared = _log((_F(1) - block[:, 0]).reshape(-1))
        squared *= -2.0
        radius = np.sqrt(squared.astype(_F)).astype(np.float64)
        sine, cosine = _sincos((TWO_PI * block[:, 1]).reshape(-1))
        scratch = np.empty(radius.shape, _F)
        for half, values in enumerate((cosine, sine)):
            values *= radius
            _round(values, scratch)
            values *= std
            values += mean
            block[:, half] = values.reshape(-1, 8)


def _round(x: np.ndarray, scratch: np.ndarray) -> None:
    """Round a float64 array to float32 values in place; `scratch` is float32 of the same shape."""
    scratch[...] = x
    x[...] = scratch


def _polynomial(x: np.ndarray, coefficients: tuple[float, ...], scratch: np.ndarray) -> np.ndarray:
    """Horner's scheme with one fused multiply-add a step."""
    y = x * coefficients[0]
    y += coefficients[1]
    _round(y, scratch)
    for c in coefficients[2:]:
        y *= x
        y += c
        _round(y, scratch)
    return y


def _log(x: np.ndarray) -> np.ndarray:
    """log of positive normal float32 numbers: float32 values in a float64 array."""
    scratch = np.empty_like(x)
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(np.float64)
    x = ((bits & 0x007FFFFF) | 0x3F000000).view(_F).astype(np.float64)  # the mantissa, [1/2, 1)
    small = x < SQRT_HALF
    exponent -= small
    x += x * small
    x -= 1.0
    square = x * x
    _round(square, scratch)
    y = _polynomial(x, LOG_POLYNOMIAL, scratch)
    y *= x
    _round(y, scratch)
    low = exponent * LN2_LOW
    _round(low, scratch)
    y *= square
    y += low
    _round(y, scratch)
    square *= -0.5
    y += square
    _round(y, scratch)
    x += y
    _round(x, scratch)
    exponent *= LN2_HIGH
    x += exponent
    _round(x, scratch)
    return x


def _sincos(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(sin, cos) of float32 angles in [0, 2π]: float32 values in float64 arrays."""
    scratch = np.empty_like(angle)
    octant = ((angle * _F(FOUR_OVER_PI)).astype(np.int32) + 1) & ~1
    turns, x = octant.astype(np.float64), angle.astype(np.float64)
    for part in PI_4_PARTS:
        x += turns * part
        _round(x, scratch)
    square = x * x
    _round(square, scratch)
    cosine = _polynomial(square, COS_POLYNOMIAL, scratch)
    cosine *= square
    _round(cosine, scratch)
    cosine *= square
    cosine -= square * 0.5
    _round(cosine, scratch)
    cosine += 1.0
    _round(cosine, scratch)
    sine = _polynomial(square, SIN_POLYNOMIAL, scratch)
    sine *= square
    _round(sine, scratch)
    sine *= x
    sine += x
    _round(sine, scratch)
    swap = (octant & 2) != 0
    sine, cosine = np.where(swap, cosine, sine), np.where(swap, sine, cosine)
    np.negative(sine, out=sine, where=(octant & 4) != 0)
    np.negative(cosine, out=cosine, where=((octant - 2) & 4) == 0)
    return sine, cosine
