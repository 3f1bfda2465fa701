"""isclose, allclose, equal."""

from __future__ import annotations

import math

import pytest

import torchlab as tl

INF, NAN = math.inf, math.nan


def test_isclose():
    x, y = tl.tensor([1.0, NAN, INF, -INF]), tl.tensor([1.000001, NAN, INF, INF])
    assert tl.isclose(x, y).tolist() == [True, False, True, False]
    assert x.isclose(y, equal_nan=True).tolist() == [True, True, True, False]
    assert tl.isclose(tl.tensor([1, 2]), tl.tensor([1, 4]), atol=1).tolist() == [True, False]
    assert tl.isclose(tl.tensor([True]), tl.tensor([True])).item() is True
    assert (
        tl.isclose(tl.tensor([100.0]), tl.tensor([101.0]), rtol=0.00995).item() is True
    )  # of the other
    with pytest.raises(RuntimeError, match="Float did not match Long"):
        tl.isclose(tl.tensor([1.0]), tl.tensor([1]))
    with pytest.raises(
        RuntimeError, match="rtol must be greater than or equal to zero, but got -1"
    ):
        tl.isclose(x, x, rtol=-1)


def test_allclose_and_equal():
    x = tl.tensor([1.0, 2.0])
    assert tl.allclose(x, x + 1e-7) is True and x.allclose(x + 1) is False
    assert tl.equal(x, tl.tensor([1.0, 2.0])) is True and x.equal(tl.tensor([1.0])) is False
    assert tl.equal(tl.tensor([NAN]), tl.tensor([NAN])) is False
    assert tl.equal(tl.empty(0), tl.empty(0)) is True
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        tl.equal(x, 1)
