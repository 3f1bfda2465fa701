"""Joining, repeating, turning, padding and resizing, against values worked out by hand."""

from __future__ import annotations

import pytest

import torchlab
from torchlab.nn import functional as F

T = torchlab.tensor


def test_cat():
    x, y = torchlab.ones(1, 2), torchlab.zeros(1, 2, dtype=torchlab.float64)
    assert torchlab.cat([x, y]).tolist() == [[1, 1], [0, 0]]
    assert torchlab.cat([x, y]).dtype is torchlab.float64
    assert torchlab.cat([torchlab.empty(0), x], 1).shape == (1, 2)
    with pytest.raises(RuntimeError, match="Sizes of tensors must match except in dimension 0"):
        torchlab.cat([x, torchlab.ones(1, 3)])
    with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
        torchlab.cat(x)
    image = torchlab.zeros(2, 3, 4, 5).to(memory_format=torchlab.channels_last)
    assert torchlab.cat([image, image]).stride() == (60, 1, 15, 3)


def test_gradients_of_cat_and_stack():
    a, b = T([1.0], requires_grad=True), T([2.0, 3.0], requires_grad=True)
    (torchlab.cat([a, b]) * T([1.0, 2.0, 3.0])).sum().backward()
    assert a.grad.tolist() == [1.0] and b.grad.tolist() == [2.0, 3.0]
    c = T([1.0], requires_grad=True)
    (torchlab.stack([c, c * 2], 1) * T([[1.0, 10.0]])).sum().backward()
    assert c.grad.tolist() == [21.0]


def test_stacks():
    x, y = T([1, 2]), T([3, 4])
    assert torchlab.stack([x, y], -1).tolist() == [[1, 3], [2, 4]]
    assert torchlab.hstack([x, y]).tolist() == [1, 2, 3, 4]
    assert torchlab.vstack([x, y]).tolist() == [[1, 2], [3, 4]]
    assert torchlab.dstack([x, y]).tolist() == [[[1, 3], [2, 4]]]
    assert torchlab.column_stack([x, y]).tolist() == [[1, 3], [2, 4]]


def test_splits_and_grids():
    x = torchlab.arange(5)
    assert [t.tolist() for t in x.tensor_split(3)] == [[0, 1], [2, 3], [4]]
    assert [t.tolist() for t in x.tensor_split((1, 3))] == [[0], [1, 2], [3, 4]]
    assert [t.shape for t in torchlab.zeros(2, 4).hsplit(2)] == [(2, 2), (2, 2)]
    rows, columns = torchlab.meshgrid(T([1, 2]), T([3, 4, 5]), indexing="ij")
    assert rows.tolist() == [[1, 1, 1], [2, 2, 2]] and columns.stride() == (0, 1)
    a, b = torchlab.meshgrid(T([1, 2]), T([3, 4, 5]), indexing="xy")
    assert a.tolist() == [[1, 2]] * 3 and b.tolist() == [[3, 3], [4, 4], [5, 5]]
    assert torchlab.cartesian_prod(T([1, 2]), T([3])).tolist() == [[1, 3], [2, 3]]
    assert torchlab.combinations(T([1, 2, 3])).tolist() == [[1, 2], [1, 3], [2, 3]]


def test_repeats():
    x = T([1, 2])
    assert x.repeat(2, 2).tolist() == [[1, 2, 1, 2]] * 2
    assert torchlab.tile(x, (2,)).tolist() == [1, 2, 1, 2]
    assert x.repeat_interleave(2).tolist() == [1, 1, 2, 2]
    assert torchlab.repeat_interleave(x, T([0, 3])).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="can not be smaller"):
        torchlab.zeros(2, 2).repeat(2)


def test_turns():
    x = T([[1, 2], [3, 4]])
    assert x.flip(0).tolist() == [[3, 4], [1, 2]] and x.flip(0).stride() == (2, 1)
    assert x.t().flip(0, 1).stride() == (1, 2)
    assert torchlab.fliplr(x).tolist() == [[2, 1], [4, 3]]
    assert torchlab.roll(x, 1).tolist() == [[4, 1], [2, 3]]
    assert x.roll((1,), (1,)).tolist() == [[2, 1], [4, 3]]
    assert x.rot90().tolist() == [[2, 4], [1, 3]]


def test_padding():
    x = T([[1.0, 2.0, 3.0]])
    assert F.pad(x, (1, -1), value=9.0).tolist() == [[9, 1, 2]]
    assert F.pad(x, (2, 1), mode="reflect").tolist() == [[3, 2, 1, 2, 3, 2]]
    assert F.pad(x, (1, 2), mode="replicate").tolist() == [[1, 1, 2, 3, 3, 3]]
    assert F.pad(x, (1, 2), mode="circular").tolist() == [[3, 1, 2, 3, 1, 2]]
    with pytest.raises(RuntimeError, match="Padding size should be less than"):
        F.pad(x, (3, 0), mode="reflect")
    y = x.clone().requires_grad_()
    F.pad(y, (2, 1), mode="reflect").sum().backward()
    assert y.grad.tolist() == [[1, 3, 2]]


def test_one_hot():
    assert F.one_hot(T([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        F.one_hot(T([3]), 3)


def test_triangles_and_diagonals():
    x = torchlab.ones(2, 3)
    assert x.tril().tolist() == [[1, 0, 0], [1, 1, 0]]
    assert torchlab.triu(x, 1).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert torchlab.tril_indices(2, 2).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert torchlab.diag(T([1, 2]), 1).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert torchlab.diag(T([[1, 2], [3, 4]])).tolist() == [1, 4]
    assert torchlab.diag_embed(T([[1, 2]])).shape == (1, 2, 2)
    assert torchlab.zeros(3, 3).fill_diagonal_(2).trace().item() == 6
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        torchlab.ones(3).tril()


def test_filling():
    x = torchlab.zeros(1).expand(3)
    x.fill_(2.0)
    assert x.tolist() == [2.0] * 3
    y = torchlab.ones(2, requires_grad=True) * 1
    y.fill_(T(3.0))
    assert y.grad_fn.name() == "FillBackward3" and y.tolist() == [3.0, 3.0]
    assert y.zero_().grad_fn.name() == "ZeroBackward0"


def test_layouts_in_place():
    x = torchlab.arange(6.0).reshape(2, 3).clone()
    assert x.t_().shape == (3, 2) and x.stride() == (1, 3)
    assert x.unsqueeze_(0).shape == (1, 3, 2) and x.squeeze_(0).shape == (3, 2)
    assert x.transpose_(0, 1).tolist() == [[0, 1, 2], [3, 4, 5]]
    leaf = torchlab.ones(2, 3, requires_grad=True)
    y = (leaf * 2).t_()
    assert y.grad_fn.name() == "TBackward1"
    (y * T([[1.0, 2.0]])).sum().backward()
    assert leaf.grad.tolist() == [[2.0] * 3, [4.0] * 3]


def test_resizing():
    x = torchlab.arange(6)
    pointer = x.data_ptr()
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]] and x.data_ptr() == pointer
    assert x.resize_(8)[:6].tolist()[:4] == [0, 1, 2, 3] and x.shape == (8,)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torchlab.ones(2, requires_grad=True).resize_(3)
    a, b = torchlab.zeros(2), torchlab.ones(3)
    a.set_(b)
    b[0] = 5.0
    assert a.tolist() == [5.0, 1.0, 1.0]
    assert a.set_().shape == (0,)
