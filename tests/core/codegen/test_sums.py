"""The compiled a + b · c: the same bits as NumPy's way through wider types, and as one rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import torchlab as torch
from torchlab._core.codegen import sums
from torchlab._core.ops import kernels

N = (1 << 15) + 5
RNG = np.random.default_rng(5)
A, B, C = (RNG.standard_normal(N).astype(np.float32) for _ in range(3))


def through_float64(a: Any, b: Any, c: Any) -> Any:
    return (a.astype(np.float64) + b.astype(np.float64) * c).astype(np.float32)


@pytest.mark.skipif(sums.kernel() is None, reason="needs a C++ compiler")
def test_the_kernel_rounds_once() -> None:
    kernel = sums.kernel()
    assert kernel is not None
    factor = np.full(1, 0.3, np.float32)
    for c in (C, factor):
        out = np.empty_like(A)
        kernel(out, A, B, c)
        assert np.array_equal(out, through_float64(A, B, c))
    own = A.copy()
    kernel(own, own, B, C)
    assert np.array_equal(own, through_float64(A, B, C))


def once(a: Any, b: Any, c: Any) -> Any:
    """a + b · c of float64, rounded once."""
    terms = zip(a.tolist(), b.tolist(), np.broadcast_to(c, a.shape).tolist(), strict=True)
    return np.array([float(Fraction(x) + Fraction(y) * Fraction(z)) for x, y, z in terms])


@pytest.mark.skipif(sums.kernel() is None, reason="needs a C++ compiler")
def test_the_kernel_rounds_float64_once() -> None:
    kernel = sums.kernel()
    assert kernel is not None
    a, b, c = (RNG.standard_normal(5000) for _ in range(3))
    for factor in (c, np.full(1, 0.3)):
        out = np.empty_like(a)
        kernel(out, a, b, factor)
        assert np.array_equal(out, once(a, b, factor))
    got = torch.add(torch.from_numpy(a), torch.from_numpy(b), alpha=0.3)
    assert np.array_equal(got.numpy(), once(a, b, 0.3))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no type wider than float64")
def test_short_sums_of_float64_are_rounded_once_but_rarely() -> None:
    a, b = (RNG.standard_normal(4000) for _ in range(2))
    got = torch.add(torch.from_numpy(a), torch.from_numpy(b), alpha=0.3).numpy()
    assert (got != once(a, b, 0.3)).mean() < 0.005  # two roundings: 0.2


def test_long_and_short_sums_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = (torch.from_numpy(x) for x in (A, B, C))
    calls = {
        "number": lambda: torch.add(a, b, alpha=0.3),
        "products": lambda: torch.addcmul(a, b, c, value=0.7),
        "weights": lambda: torch.lerp(a, b, c),
        "in place": lambda: a.clone().sub_(b, alpha=0.3),
        "with itself": lambda: (x := a.clone()).add_(x, alpha=0.3),
        "one beside many": lambda: torch.add(a[:, None], b[:1], alpha=0.3),
        "of a row": lambda: torch.add(a[1:].reshape(4, -1), b[1:].reshape(4, -1)[:1], alpha=0.3),
        "of columns": lambda: torch.add(
            a[1:].reshape(4, -1).t(), b[1:].reshape(4, -1).t(), alpha=2
        ),
        "into": lambda: torch.add(a, b, alpha=0.3, out=torch.empty(N, dtype=torch.float64)),
    }
    long = {name: call() for name, call in calls.items()}
    monkeypatch.setattr(kernels, "_LONG", dict.fromkeys(kernels._LONG, 1 << 60))
    for name, call in calls.items():
        short = call()
        assert long[name].stride() == short.stride() and long[name].equal(short), name


def test_a_target_in_an_operands_memory_is_left_to_numpy() -> None:
    x = A.copy()
    expected = through_float64(x[:-1], B[:-1], 0.5)
    kernels.multiply_add(np, x[:-1], B[:-1], np.float32(0.5), out=x[1:])
    assert np.array_equal(x[1:], expected)
