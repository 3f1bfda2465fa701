"""Names, missing and wrong arguments of the generated calls."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import torchlab as torch
import torchlab.nn.functional as F

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def test_numpys_names() -> None:
    assert torch.add(x1=x, x2=x).tolist() == (x + x).tolist()
    assert torch.sum(a=x, axis=0, keepdims=True).tolist() == [[4.0, 6.0]]
    assert x.cumsum(axis=1).tolist() == [[1.0, 3.0], [3.0, 7.0]]
    assert torch.softmax(x=x, axis=1).tolist() == torch.softmax(x, 1).tolist()
    assert x.max(axis=0).values.tolist() == [3.0, 4.0]
    assert torch.squeeze(x[None], axis=0).shape == (2, 2)


def test_what_pytorch_wrote_in_python_takes_its_own_names_only() -> None:
    for call in (torch.norm, torch.split):
        with pytest.raises(TypeError):
            call(x, 1, axis=0)
    with pytest.raises(TypeError):
        F.softmax(x, axis=0)


def test_a_name_cannot_come_twice() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'x1'"):
        torch.add(x, x, x1=x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        torch.sum(x, dim=0, axis=0)


def test_signatures_do_not_show_it() -> None:
    shown = inspect.signature(torch.cumsum)
    assert str(shown) == "(input, dim, *, dtype=None, out=None)"
    assert shown.parameters["input"].default is inspect.Parameter.empty


def test_sizes_by_position_as_a_sequence_and_by_name() -> None:
    for t in (x.view(4), x.view((4,)), x.view(size=(4,)), x.reshape([4]), x.reshape(shape=[4])):
        assert t.tolist() == [1.0, 2.0, 3.0, 4.0]
    for t in (x.permute(1, 0), x.permute([1, 0]), x.permute(dims=(1, 0))):
        assert t.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    for t in (torch.zeros(2, 3), torch.zeros([2, 3]), torch.zeros(size=(2, 3))):
        assert t.shape == (2, 3)
    assert x.new_ones(size=(3,)).shape == x.flip(dims=(0,)).sum(1).new_ones(3).shape == (3,)
    assert x[None].squeeze(0, 1).shape == (2, 2)
    assert [t.shape[1] for t in torch.ones(1, 4).hsplit(1, 3)] == [1, 2, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.add(), 'add() missing 2 required positional arguments: "input", "other"'),
        (lambda: torch.cumsum(x), 'cumsum() missing 1 required positional argument: "dim"'),
        (lambda: torch.add(x, x, foo=1), "add() got an unexpected keyword argument 'foo'"),
        (lambda: torch.mm(x, 3), "mm(): argument 'mat2' (position 2) must be Tensor, not int"),
        (lambda: torch.topk(x, "a"), "topk(): argument 'k' (position 2) must be int, not str"),
        (lambda: x.topk(1.5), "topk(): argument 'k' (position 1) must be int, not float"),
        (lambda: torch.add(x, x, alpha="a"), "add(): argument 'alpha' must be Number, not str"),
        (lambda: x.add_(x, alpha="a"), "add(): argument 'alpha' must be Number, not str"),
        (lambda: torch.sum(x, [1.5]), "must be tuple of ints, but found element of type float"),
        (lambda: torch.sum(x, dtype=3), "sum(): argument 'dtype' must be torch.dtype, not int"),
        (lambda: torch.cholesky(x, "a"), "cholesky(): argument 'upper' (position 2) must be bool"),
        (lambda: torch.std("a"), "std(): argument 'input' (position 1) must be Tensor, not str"),
        (lambda: F.conv1d(x, "a"), "conv1d(): argument 'weight' (position 2) must be Tensor"),
        (lambda: torch.zeros(2, dtype="a"), "argument 'dtype' must be torch.dtype, not str"),
        (lambda: torch.zeros("a"), "zeros(): argument 'size' must be tuple of ints"),
        (lambda: x.view(), "view() received no arguments"),
    ],
)
def test_wrong_calls(call: Any, message: str) -> None:
    before = x.tolist()
    with pytest.raises(TypeError, match=re.escape(message)):
        call()
    assert x.tolist() == before


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError):
        torch.mm(x, torch.ones(3, 3))
    with pytest.raises(IndexError):
        torch.sum(x, 5)


def test_writes_that_are_methods_only() -> None:
    assert hasattr(torch.Tensor, "add_")
    assert not hasattr(torch, "add_")
    assert not hasattr(torch.Tensor, "rsub")
    assert torch.exp_(x.clone()).tolist() == x.exp().tolist()


def test_tags() -> None:
    assert torch.Tag.pointwise in torch.ops.aten.add.Tensor.tags
    assert torch.ops.aten.add_.Tensor.tags == [torch.Tag.inplace, torch.Tag.pointwise]
    assert int(torch.Tag.reduction) == 18
    assert repr(torch.Tag.core) == "<Tag.core: 0>"
