"""The words of mt19937 in C++, for long draws: NumPy's generator, whose state it takes and leaves,
makes them one at a time.

Compiled at the first long draw and kept in the cache; NumPy's code stays for short draws and where
there is no compiler.

Source: M. Matsumoto and T. Nishimura, Mersenne twister: a 623-dimensionally equidistributed uniform
pseudo-random number generator, ACM TOMACS 8 (1998) 3-30.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from torchlab._core.codegen.library import library

_SOURCE = """
#include <stdint.h>

enum { N = 624, M = 397 };

// NumPy's struct of an mt19937: the words, and how many of them are used up
struct State { uint32_t words[N]; int32_t used; };

static inline uint32_t mixed(uint32_t first, uint32_t second, uint32_t far) {
    const uint32_t y = (first & 0x80000000u) | (second & 0x7fffffffu);
    return far ^ (y >> 1) ^ (-(second & 1u) & 0x9908b0dfu);
}

static void refill(uint32_t* w) {  // each loop reads only what is not yet, or long since, replaced
    #pragma omp simd
    for (int i = 0; i < N - M; ++i) w[i] = mixed(w[i], w[i + 1], w[i + M]);
    #pragma omp simd safelen(64)
    for (int i = N - M; i < N - 1; ++i) w[i] = mixed(w[i], w[i + 1], w[i + M - N]);
    w[N - 1] = mixed(w[N - 1], w[0], w[M - 1]);
}

static inline uint32_t tempered(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

template <class Out, class Function> static inline void fill(State* s, Out* out, int64_t n, Function f) {
    while (n > 0) {
        if (s->used >= N) { refill(s->words); s->used = 0; }
        const int64_t m = n < N - s->used ? n : N - s->used;
        const uint32_t* w = s->words + s->used;
        #pragma omp simd
        for (int64_t i = 0; i < m; ++i) out[i] = f(tempered(w[i]));
        s->used += (int32_t)m; out += m; n -= m;
    }
}

extern "C" void kernel_words(State* state, uint32_t* out, int64_t n) {
    fill(state, out, n, [](uint32_t w) { return w; });
}

extern "C" void kernel_uniforms(State* state, float* out, int64_t n) {
    fill(state, out, n, [](uint32_t w) { return (float)(int32_t)(w & 0xffffffu) * 0x1p-24f; });
}
"""


class Twister(NamedTuple):
    """`words(address, out)` fills `out` (uint32), `uniforms(address, out)` a float32 array with the
    low 24 bits of the words, divided by 2^24; `address`: of the state of a numpy.random.MT19937."""

    words: Callable[[int, np.ndarray], None]
    uniforms: Callable[[int, np.ndarray], None]


@functools.cache
def kernel() -> Twister | None:
    """The compiled functions, or None where there is no compiler."""
    made = library(_SOURCE, "twister")
    if made is None:
        return None
    return Twister(*(_caller(made, name) for name in ("kernel_words", "kernel_uniforms")))


def _caller(made: ctypes.CDLL, name: str) -> Callable[[int, np.ndarray], None]:
    function = made[name]
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function.restype = None

    def call(address: int, out: np.ndarray) -> None:
        function(address, out.ctypes.data, out.size)

    return call


__all__ = ["Twister", "kernel"]
