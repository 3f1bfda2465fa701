"""a + b · c in float32 with the processor's fused multiply-add, for long arrays: what
`multiply_add` of torchlab._core.ops.kernels says in NumPy, which passes through float64.

Compiled at the first long sum and kept in the cache; the NumPy code stays for short arrays and
where there is no compiler.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np

from torchlab._core.codegen.library import library

_SOURCE = """
#include <stdint.h>

extern "C" void kernel_sums(
    float* out, const float* a, const float* b, const float* c, int64_t n, int64_t many
) {{
    if (many) {{
        #pragma omp simd
        for (int64_t i = 0; i < n; ++i) out[i] = __builtin_fmaf(b[i], c[i], a[i]);
    }} else {{
        const float factor = c[0];
        #pragma omp simd
        for (int64_t i = 0; i < n; ++i) out[i] = __builtin_fmaf(b[i], factor, a[i]);
    }}
}}
"""


@functools.cache
def kernel() -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None] | None:
    """`kernel(out, a, b, c)` on row-major float32 arrays of one size, c perhaps of one element; out
    may be a or b. None where there is no compiler."""
    made = library(_SOURCE.format(), "sums")
    if made is None:
        return None
    function = made["kernel_sums"]
    function.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 2
    function.restype = None

    def run(out: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
        function(out.ctypes.data, a.ctypes.data, b.ctypes.data, c.ctypes.data, out.size, c.size > 1)

    return run


__all__ = ["kernel"]
