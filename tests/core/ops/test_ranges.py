"""Sequences of numbers, and matrices made of them."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as tl
from torchlab.testing import assert_close


def test_arange():
    assert tl.arange(2, 9, 3).tolist() == [2, 5, 8]
    assert tl.arange(end=3).tolist() == [0, 1, 2]
    assert tl.arange(1.9, 5.1, dtype=tl.int64).tolist() == [1, 2, 3, 4]
    assert tl.arange(0.5, 3.7, 0.7, dtype=tl.int32).tolist() == [0] * 5  # the step is cut off
    assert tl.arange(3, 0, -1).dtype is tl.int64 and tl.arange(3.0).dtype is tl.float32
    for args, error in (
        ((1, 5, 0), RuntimeError),
        ((1, 0), RuntimeError),
        ((float("inf"),), RuntimeError),
        (("a",), TypeError),
        ((0, 2**70), OverflowError),
    ):
        with pytest.raises(error):
            tl.arange(*args)
    with pytest.raises(ValueError, match="step must be nonzero"):
        tl.arange(0, 1, 0.3, dtype=tl.int64)
    with pytest.raises(NotImplementedError, match="Bool"):
        tl.arange(2, dtype=tl.bool)


def test_linspace_meets_both_ends_and_whole_numbers():
    assert tl.linspace(4, -3, 50, dtype=tl.int64)[21] == 1  # 4 − 21 / 7
    assert tl.linspace(0, 5, 4, dtype=tl.int32).tolist() == [0, 1, 3, 5]
    assert tl.linspace(0, 1j, 3).tolist() == [0, 0.5j, 1j]
    assert tl.linspace(tl.tensor(1.0), 2, 1).tolist() == [1.0]
    assert tl.linspace(0, 1, 0).shape == (0,)
    for args, error in (
        ((0, 1, 2.5), TypeError),
        ((0, 1, -1), RuntimeError),
        ((tl.ones(1), 1, 3), RuntimeError),
    ):
        with pytest.raises(error):
            tl.linspace(*args)


def test_logspace_and_range():
    assert_close(tl.logspace(0, 3, 4), tl.tensor([1.0, 10, 100, 1000]))
    assert tl.logspace(0, 3, 5, dtype=tl.int64).tolist() == [1, 5, 31, 177, 1000]
    assert tl.logspace(0, 3, 4, base=2).tolist() == [1, 2, 4, 8]
    with pytest.warns(UserWarning, match="deprecated"):
        assert tl.range(0, 2, 0.5).tolist() == [0, 0.5, 1, 1.5, 2]


def test_eye_and_vander():
    assert tl.eye(2, 3, dtype=tl.bool).tolist() == [[True, False, False], [False, True, False]]
    for size in ((-1,), (2, -1)):
        with pytest.raises(RuntimeError, match="greater or equal to 0"):
            tl.eye(*size)
    x = np.array([1, 2, 5])
    for n in (None, 0, 1, 2, 4):
        for up in (False, True):
            assert tl.vander(tl.tensor(x), n, up).tolist() == np.vander(x, n, up).tolist()
    x = tl.tensor([2.0, 3.0], requires_grad=True)
    tl.vander(x, 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]  # 2 x + 1


def test_empty_permuted_and_out():
    assert tl.empty_permuted((2, 3, 4), (1, 0, 2)).stride() == (4, 8, 1)
    for order in ((1, 0), (1, 1, 0), (0, 1, 3)):
        with pytest.raises(RuntimeError):
            tl.empty_permuted((2, 3, 4), order)
    out = tl.full((2,), 7.0)
    assert tl.empty(2, out=out) is out and out.tolist() == [7.0, 7.0]


def test_lent_memory_does_not_grow():
    x = tl.from_numpy(np.zeros(2, np.float32))
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(3)
    with pytest.raises(RuntimeError, match="not resizable"):
        tl.cat([tl.ones(2), tl.ones(1)], out=x)
    assert x.tolist() == [0, 0] and x.resize_(1).shape == (1,)


def test_a_range_of_floats_is_rounded_in_vectors():
    """PyTorch's numbers: the ninth and the second of a vector of eight, the first of the rest."""
    x = tl.arange(0.1, 0.1 + 0.013 * 20.5, 0.013)
    bits = ["0x1.99999a0000000p-4", "0x1.a1cac00000000p-3", "0x1.bc6a7e0000000p-3"]
    assert [x[i].item().hex() for i in (0, 8, 9)] == bits
    assert x[12].item().hex() == "0x1.0624dc0000000p-2"  # 0.256 is nearer to ...de
    assert x[16].item().hex() == "0x1.3b645a0000000p-2" and len(x) == 21
    whole = tl.arange(0.0, 1000.0, 3.0)
    assert whole.tolist() == list(range(0, 1000, 3))
    large = tl.arange(1e5, 1e5 + 3, dtype=tl.float16)  # beyond its largest number
    assert large.isinf().all()
