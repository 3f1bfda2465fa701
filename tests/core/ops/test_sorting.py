"""Sorting, the largest, the k-th, medians, modes, quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlab as tl

NAN = math.nan


def test_sort_is_stable_both_ways():
    x = tl.tensor([3, 1, 3, 1])
    assert x.sort().indices.tolist() == x.argsort(stable=True).tolist() == [1, 3, 0, 2]
    assert x.sort(descending=True).indices.tolist() == [0, 2, 1, 3]
    assert x.argsort(0, True).tolist() == [0, 2, 1, 3]
    many = tl.zeros(500)
    assert many.sort(descending=True, stable=True).indices.tolist() == list(range(500))


def test_nan_is_the_largest():
    x = tl.tensor([NAN, 1.0, 2.0])
    assert x.sort().indices.tolist() == [1, 2, 0]
    assert x.sort(descending=True).indices.tolist() == x.topk(3).indices.tolist() == [0, 2, 1]
    assert x.topk(2, largest=False).values.tolist() == [1, 2]


def test_sort_keeps_the_memory_format_and_gradients_follow():
    x = tl.arange(6.0).reshape(2, 3).t().requires_grad_()
    r = x.sort(0, descending=True)
    assert r.values.stride() == r.indices.stride() == (1, 3)
    (r.values * tl.tensor([[1.0, 0], [2.0, 0], [3.0, 0]])).sum().backward()
    assert x.grad.tolist() == [[3, 0], [2, 0], [1, 0]]
    assert tl.tensor([[2, 1], [1, 2]]).msort().tolist() == [[1, 1], [2, 2]]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [tl.float32, tl.int32, tl.uint8])
def test_topk_of_many_has_the_first_of_equals(largest, dtype):
    a = np.random.default_rng(0).integers(0, 100, (3, 5000))
    x = tl.from_numpy(a).to(dtype)
    r = x.topk(7, 1, largest=largest)
    assert r.indices.tolist() == x.sort(1, descending=largest).indices[:, :7].tolist()
    assert r.values.tolist() == x.sort(1, descending=largest).values[:, :7].tolist()


def test_topk_errors():
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        tl.tensor([1.0]).topk(2)
    with pytest.raises(RuntimeError, match="topk does not support complex"):
        tl.tensor([1j]).topk(1)


def test_kth_and_median():
    x = tl.tensor([[4.0, 1.0, 3.0, 2.0], [1.0, NAN, 3.0, 0.0]])
    r = x.kthvalue(2)
    assert r.values.tolist() == [2, 1] and r.indices.tolist() == [3, 0]
    m = x.median(1)
    assert m.values.tolist()[0] == 2 and m.values[1].isnan() and m.indices.tolist() == [3, 1]
    n = x.nanmedian(1)
    assert n.values.tolist() == [2, 1] and n.indices.tolist() == [3, 0]
    assert x.median().isnan() and x.nanmedian().item() == 2
    assert tl.empty(0).median().isnan()
    y = tl.tensor([5.0, 1.0, 3.0]).requires_grad_()
    (y.median() + y.kthvalue(1).values).backward()
    assert y.grad.tolist() == [0, 1, 1]
    with pytest.raises(RuntimeError, match="selected number k out of range for dimension 0"):
        y.kthvalue(4)
    with pytest.raises(IndexError, match="non-zero size"):
        tl.empty(0, 2).median(0)


def test_mode():
    r = tl.tensor([[2, 3, 1, 3, 1, 3], [1, 2, 1, 2, 0, 0]]).mode()
    assert r.values.tolist() == [3, 0] and r.indices.tolist() == [5, 5]
    assert tl.tensor([3, 1, 3, 1]).mode().values.item() == 1


def test_quantiles():
    x = tl.tensor([4.0, 1.0, 3.0, 2.0])
    assert x.quantile(0.5).item() == 2.5
    assert x.quantile(tl.tensor([0.0, 0.1, 1.0])).tolist() == pytest.approx([1, 1.3, 4])
    for how, value in (("lower", 2), ("higher", 3), ("nearest", 2), ("midpoint", 2.5)):
        assert x.quantile(0.4, interpolation=how).item() == value
    assert tl.tensor([1.0, NAN]).quantile(0.5).isnan()
    assert tl.tensor([1.0, NAN, 3.0]).nanquantile(0.5).item() == 2
    assert tl.ones(2, 3).quantile(tl.tensor([0.1, 0.2]), dim=1, keepdim=True).shape == (2, 2, 1)
    y = tl.tensor([0.0, 10.0]).requires_grad_()
    y.quantile(0.25).backward()
    assert y.grad.tolist() == [0.75, 0.25]
    with pytest.raises(RuntimeError, match=r"must be in the range \[0, 1\] but got 1.5"):
        x.quantile(1.5)
    with pytest.raises(RuntimeError, match="must be either float or double"):
        tl.tensor([1]).quantile(0.5)


def test_targets_of_values_and_indices():
    x = tl.arange(10.0)
    for name, args in (("kthvalue", (2,)), ("median", (0,)), ("nanmedian", (0,)), ("mode", (0,))):
        function = getattr(tl, name)
        wide, short = tl.zeros((), dtype=tl.float64), tl.zeros((), dtype=tl.int32)
        value, index = tl.zeros(()), tl.zeros((), dtype=tl.int64)
        for out in ((wide, index), (value, short), (value, value)):
            with pytest.raises(RuntimeError, match="dtype"):
                function(x, *args, out=out)
        assert function(x, *args, out=(value, index)).values is value
    for target in (x, x[3]):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            tl.kthvalue(x, 2, out=(target, index))
    assert x.tolist() == list(range(10))
