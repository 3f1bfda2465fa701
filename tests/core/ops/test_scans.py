"""Running sums, extremes, logarithms of sums, differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlab as tl

INF, NAN = math.inf, math.nan


def test_running_sums():
    x = tl.tensor([[1, 2, 3], [4, 5, 6]])
    assert x.cumsum(1).tolist() == [[1, 3, 6], [4, 9, 15]]
    assert tl.tensor([True, True]).cumsum(0).tolist() == [1, 2]
    assert tl.tensor([200, 100], dtype=tl.uint8).cumsum(0).tolist() == [200, 300]
    assert tl.tensor(3.0).cumsum(0).item() == 3
    ones = tl.full((2**20,), 0.1)
    assert ones.cumsum(0)[-1].item() == pytest.approx(2**20 * float(np.float32(0.1)), rel=1e-7)
    y = tl.tensor([1.0, 2.0, 4.0]).requires_grad_()
    y.cumsum(0).backward(tl.tensor([1.0, 10.0, 100.0]))
    assert y.grad.tolist() == [111, 110, 100]


def test_running_extremes():
    r = tl.tensor([3.0, 1.0, 3.0, 1.0]).cummax(0)
    assert r.values.tolist() == [3, 3, 3, 3] and r.indices.tolist() == [0, 0, 2, 2]
    assert tl.tensor([3.0, 1.0, 3.0, 1.0]).cummin(0).indices.tolist() == [0, 1, 1, 3]
    r = tl.tensor([1.0, 1.0, NAN, 1.0, NAN]).cummax(0)
    assert (
        r.indices.tolist() == [0, 1, 2, 2, 4]
        and r.values.isnan().tolist() == [False] * 2 + [True] * 3
    )
    x = tl.tensor([1.0, 3.0, 2.0]).requires_grad_()
    x.cummax(0).values.sum().backward()
    assert x.grad.tolist() == [1, 2, 0]


def test_logsumexp():
    assert tl.tensor([1000.0, 1000.0]).logsumexp(0).item() == pytest.approx(1000 + math.log(2))
    assert tl.tensor([-INF, -INF]).logsumexp(0).item() == -INF
    assert tl.tensor([INF, 0.0]).logsumexp(0).item() == INF
    assert tl.empty(0).logsumexp(0).item() == -INF
    assert tl.tensor([0, 0]).logsumexp(0).item() == pytest.approx(math.log(2))
    x = tl.tensor([[-INF, 1.0], [2.0, 2.0]]).requires_grad_()
    x.logsumexp(1).sum().backward()
    assert x.grad.tolist() == [[0, 1], [0.5, 0.5]]


def test_logcumsumexp():
    x = tl.tensor([0.0, math.log(2), math.log(3)]).requires_grad_()
    y = x.logcumsumexp(0)
    assert y.exp().tolist() == pytest.approx([1, 3, 6])
    y.backward(tl.tensor([1.0, -1.0, 1.0]))
    # Σ over i ≥ k of gᵢ eˣᵏ / Sᵢ with S = 1, 3, 6
    assert x.grad.tolist() == pytest.approx([1 - 1 / 3 + 1 / 6, -2 / 3 + 1 / 3, 1 / 2])
    assert tl.tensor([-INF, -INF, 0.0]).logcumsumexp(0).tolist() == [-INF, -INF, 0]
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        tl.tensor([1]).logcumsumexp(0)


def test_differences():
    x = tl.tensor([1, 4, 9, 16])
    assert (
        x.diff().tolist() == [3, 5, 7] and x.diff(2).tolist() == [2, 2] and x.diff(9).tolist() == []
    )
    assert x.diff(0).tolist() == x.tolist()
    assert x.diff(prepend=tl.tensor([0]), append=tl.tensor([5])).tolist() == [1, 3, 5, 7, -11]
    assert tl.tensor([True, False, False]).diff().tolist() == [True, False]
    with pytest.raises(RuntimeError, match="at least one-dimensional"):
        tl.tensor(1).diff()
    with pytest.raises(RuntimeError, match="order must be non-negative but got -1"):
        x.diff(-1)
