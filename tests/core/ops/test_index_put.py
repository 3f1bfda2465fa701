"""Reading and writing at indices, against values worked out by hand."""

from __future__ import annotations

import pytest

import torchlab

T = torchlab.tensor


def test_index_put():
    x = torchlab.zeros(4)
    at = (T([0, 1, 1]),)
    assert x.index_put(at, T([1.0, 2.0, 3.0]), accumulate=True).tolist() == [1, 5, 0, 0]
    assert x.tolist() == [0, 0, 0, 0]
    x.index_put_((T([3]),), T(9.0))
    assert x.tolist() == [0, 0, 0, 9]
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x.index_put_((T([0]),), T([1]))


def test_masked_select_and_scatter():
    x = torchlab.arange(6.0).reshape(2, 3)
    mask = T([True, False, True])
    assert torchlab.masked_select(x, mask).tolist() == [0, 2, 3, 5]
    r = x.masked_scatter(mask, T([10.0, 11.0, 12.0, 13.0, 14.0]))
    assert r.tolist() == [[10, 1, 11], [12, 4, 13]]
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        x.masked_scatter_(mask, T([1.0]))


def test_nonzero():
    x = T([[0, 1], [2, 0]])
    assert x.nonzero().tolist() == [[0, 1], [1, 0]]
    rows, columns = torchlab.nonzero(x, as_tuple=True)
    assert rows.tolist() == [0, 1] and columns.tolist() == [1, 0]
    assert torchlab.nonzero(T(5)).shape == (1, 0)
    assert torchlab.nonzero_static(x, size=3).tolist() == [[0, 1], [1, 0], [-1, -1]]


def test_take_and_put():
    x = torchlab.arange(6.0).reshape(2, 3)
    assert x.take(T([[0, -1]])).tolist() == [[0, 5]]
    assert x.put(T([1, 1]), T([2.0, 3.0]), accumulate=True).tolist() == [[0, 6, 2], [3, 4, 5]]
    with pytest.raises(IndexError, match="out of range"):
        x.take(T([6]))


def test_along_a_dimension():
    x = torchlab.zeros(3, 2)
    i = T([0, 2, 0])
    s = T([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert x.index_add(0, i, s).tolist() == [[6, 8], [0, 0], [3, 4]]
    assert x.index_add(0, i, s, alpha=2).tolist() == [[12, 16], [0, 0], [6, 8]]
    assert s.index_select(1, T([1])).tolist() == [[2], [4], [6]]
    assert x.index_copy(0, T([2, 0]), s[:2]).tolist() == [[3, 4], [0, 0], [1, 2]]
    assert x.index_fill(1, T([-1]), 7).tolist() == [[0, 7], [0, 7], [0, 7]]
    assert x.index_reduce(0, i, s, "amax").tolist() == [[5, 6], [0, 0], [3, 4]]
    with pytest.raises(IndexError, match="index out of range in self"):
        s.index_select(0, T([3]))
    with pytest.raises(RuntimeError, match="out of bounds for dimension 0 with size 3"):
        x.index_add_(0, T([3]), s[:1])
    assert x.tolist() == [[0, 0]] * 3


def test_gather_and_scatter():
    x = torchlab.arange(6.0).reshape(2, 3).requires_grad_()
    i = T([[2, 0], [1, 1]])
    r = x.gather(1, i)
    assert r.tolist() == [[2, 0], [4, 4]]
    r.sum().backward()
    assert x.grad.tolist() == [[1, 0, 1], [0, 2, 0]]
    z = torchlab.zeros(2, 3)
    assert z.scatter(1, i, T([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[2, 0, 1], [0, 4, 0]]
    assert z.scatter(1, i, 5).tolist() == [[5, 0, 5], [0, 5, 0]]
    assert z.scatter_add(1, i, torchlab.ones(2, 2)).tolist() == [[1, 0, 1], [0, 2, 0]]
    with pytest.raises(RuntimeError, match="index 3 is out of bounds for dimension 1 with size 3"):
        z.scatter_(1, T([[3]]), 1.0)


@pytest.mark.parametrize(
    ("reduce", "include_self", "expected"),
    [
        ("sum", True, [7, 2]),
        ("sum", False, [6, 2]),
        ("prod", True, [8, 2]),
        ("mean", False, [3, 2]),
        ("amax", True, [4, 2]),
        ("amin", True, [1, 2]),
        ("amin", False, [2, 2]),
    ],
)
def test_scatter_reduce(reduce, include_self, expected):
    x = T([1.0, 2.0])
    r = x.scatter_reduce(0, T([0, 0]), T([2.0, 4.0]), reduce, include_self=include_self)
    assert r.tolist() == expected


def test_product_gradient_with_a_zero():
    src = T([0.0, 3.0], requires_grad=True)
    r = torchlab.ones(1).scatter_reduce(0, T([0, 0]), src, "prod")
    r.sum().backward()
    assert src.grad.tolist() == [3.0, 0.0]


def test_take_along_dim():
    x = T([[3, 1, 2], [6, 5, 4]])
    order = T([[1, 2, 0], [2, 1, 0]])
    assert torchlab.take_along_dim(x, order, 1).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert torchlab.take_along_dim(x, T([5])).tolist() == [4]
