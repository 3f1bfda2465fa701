"""Variance and standard deviation: degrees of freedom, accuracy, gradients at a spread of 0."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import torchlab as tl


def test_overloads():
    x = tl.tensor([1.0, 2.0, 3.0, 6.0])  # mean 3, squares 4 + 1 + 0 + 9
    assert x.var().item() == pytest.approx(14 / 3)
    assert x.var(False).item() == x.var(unbiased=False).item() == x.var(correction=0).item() == 3.5
    assert x.var(0, False).item() == x.var(0, unbiased=False).item() == 3.5
    assert x.var(correction=2).item() == 7
    assert x.var(0, keepdim=True).shape == (1,)
    assert x.std(correction=0).item() == pytest.approx(math.sqrt(3.5))
    v, m = tl.var_mean(x, correction=0)
    assert (v.item(), m.item()) == (3.5, 3)
    s, m = tl.std_mean(x, 0, False)
    assert s.item() == pytest.approx(math.sqrt(3.5)) and m.item() == 3
    assert tl.tensor([1 + 1j, 2.0]).var().item() == 1  # |z − mean|² = ½ each


def test_far_from_zero():
    a = 1e6 + np.arange(1000, dtype=np.float32) % 7
    exact = a.astype(np.float64).var(ddof=1)
    assert tl.from_numpy(a).var().item() == pytest.approx(exact, rel=1e-5)
    b = np.tile(a[:, None], (1, 3))
    assert tl.from_numpy(b).var(0).tolist() == pytest.approx([exact] * 3, rel=1e-5)


def test_no_degrees_of_freedom():
    with pytest.warns(UserWarning, match=r"std\(\): degrees of freedom is <= 0") as caught:
        assert tl.tensor([4.0]).std().isnan()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = tl.tensor([1.0, 2.0, 3.0])
        assert x.var(correction=3).item() == x.var(correction=5).item() == math.inf
        assert tl.empty(0).var().isnan() and tl.empty(0, 2).var(0).isnan().all()


def gradient(f, values):
    x = tl.tensor(values, dtype=tl.float64).requires_grad_()
    f(x).sum().backward()
    return x.grad.tolist()


def test_gradients():
    assert gradient(lambda x: x.std(), [1.0, 1.0, 1.0]) == [0, 0, 0]
    assert gradient(lambda x: x.var(), [1.0, 3.0]) == [-2, 2]
    assert gradient(lambda x: x.var(correction=0), [1.0, 3.0]) == [-1, 1]
    assert all(math.isnan(v) for v in gradient(lambda x: x.var().sqrt(), [1.0, 1.0]))
    half = math.sqrt(0.5)
    assert gradient(lambda x: x.std(), [1.0, 3.0]) == pytest.approx([-half, half])
    assert gradient(lambda x: tl.var_mean(x)[1], [1.0, 3.0]) == [0.5, 0.5]
    assert gradient(lambda x: sum(tl.std_mean(x)), [1.0, 3.0]) == pytest.approx(
        [0.5 - half, 0.5 + half]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert math.isnan(gradient(lambda x: x.var(), [1.0])[0])


def test_errors():
    with pytest.raises(RuntimeError, match="std and var only support floating point and complex"):
        tl.tensor([1, 2]).std()
    with pytest.raises(TypeError, match="invalid combination"):
        tl.tensor([1.0, 2.0]).var(0, True, correction=0)
