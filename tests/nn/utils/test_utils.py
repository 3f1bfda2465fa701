"""torchlab.nn.utils: clipping, and parameters as one vector."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
from torchlab import nn
from torchlab.nn import utils


def parameters():
    a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    a.grad, b.grad = torch.tensor([3.0, 0.0]), torch.tensor([-4.0])
    return [a, b, nn.Parameter(torch.zeros(1))]


def test_clip_by_norm():
    ps = parameters()
    assert utils.clip_grad_norm_(ps, 2.5).item() == 5.0
    assert ps[0].grad.tolist() == pytest.approx([1.5, 0.0], rel=1e-5)
    assert ps[1].grad.tolist() == pytest.approx([-2.0], rel=1e-5)
    ps = parameters()
    utils.clip_grad_norm_(ps, 10.0)
    assert ps[1].grad.tolist() == [-4.0]
    for order, norm in ((1, 7.0), (math.inf, 4.0)):
        assert utils.clip_grad_norm_(parameters(), 100.0, norm_type=order).item() == norm
    assert utils.clip_grad_norm_([], 1.0).item() == 0.0
    assert utils.clip_grad_norm_(parameters()[0], 1.0).item() == 3.0


def test_a_norm_that_is_not_finite():
    ps = parameters()
    ps[0].grad[0] = math.inf
    with pytest.raises(RuntimeError, match="total norm of order 2.0 .* is non-finite"):
        utils.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True)
    assert ps[1].grad.tolist() == [-4.0]


def test_clip_by_value():
    ps = parameters()
    utils.clip_grad_value_(ps, 1.0)
    assert ps[0].grad.tolist() == [1.0, 0.0] and ps[1].grad.tolist() == [-1.0]


def test_vector_and_back():
    m = nn.Linear(2, 1)
    utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), m.parameters())
    assert m.weight.tolist() == [[1.0, 2.0]] and m.bias.tolist() == [3.0]
    vector = utils.parameters_to_vector(m.parameters())
    assert vector.tolist() == [1.0, 2.0, 3.0]
    vector.sum().backward()
    assert m.weight.grad.tolist() == [[1.0, 1.0]]
    with pytest.raises(TypeError, match="expected torch.Tensor, but got: list"):
        utils.vector_to_parameters([1.0], m.parameters())
