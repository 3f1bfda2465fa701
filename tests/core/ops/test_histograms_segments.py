"""Counts in bins, membership, hashes, reductions over segments."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import torchlab as tl
from torchlab.testing import assert_close

X = np.array([0.1, 0.4, 0.4, 0.9, 2.0, -1.0])


def test_histogram_agrees_with_numpy():
    w = np.arange(6.0)
    for bins, between in ((3, None), (4, (0.0, 1.0))):
        for density in (False, True):
            h = tl.histogram(
                tl.tensor(X), bins, range=between, weight=tl.tensor(w), density=density
            )
            counts, edges = np.histogram(X, bins, between, weights=w, density=density)
            assert_close(h.hist, tl.tensor(counts, dtype=tl.float64))
            assert_close(h.bin_edges, tl.tensor(edges))
    edges = tl.tensor([0.0, 0.4, 2.0], dtype=tl.float64)
    assert tl.histogram(tl.tensor(X), edges).hist.tolist() == [1, 4]
    assert type(h).__name__ == "histogram"


def test_histogramdd_agrees_with_numpy():
    points = np.random.default_rng(0).standard_normal((40, 2))
    h = tl.histogramdd(tl.tensor(points), [3, 4])
    counts, edges = np.histogramdd(points, [3, 4])
    assert h.hist.tolist() == counts.tolist() and len(h.bin_edges) == 2
    assert_close(h.bin_edges[1], tl.tensor(edges[1]))


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: tl.histogram(x, 0), RuntimeError),
        (lambda x: tl.histogram(x, 3, range=(1.0, 0.0)), RuntimeError),
        (lambda x: tl.histogram(x, 3, weight=tl.ones(2)), RuntimeError),
        (lambda x: tl.histogram(x, tl.tensor([0, 1])), RuntimeError),
        (lambda x: tl.histogram(x.long(), 3), NotImplementedError),
        (lambda x: tl.histogram(x * float("nan"), 3), RuntimeError),
        (lambda x: tl.histogramdd(x, 2), RuntimeError),
        (lambda x: tl.histogramdd(x[None], [2, 2]), RuntimeError),
    ],
)
def test_histograms_refuse(call, error):
    with pytest.raises(error):
        call(tl.tensor(X))


def test_isin():
    x = tl.tensor([[1, 2], [3, 4]])
    assert tl.isin(x, tl.tensor([2, 4, 9])).tolist() == [[False, True], [False, True]]
    assert tl.isin(x, 3, invert=True).tolist() == [[True, True], [False, True]]
    assert tl.isin(2, x).item() and not tl.isin(tl.tensor(float("nan")), tl.ones(1)).item()
    with pytest.raises(RuntimeError, match="Bool"):
        tl.isin(x, tl.tensor([True]))
    with pytest.raises(TypeError):
        tl.isin(1, 2)


def test_hash_tensor_is_the_exclusive_or_of_the_bits():
    bits = [struct.unpack("<Q", struct.pack("<d", v))[0] for v in (0.5, 3.0)]
    assert tl.hash_tensor(tl.tensor([0.5, 3.0])).item() == bits[0] ^ bits[1]
    h = tl.hash_tensor(tl.tensor([[1, 2], [4, 8]]), 1, keepdim=True)
    assert h.tolist() == [[3], [12]] and h.dtype is tl.uint64
    with pytest.raises(RuntimeError, match="mode"):
        tl.hash_tensor(h, mode=1)


@pytest.mark.parametrize(
    "reduce, expected",
    [
        ("sum", [1, 0, 9]),
        ("mean", [1, float("nan"), 3]),
        ("max", [1, -float("inf"), 4]),
        ("min", [1, float("inf"), 2]),
        ("prod", [1, 1, 24]),
    ],
)
def test_segment_reduce(reduce, expected):
    x = tl.tensor([1.0, 2.0, 3.0, 4.0])
    by_length = tl.segment_reduce(x, reduce, lengths=tl.tensor([1, 0, 3]))
    by_offset = tl.segment_reduce(x, reduce, offsets=tl.tensor([0, 1, 1, 4]))
    assert_close(by_length, tl.tensor(expected, dtype=tl.float32), equal_nan=True)
    assert_close(by_offset, by_length, equal_nan=True)
    rows = tl.segment_reduce(x.reshape(2, 2), reduce, lengths=tl.tensor([[2], [2]]), axis=1)
    assert rows.shape == (2, 1)


def test_segment_reduce_gradients_also_at_zeros():
    x = tl.tensor([1.0, 2.0, 0.0, 0.0, 0.0, 3.0], dtype=tl.float64, requires_grad=True)
    y = tl.segment_reduce(x, "prod", lengths=tl.tensor([3, 2, 1]), initial=2)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 4, 0, 0, 2]


@pytest.mark.parametrize(
    "options, error",
    [
        ({}, RuntimeError),
        ({"lengths": [1, 2]}, RuntimeError),
        ({"lengths": [-1, 5]}, RuntimeError),
        ({"lengths": [4], "axis": 1}, IndexError),
        ({"indices": [0, 0, 1, 1]}, RuntimeError),
        ({"lengths": [1.0, 3.0]}, NotImplementedError),
    ],
)
def test_segment_reduce_refuses(options, error):
    options = {k: tl.tensor(v) if isinstance(v, list) else v for k, v in options.items()}
    with pytest.raises(error):
        tl.segment_reduce(tl.ones(4), "sum", **options)
