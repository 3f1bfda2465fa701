"""torchlab.nn.parameter: Parameter and Buffer."""

from __future__ import annotations

import copy
import pickle

import pytest

import torchlab as torch
from torchlab import nn


def test_a_parameter_shares_memory_and_version_with_its_data():
    data = torch.ones(3)
    p = nn.Parameter(data)
    assert p.requires_grad and p.is_leaf and p.data_ptr() == data.data_ptr()
    data.add_(1)
    assert p.tolist() == [2.0, 2.0, 2.0] and p._version == 1


def test_data_without_history():
    x = torch.ones(2, requires_grad=True)
    p = nn.Parameter(x * 2, requires_grad=False)
    assert p.is_leaf and p.grad_fn is None and not p.requires_grad
    assert nn.Parameter().shape == (0,)


def test_what_cannot_be_a_parameter():
    with pytest.raises(TypeError, match="has to be a Tensor, but got int"):
        nn.Parameter(3)
    with pytest.raises(
        RuntimeError, match="floating point and complex dtype can require gradients"
    ):
        nn.Parameter(torch.ones(2, dtype=torch.int64))
    assert nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False).dtype is torch.int64


def test_repr():
    p = nn.Parameter(torch.tensor([1.0, 2.0]))
    assert repr(p) == "Parameter containing:\ntensor([1., 2.], requires_grad=True)"


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies(copier):
    p = nn.Parameter(torch.tensor([1.0, 2.0]))
    p.grad = torch.ones(2)
    c = copier(p)
    assert type(c) is nn.Parameter and c.requires_grad and c.grad is None
    assert c.tolist() == [1.0, 2.0] and c.data_ptr() != p.data_ptr()


def test_results_are_plain_tensors():
    p = nn.Parameter(torch.ones(2))
    assert type(p + 1) is torch.Tensor and type(p.detach()) is torch.Tensor


def test_a_subclass_of_tensor_stays_one_and_is_registered():
    class Tagged(torch.Tensor):
        pass

    p = nn.Parameter(torch.ones(2).as_subclass(Tagged))
    m = nn.Module()
    m.p = p
    assert type(p) is Tagged and list(m._parameters) == ["p"]


def test_buffer():
    b = nn.Buffer(torch.ones(2), persistent=False)
    assert type(b) is torch.Tensor and isinstance(b, nn.Buffer) and not b.persistent
    assert not isinstance(torch.ones(2), nn.Buffer)
    with pytest.raises(TypeError, match="Buffer data has to be a Tensor"):
        nn.Buffer([1.0])
