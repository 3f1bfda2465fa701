"""Scaled sums against PyTorch: float32 to the bit. Complex reciprocals at the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchlab as tl

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(11)
ROWS = [RNG.standard_normal((7, 40)).astype(np.float32) for _ in range(3)]
CALLS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "add": lambda m, a, b, c: m.add(a, b, alpha=0.3),
    "add of a row": lambda m, a, b, c: m.add(a, b[:1], alpha=0.7),
    "add of another type": lambda m, a, b, c: m.add(a, (b * 10).to(m.int32), alpha=0.7),
    "add in place": lambda m, a, b, c: a.clone().add_(b, alpha=-1e-3),
    "sub": lambda m, a, b, c: m.sub(a, b, alpha=0.3),
    "rsub": lambda m, a, b, c: m.rsub(a, b, alpha=0.3),
    "addcmul": lambda m, a, b, c: m.addcmul(a, b, c, value=0.7),
    "addcmul of 1": lambda m, a, b, c: m.addcmul(a, b, c),
    "addcdiv": lambda m, a, b, c: m.addcdiv(a, b, c, value=0.7),
    "lerp near": lambda m, a, b, c: m.lerp(a, b, 0.3),
    "lerp far": lambda m, a, b, c: m.lerp(a, b, 0.7),
    "lerp by a tensor": lambda m, a, b, c: m.lerp(a, b, c),
    "cross": lambda m, a, b, c: m.linalg.cross(a[:3], b[:3], dim=0),
    "hardswish": lambda m, a, b, c: m.nn.functional.hardswish(a * 2),
    "for each": lambda m, a, b, c: m._foreach_add([a], [b], alpha=0.3)[0],
}


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() == "DEFAULT",
    reason="PyTorch rounds twice where the processor has no fused multiply-add",
)
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_scaled_sums_to_the_bit(name: str, strided: bool) -> None:
    results = []
    for m in (torch, tl):
        operands = [m.from_numpy(x.copy()) for x in ROWS]
        if strided:
            operands = [x.t().clone().t() for x in operands]
        results.append(CALLS[name](m, *operands).numpy())
    assert np.array_equal(*results)


@pytest.mark.parametrize("name", [n for n in CALLS if n != "addcdiv" and n != "cross"])
def test_scaled_sums_of_float64(name: str) -> None:
    results = []
    for m in (torch, tl):
        results.append(CALLS[name](m, *(m.from_numpy(x.astype(np.float64)) for x in ROWS)).numpy())
    assert (results[0] != results[1]).mean() < 0.01


def test_reciprocals_of_complex_numbers_at_the_edges() -> None:
    parts = [0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a in parts for b in parts], np.complex128)
    for dtype in (np.complex64, np.complex128):
        expected = torch.reciprocal(torch.from_numpy(z.astype(dtype))).numpy()
        found = tl.reciprocal(tl.from_numpy(z.astype(dtype))).numpy()
        for part in ("real", "imag"):
            a, b = getattr(expected, part), getattr(found, part)
            np.testing.assert_allclose(b, a, rtol=1e-6)
            valid = ~np.isnan(a)
            assert np.array_equal(np.signbit(a[valid]), np.signbit(b[valid]))
