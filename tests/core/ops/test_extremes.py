"""Maxima and minima: ties, NaN, nothing to compare, gradients shared or chosen."""

from __future__ import annotations

import math

import pytest

import torchlab as tl

NAN = math.nan


def test_forms_of_max():
    x = tl.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert x.max().item() == 7 and x.min().item() == 1
    r = x.max(1)
    assert r.values.tolist() == [5, 7] and r.indices.tolist() == [1, 0]
    assert type(r).__name__ == "max" and r[0] is r.values
    assert tl.max(x, dim=0, keepdim=True).values.tolist() == [[7, 5]]
    assert tl.min(x, tl.full((2,), 3.0)).tolist() == [[1, 3], [3, 2]]
    assert x.amax((0, 1)).item() == 7 and x.amin(0).tolist() == [1, 2]
    low, high = tl.aminmax(x, dim=1)
    assert low.tolist() == [1, 2] and high.tolist() == [5, 7]
    assert x.argmax().item() == 2 and x.argmin(1).tolist() == [0, 1]
    assert x.argmax(keepdim=True).tolist() == [[2]] and x.argmax(axis=0).tolist() == [1, 0]


def test_the_first_of_equals():
    z = tl.zeros(1000, 3)
    assert (
        z.argmax(0).tolist() == z.t().argmax(1).tolist() == z.max(0).indices.tolist() == [0, 0, 0]
    )
    assert tl.tensor([[1, 5], [2, 10], [3, 3]]).argmax(1).tolist() == [1, 1, 0]


def test_nan_wins():
    x = tl.tensor([1.0, NAN, 3.0, NAN])
    assert x.max().isnan() and x.amin(0).isnan()
    assert x.argmax().item() == x.argmin().item() == x.min(0).indices.item() == 1


def test_nothing():
    z = tl.empty(0, 4)
    assert z.max(1).values.shape == z.argmax(1).shape == z.amax(1).shape == (0,)
    with pytest.raises(RuntimeError, match=r"max\(\): Expected reduction dim to be specified"):
        z.max()
    with pytest.raises(
        IndexError, match=r"max\(\): Expected reduction dim 0 to have non-zero size"
    ):
        z.max(0)
    with pytest.raises(IndexError, match=r"argmin\(\): Expected reduction dim"):
        z.argmin()
    with pytest.raises(RuntimeError, match="operation has no identity"):
        tl.aminmax(z)


def test_errors():
    with pytest.raises(RuntimeError, match="does not support complex input"):
        tl.tensor([1j]).max(0)
    with pytest.raises(RuntimeError, match="does not support bool input"):
        tl.tensor([True]).argmax()
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        tl.tensor([1.0]).max("a")


def gradient(f):
    x = tl.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]]).requires_grad_()
    f(x).sum().backward()
    return x.grad.tolist()


def test_gradients():
    half, third = 0.5, pytest.approx(1 / 3)
    assert gradient(lambda x: x.max()) == [[0, half, half], [0, 0, 0]]
    assert gradient(lambda x: x.max(1).values) == [[0, 1, 0], [1, 0, 0]]
    assert gradient(lambda x: x.amax(1)) == [[0, half, half], [third, third, third]]
    assert gradient(lambda x: tl.aminmax(x, dim=1).min) == [[1, 0, 0], [third, third, third]]


def test_out():
    values, indices = tl.empty(2), tl.empty(2, dtype=tl.int64)
    r = tl.max(tl.tensor([[1.0, 2.0], [4.0, 3.0]]), 1, out=(values, indices))
    assert values.tolist() == [2, 4] and r.indices is indices and indices.tolist() == [1, 0]
    with pytest.raises(
        RuntimeError, match="Expected out tensor to have dtype long int, but got float"
    ):
        tl.max(tl.tensor([[1.0]]), 1, out=(tl.empty(1), tl.empty(1)))
