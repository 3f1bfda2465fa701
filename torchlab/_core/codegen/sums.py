"""a + b · c with the processor's fused multiply-add, for long arrays: what `multiply_add` of
torchlab._core.ops.kernels says in NumPy, which passes through wider types.

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

#define KERNEL(name, T, fused) \
extern "C" void name( \
    T* out, const T* a, const T* b, const T* c, int64_t n, int64_t many \
) {{ \
    if (many) {{ \
        _Pragma("omp simd") \
        for (int64_t i = 0; i < n; ++i) out[i] = fused(b[i], c[i], a[i]); \
    }} else {{ \
        const T factor = c[0]; \
        _Pragma("omp simd") \
        for (int64_t i = 0; i < n; ++i) out[i] = fused(b[i], factor, a[i]); \
    }} \
}}
KERNEL(sums_float32, float, __builtin_fmaf)
KERNEL(sums_float64, double, __builtin_fma)
"""


@functools.cache
def kernel() -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None] | None:
    """`kernel(out, a, b, c)` on row-major arrays of one size and type, float32 or float64, c perhaps
    of one element; out may be a or b. None where there is no compiler."""
    made = library(_SOURCE.format(), "sums")
    if made is None:
        return None
    functions = {}
    for name in ("float32", "float64"):
        function = functions[np.dtype(name)] = made[f"sums_{name}"]
        function.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 2
        function.restype = None

    def run(out: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
        functions[out.dtype](
            out.ctypes.data, a.ctypes.data, b.ctypes.data, c.ctypes.data, out.size, c.size > 1
        )

    return run


__all__ = ["kernel"]
