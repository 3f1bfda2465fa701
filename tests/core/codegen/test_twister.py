"""The compiled mt19937 against NumPy's, word for word."""

from __future__ import annotations

import numpy as np
import pytest

from torchlab._core import generator as module
from torchlab._core.codegen import toolchain, twister
from torchlab._core.generator import Generator

pytestmark = pytest.mark.skipif(toolchain.find_compiler() is None, reason="there is no compiler")


@pytest.mark.parametrize("before", [0, 1, 226, 227, 623, 624, 1000])
@pytest.mark.parametrize("n", [1, 2, 396, 397, 623, 624, 625, 5000, 100_003])
def test_words_and_what_is_left_of_the_state(before, n):
    ours, theirs = np.random.MT19937(), np.random.MT19937()
    ours._legacy_seeding(before)
    theirs._legacy_seeding(before)
    ours.random_raw(before), theirs.random_raw(before)
    out = np.zeros(n, np.uint32)
    twister.kernel().words(ours.ctypes.state_address, out)
    assert np.array_equal(out, theirs.random_raw(n))
    assert np.array_equal(ours.random_raw(700), theirs.random_raw(700))


def test_the_ten_thousandth_word():
    """The C++ standard gives it for the seed 5489 ([rand.predef])."""
    engine = np.random.MT19937()
    engine._legacy_seeding(5489)
    out = np.zeros(10_000, np.uint32)
    twister.kernel().words(engine.ctypes.state_address, out)
    assert out[-1] == 4123659995


@pytest.mark.parametrize("draw", ["_u24", "_u53", "words", "words64"])
@pytest.mark.parametrize("n", [4095, 4096, 4097, 200_001])
def test_draws_are_those_of_the_numpy_code(monkeypatch, draw, n):
    fast, slow = Generator().manual_seed(7), Generator().manual_seed(7)
    found = [getattr(fast, draw)(n) for _ in range(2)]
    monkeypatch.setattr(module, "compiled", None)
    wanted = [getattr(slow, draw)(n) for _ in range(2)]
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)
    assert np.array_equal(fast.get_state(), slow.get_state())
