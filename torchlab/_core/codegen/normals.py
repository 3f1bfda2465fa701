"""Normal numbers in C++: what torchlab._core.box_muller says in NumPy, for long draws.

The same sequence of roundings (see there), with the processor's fused multiply-add where it has
one, so that the bits are PyTorch's. Compiled at the first long draw and kept in the cache; the
NumPy code stays for short draws and where there is no compiler.

Sources: S. Moshier, Cephes Mathematical Library, single/logf.c and sinf.c, for the polynomials.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np

from torchlab._core import box_muller as numbers
from torchlab._core.codegen.library import library

_SOURCE = """
#include <math.h>
#include <stdint.h>
#include <string.h>

#define FMA __builtin_fmaf
enum {{ ROWS = 32, N = 8 * ROWS }};

// log of 1 - u, u in [0, 1), and sine and cosine of 2 pi v, for N numbers at a time
static void transform(float* values, int64_t rows, float mean, float std) {{
    float radius[N], angle[N], sine[N], cosine[N];
    for (int64_t r = 0; r < rows; ++r) {{
        memcpy(radius + 8 * r, values + 16 * r, 8 * sizeof(float));
        memcpy(angle + 8 * r, values + 16 * r + 8, 8 * sizeof(float));
    }}
    const int n = (int)(8 * rows);
    #pragma omp simd
    for (int i = 0; i < n; ++i) {{
        float x = 1.0f - radius[i];
        int32_t bits;
        memcpy(&bits, &x, 4);
        float e = (float)((bits >> 23) - 126);
        bits = (bits & 0x007FFFFF) | 0x3F000000;
        memcpy(&x, &bits, 4);
        const bool small = x < {sqrt_half};
        e -= small ? 1.0f : 0.0f;
        x += small ? x : 0.0f;
        x -= 1.0f;
        const float square = x * x;
        float y = {log};
        y *= x;
        const float low = e * {ln2_low};
        y = FMA(y, square, low);
        y -= 0.5f * square;
        x += y;
        x = FMA(e, {ln2_high}, x);
        radius[i] = sqrtf(-2.0f * x);
    }}
    #pragma omp simd
    for (int i = 0; i < n; ++i) {{
        float x = {two_pi} * angle[i];
        const int32_t octant = ((int32_t)(x * {four_over_pi}) + 1) & ~1;
        const float turns = (float)octant;
        x = FMA(turns, {pi_0}, x);
        x = FMA(turns, {pi_1}, x);
        x = FMA(turns, {pi_2}, x);
        const float square = x * x;
        float c = {cos};
        c *= square;
        c = FMA(c, square, -0.5f * square);
        c += 1.0f;
        float s = {sin};
        s *= square;
        s = FMA(s, x, x);
        const bool swap = octant & 2;
        const float to_sine = swap ? c : s, to_cosine = swap ? s : c;
        sine[i] = (octant & 4) ? -to_sine : to_sine;
        cosine[i] = ((octant - 2) & 4) ? to_cosine : -to_cosine;
    }}
    #pragma omp simd
    for (int i = 0; i < n; ++i) {{
        cosine[i] = FMA(cosine[i] * radius[i], std, mean);
        sine[i] = FMA(sine[i] * radius[i], std, mean);
    }}
    for (int64_t r = 0; r < rows; ++r) {{
        memcpy(values + 16 * r, cosine + 8 * r, 8 * sizeof(float));
        memcpy(values + 16 * r + 8, sine + 8 * r, 8 * sizeof(float));
    }}
}}

extern "C" void kernel_normals(float* values, int64_t rows, float mean, float std) {{
    for (int64_t r = 0; r < rows; r += ROWS)
        transform(values + 16 * r, rows - r < ROWS ? rows - r : ROWS, mean, std);
}}
"""


def _literal(x: float) -> str:
    return f"{float(x).hex()}f"


def _horner(coefficients: tuple[float, ...], x: str) -> str:
    text = _literal(coefficients[0])
    for c in coefficients[1:]:
        text = f"FMA({text}, {x}, {_literal(c)})"
    return text


def source() -> str:
    """The C++ of the kernel."""
    return _SOURCE.format(
        sqrt_half=_literal(numbers.SQRT_HALF),
        log=_horner(numbers.LOG_POLYNOMIAL, "x"),
        ln2_low=_literal(numbers.LN2_LOW),
        ln2_high=_literal(numbers.LN2_HIGH),
        two_pi=_literal(numbers.TWO_PI),
        four_over_pi=_literal(numbers.FOUR_OVER_PI),
        pi_0=_literal(numbers.PI_4_PARTS[0]),
        pi_1=_literal(numbers.PI_4_PARTS[1]),
        pi_2=_literal(numbers.PI_4_PARTS[2]),
        cos=_horner(numbers.COS_POLYNOMIAL, "square"),
        sin=_horner(numbers.SIN_POLYNOMIAL, "square"),
    )


@functools.cache
def kernel() -> Callable[[np.ndarray, float, float], None] | None:
    """`kernel(uniforms, mean, std)` as box_muller_float32, or None where there is no compiler."""
    made = library(source(), "normals")
    if made is None:
        return None
    function = made["kernel_normals"]
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_float]
    function.restype = None

    def call(uniforms: np.ndarray, mean: float, std: float) -> None:
        function(uniforms.ctypes.data, uniforms.size // 16, mean, std)

    return call


__all__ = ["kernel", "source"]
