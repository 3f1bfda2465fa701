"""Distinct elements, sorted sequences, bins."""

from __future__ import annotations

import math

import pytest

import torchlab as tl

NAN = math.nan


def test_unique():
    x = tl.tensor([[3, 1], [3, 1]])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 3] and counts.tolist() == [2, 2]
    assert inverse.tolist() == [[1, 0], [1, 0]]
    assert tl.unique(tl.tensor([NAN, NAN, 1.0])).shape == (3,)
    rows, inverse, counts = tl.tensor([[1, 2], [1, 2], [0, 1]]).unique(
        dim=0, return_inverse=True, return_counts=True
    )
    assert (
        rows.tolist() == [[0, 1], [1, 2]]
        and inverse.tolist() == [1, 1, 0]
        and counts.tolist() == [1, 2]
    )
    assert tl.empty(0, 4).unique(dim=0).shape == (0, 4)
    with pytest.raises(RuntimeError, match="There are 0 sized dimensions"):
        tl.empty(0, 4).unique(dim=1)


def test_runs():
    values, runs, lengths = tl.tensor([1, 1, 2, 2, 1]).unique_consecutive(True, True)
    assert (values.tolist(), runs.tolist(), lengths.tolist()) == (
        [1, 2, 1],
        [0, 0, 1, 1, 2],
        [2, 2, 1],
    )
    assert tl.tensor([[1, 1], [1, 1], [0, 1]]).unique_consecutive(dim=0).tolist() == [
        [1, 1],
        [0, 1],
    ]


def test_places():
    s = tl.tensor([1, 3, 5])
    assert tl.searchsorted(s, tl.tensor([[1, 3], [6, 0]])).tolist() == [[0, 1], [3, 0]]
    assert tl.searchsorted(s, 3, right=True).item() == 2
    assert tl.searchsorted(s, tl.tensor([3]), side="right", out_int32=True).dtype is tl.int32
    rows = tl.tensor([[1, 3, 5], [2, 4, 6]])
    assert tl.searchsorted(rows, tl.tensor([[3, 4], [3, 4]])).tolist() == [[1, 2], [1, 1]]
    assert tl.searchsorted(tl.tensor([5, 1, 3]), 3, sorter=tl.tensor([1, 2, 0])).item() == 1
    assert tl.searchsorted(tl.tensor([1.0, NAN]), tl.tensor([NAN, 2.0])).tolist() == [2, 2]
    assert tl.bucketize(tl.tensor([0.5, 3.0, 9.0]), tl.tensor([1.0, 3.0])).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="can't be set to opposites"):
        tl.searchsorted(s, 3, side="left", right=True)
    with pytest.raises(RuntimeError, match="first N-1 dimensions"):
        tl.searchsorted(rows, tl.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="boundaries tensor must be 1 dimension"):
        tl.bucketize(tl.tensor([1]), rows)


def test_counts():
    x = tl.tensor([1, 2, 2])
    assert tl.bincount(x).tolist() == [0, 1, 2] and x.bincount(minlength=5).tolist() == [
        0,
        1,
        2,
        0,
        0,
    ]
    assert tl.bincount(x, tl.tensor([0.5, 1.0, 2.0])).tolist() == [0, 0.5, 3]
    assert tl.bincount(x, weights=tl.tensor([1, 1, 2])).dtype is tl.float64
    with pytest.raises(RuntimeError, match="1-d non-negative integral"):
        tl.bincount(tl.tensor([-1]))
    with pytest.raises(RuntimeError, match="same length as input"):
        tl.bincount(x, tl.tensor([1.0]))


def test_histograms():
    assert tl.histc(tl.tensor([1.0, 2.0, 1.0, 9.0, NAN]), 4, 0, 3).tolist() == [0, 2, 1, 0]
    assert tl.histc(tl.tensor([1.0, 2.0, 1.0]), 4).tolist() == [2, 0, 0, 1]
    assert tl.histc(tl.tensor([1.0, 1.0]), 4).tolist() == [0, 0, 2, 0]
    with pytest.raises(RuntimeError, match="is not finite"):
        tl.histc(tl.tensor([1.0, math.inf]), 4)
    with pytest.raises(RuntimeError, match="max must be larger than min"):
        tl.histc(tl.tensor([1.0]), 4, 3, 1)
