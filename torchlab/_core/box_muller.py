"""Fused multiply-adds in NumPy, and the float32 Box-Muller transform, bit for bit as PyTorch's vectorised CPU kernel computes it.

PyTorch draws contiguous float32 normals of 16 or more elements with eight-lane versions of Cephes'
single-precision `logf` and `sincosf`. Their polynomials are short, and the last bits of the result
depend on every rounding on the way, so this module follows the same sequence: where the processor
uses a fused multiply-add (one rounding), `_fma` computes the product and the sum in float64, in which
a product of two float32 is exact, and rounds once to float32. Then initial weights, and whatever is
trained from them, start from the same bits. (Rounding twice can still differ from rounding once, in
about one of 10^8 operations.)

Sources: S. Moshier, Cephes Mathematical Library, single/logf.c and sinf.c, for the polynomials;
Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
"""

from __future__ import annotations

import numpy as np

_BLOCK = 1 << 13  # pairs in one pass: the dozen temporaries stay in the second-level cache
_F = np.float32
_LOG_POLYNOMIAL = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_COS_POLYNOMIAL = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN_POLYNOMIAL = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
# pi/4 in three parts, each short enough for its product with a small integer to be exact.
_PI_4_PARTS = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_SPLIT = 2.0**27 + 1
_TWO_PI = _F(2 * np.pi)


def box_muller_float32(uniforms: np.ndarray, mean: float, std: float) -> None:
    """Turn uniforms in [0, 1) into normals, in place.

    `uniforms` is a contiguous float32 array whose length is a multiple of 16; in each block of 16 the
    element j gives the radius and the element j + 8 the angle of the pair of results (j, j + 8).
    """
    blocks = uniforms.reshape(-1, 2, 8)
    step = _BLOCK // 8
    mean64, std64 = np.float64(_F(mean)), np.float64(_F(std))
    for start in range(0, len(blocks), step):
        block = blocks[start : start + step]
        radius = _log(_F(1) - block[:, 0])
        radius *= _F(-2)
        np.sqrt(radius, out=radius)
        sine, cosine = _sincos(_TWO_PI * block[:, 1])
        sine *= radius
        cosine *= radius
        np.add(np.multiply(cosine, std64, dtype=np.float64), mean64, out=block[:, 0], casting="same_kind")
        np.add(np.multiply(sine, std64, dtype=np.float64), mean64, out=block[:, 1], casting="same_kind")


def _fma(a: np.ndarray, b: np.ndarray | float, c: np.ndarray | float) -> np.ndarray:
    """float32(a·b + c), rounded once; `b` is float64 (its values are float32's)."""
    product = np.multiply(a, b, dtype=np.float64)
    product += c
    return product.astype(_F)


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


def _polynomial(x64: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    """Horner's scheme at x with one fused multiply-add a step."""
    first, second, *rest = (float(_F(c)) for c in coefficients)
    product = x64 * first
    product += second
    y = product.astype(_F)
    for c in rest:
        np.multiply(y, x64, out=product)
        product += c
        y = product.astype(_F)
    return y


def _log(x: np.ndarray) -> np.ndarray:
    """log(x) of positive normal float32."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(_F)
    x = ((bits & 0x007FFFFF) | 0x3F000000).view(_F)  # the mantissa, in [1/2, 1)
    small = x < _F(0.707106781186547524)
    exponent -= small
    x = (x - _F(1)) + np.where(small, x, _F(0))
    square = x * x
    x64 = x.astype(np.float64)
    y = _polynomial(x64, _LOG_POLYNOMIAL)
    y *= x
    low = exponent * _F(_LN2_LOW)
    y = _fma(y, square, low)
    y = _fma(square, -0.5, y)
    x += y
    return _fma(exponent, _LN2_HIGH, x)


def _sincos(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(sin x, cos x) of float32 in [0, 2π]."""
    octant = ((x * _F(1.27323954473516)).astype(np.int32) + 1) & ~1
    y64 = octant.astype(np.float64)
    for part in _PI_4_PARTS:
        x = _fma(y64, float(_F(part)), x)
    square = x * x
    square64 = square.astype(np.float64)
    cosine = _polynomial(square64, _COS_POLYNOMIAL)
    cosine *= square
    cosine = _fma(cosine, square64, square * _F(-0.5))
    cosine += _F(1)
    sine = _polynomial(square64, _SIN_POLYNOMIAL)
    sine *= square
    sine = _fma(sine, x.astype(np.float64), x)
    swap = (octant & 2) != 0
    sine, cosine = np.where(swap, cosine, sine), np.where(swap, sine, cosine)
    np.negative(sine, out=sine, where=(octant & 4) != 0)
    np.negative(cosine, out=cosine, where=((octant - 2) & 4) == 0)
    return sine, cosine
