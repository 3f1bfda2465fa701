"""Samplers that reject: gamma, binomial, Poisson, on PyTorch's own stream of uniform numbers.

How many numbers an element takes is only known once it is accepted, and the next element begins
where it stopped: the stream is serial, and so is the loop. Uniform numbers are drawn in blocks and
the constants of all elements are computed at once; what is left is one short Python iteration an
element (about a microsecond).

Sources: G. Marsaglia, W. Tsang, "A simple method for generating gamma variables", 2000; W. Hörmann,
"The generation of binomial random variates", 1993; V. Kachitvichyanukul, B. Schmeiser, "Binomial
random variate generation", 1988. Verified bit for bit against PyTorch 2.13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from torchlab._core.generator import Generator

_BLOCK = 1 << 16
_FEW = 24


class Uniforms:
    """A context that gives a function for the next number in [0, 1), 53 bits each.

    Blocks are drawn ahead (but for a few numbers); at the end the generator stands after the last
    one that was used. Meanwhile it is locked.
    """

    def __init__(self, generator: Generator, expected: int) -> None:
        self._generator = generator
        self._size = min(expected, _BLOCK)
        self._drawn = 0
        self._block: Any = iter(())

    def __enter__(self) -> Callable[[], float]:
        self._generator._lock.acquire()
        if self._size <= _FEW:
            return lambda: self._generator._u53(1).item()
        self._before = self._generator._ready()._bit_generator.state
        return chain.from_iterable(self._blocks()).__next__

    def _blocks(self) -> Iterator[Iterator[float]]:
        while True:
            self._block = iter(self._generator._u53(self._size).tolist())
            self._drawn += self._size
            yield self._block

    def __exit__(self, *error: object) -> None:
        generator = self._generator
        if self._drawn:
            generator._ready()._bit_generator.state = self._before
            generator.words64(self._drawn - self._block.__length_hint__())
        generator._lock.release()


def standard_gamma(generator: Generator, alpha: np.ndarray) -> np.ndarray:
    """Gamma numbers of rate 1 in float64, of the shape of `alpha`; at least the smallest normal
    number of alpha's dtype. float32 is rounded where PyTorch rounds."""
    shape, alpha = alpha.shape, alpha.ravel()
    kind = alpha.dtype.type
    small = alpha < 1
    with np.errstate(all="ignore"):
        exponent = np.where(small & (alpha > 0), kind(1) / alpha, 0).astype(np.float64)
        exponent[alpha < 0] = np.nan
        third = np.float32(1) / np.float32(3)
        d = (alpha + small.astype(kind) - kind(third)).astype(np.float64)
        c = 1 / np.sqrt(9 * d)
    d[alpha == 0] = 0
    values = np.empty(alpha.size)
    with Uniforms(generator, 3 * alpha.size) as uniform:
        _gamma_loop(generator, uniform, exponent, d, c, values)
    values = values.reshape(shape)
    tiny = float(np.finfo(alpha.dtype).tiny)
    return np.where(values > tiny, values, tiny)


def _gamma_loop(
    generator: Generator,
    uniform: Callable[[], float],
    exponent: np.ndarray,
    d: np.ndarray,
    c: np.ndarray,
    values: np.ndarray,
) -> None:
    log, log1p, sqrt, cos, sin, turn = (
        math.log, math.log1p, math.sqrt, math.cos, math.sin, 2 * math.pi
    )  # fmt: skip
    kept = generator._next_normal  # normal numbers come in pairs
    columns = zip(exponent.tolist(), d.tolist(), c.tolist(), strict=True)
    for i, (exponent_i, d_i, c_i) in enumerate(columns):
        if d_i == 0:  # alpha is 0
            values[i] = 0
            continue
        scale = (1 - uniform()) ** exponent_i if exponent_i else 1.0
        while True:
            y = 0.0
            while y <= 0:
                if kept is None:
                    first = uniform()
                    radius = sqrt(-2 * log1p(-uniform()))
                    x, kept = radius * cos(turn * first), radius * sin(turn * first)
                else:
                    x, kept = kept, None
                y = 1 + c_i * x
            v = y * y * y
            u = 1 - uniform()
            xx = x * x
            if u < 1 - 0.0331 * xx * xx or log(u) < 0.5 * xx + d_i * (1 - v + log(v)):
                break
        values[i] = scale * d_i * v
    generator._next_normal = kept


def binomial(generator: Generator, count: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """Binomial numbers in float64, of the common shape of the two."""
    shape = count.shape
    pairs = zip(
        count.astype(np.float64).ravel().tolist(),
        prob.astype(np.float64).ravel().tolist(),
        strict=True,
    )
    with Uniforms(generator, 4 * count.size) as uniform:
        values = [_binomial(n, p, uniform) for n, p in pairs]
    return np.array(values, np.float64).reshape(shape)


def _binomial(n: float, p: float, uniform: Callable[[], float]) -> float:
    if n <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return n
    if p <= 0.5:
        return _by_rejection(n, p, uniform) if n * p >= 10 else _by_waiting(n, p, uniform)
    q = 1 - p
    if n * q >= 10:
        return n - _by_rejection(n, q, uniform)
    if q != q:
        return math.nan
    return n - _by_waiting(n, q, uniform)


def _by_waiting(n: float, p: float, uniform: Callable[[], float]) -> float:
    """Geometric waiting times until they pass n."""
    log_q = math.log1p(-p)
    passed = successes = 0
    while True:
        u = uniform()
        passed += math.ceil(math.log(u) / log_q) if u else math.inf  # type: ignore[assignment]
        if passed > n:
            return float(successes)
        successes += 1


_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k: float) -> float:
    """log(k!) minus Stirling's approximation."""
    if k <= 9:
        return _STIRLING[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _by_rejection(n: float, p: float, uniform: Callable[[], float]) -> float:
    """Hörmann's transformed rejection with squeeze (BTRS), for n p >= 10 and p <= 1/2."""
    stddev = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * stddev
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * stddev
    m = math.floor((n + 1) * p)
    while True:
        u = uniform() - 0.5
        v = uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c) if us else -1
        if us >= 0.07 and v <= v_r:
            return float(k)
        if k < 0 or k > n or v == 0:
            continue
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * math.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * math.log(r * (n - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(n - m)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)
