"""The compiled kernel of normal numbers against the NumPy code, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab
from torchlab._core import box_muller
from torchlab._core.codegen import normals, toolchain

pytestmark = pytest.mark.skipif(toolchain.find_compiler() is None, reason="there is no compiler")


def uniforms(n):
    found = (np.random.default_rng(n).integers(0, 1 << 24, n) * 2.0**-24).astype(np.float32)
    found[:3] = 0, 1 - 2.0**-24, 0.5
    return found


@pytest.mark.parametrize("n", [16, 16 * 31, 16 * 32, 16 * 33, 1 << 20])
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.3, 0.02), (-5.0, 1e-3)])
def test_the_same_bits(n, mean, std, monkeypatch):
    found, wanted = uniforms(n), uniforms(n)
    normals.kernel()(found, mean, std)
    monkeypatch.setattr(box_muller, "compiled", None)
    box_muller.box_muller_float32(wanted, mean, std)
    np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))


@pytest.mark.parametrize("dtype", [torchlab.float32, torchlab.bfloat16, torchlab.float16])
@pytest.mark.parametrize("n", [1 << 15, (1 << 15) + 5])
def test_long_draws_use_it(n, dtype, monkeypatch):
    g = torchlab.Generator().manual_seed(3)
    found = torchlab.empty(n, dtype=dtype).normal_(0.5, 2, generator=g)
    calls = []
    monkeypatch.setattr(box_muller, "compiled", lambda: calls.append(1))
    wanted = torchlab.empty(n, dtype=dtype).normal_(0.5, 2, generator=g.manual_seed(3))
    assert calls == [1] and torchlab.equal(found, wanted)


def test_without_a_compiler(monkeypatch):
    normals.kernel.cache_clear()
    monkeypatch.setenv("TORCHLAB_CXX", "none")
    try:
        assert normals.kernel() is None
        assert torchlab.randn(1 << 16).isfinite().all()
    finally:
        normals.kernel.cache_clear()
