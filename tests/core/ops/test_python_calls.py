"""Methods that call Python functions, questions, old names."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as torch


def test_apply_and_map() -> None:
    x = torch.arange(6.0).reshape(2, 3).t()
    assert x.apply_(lambda v: v * 2) is x
    assert x.tolist() == [[0, 6], [2, 8], [4, 10]]
    x.map_(torch.tensor([1.0, 2.0]), lambda a, b: a + b)
    assert x.tolist() == [[1, 8], [3, 10], [5, 12]]
    x.map2_(x.clone(), torch.ones(3, 2), lambda a, b, c: a - b + c)
    assert x.eq(1).all()
    assert torch.zeros(2, dtype=torch.int64).apply_(lambda v: v + 1.5).tolist() == [1, 1]
    assert torch.ones(2, dtype=torch.bfloat16).apply_(lambda v: v / 2).tolist() == [0.5, 0.5]


def test_a_failed_call_changes_nothing() -> None:
    x = torch.arange(3.0)
    version = x._version

    def fails(v: float) -> float:
        if v == 1:
            raise KeyError("no")
        return v + 1

    with pytest.raises(KeyError):
        x.apply_(fails)
    for call in (
        lambda: x.apply_(lambda v: "a"),
        lambda: x.apply_(3),
        lambda: x.map_(torch.ones(3).int(), lambda a, b: a),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(RuntimeError, match="size"):
        x.map_(torch.ones(4), lambda a, b: a)
    assert x.tolist() == [0, 1, 2] and x._version == version
    with pytest.raises(RuntimeError, match="detach"):
        torch.ones(2, requires_grad=True).apply_(lambda v: v)


def test_questions() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert x.is_set_to(x.view(2, 3)) and not x.is_set_to(x[:1])
    assert torch.is_same_size(x, x + 1) and not x.is_same_size(x[0])
    assert torch.numel(x) == 6 and torch.is_floating_point(x) and not torch.is_complex(x)
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        torch.is_complex(3)
    assert torch.result_type(torch.ones(2, dtype=torch.int8), 3.0) is torch.float32
    assert torch.result_type(1, 2j) is torch.complex64
    assert torch.typename(x) == "torch.FloatTensor"


def test_dim_order() -> None:
    x = torch.empty(2, 3, 4, 5, memory_format=torch.channels_last)
    assert x.dim_order() == (0, 2, 3, 1)
    assert x.permute(3, 0, 1, 2).dim_order() == (1, 3, 0, 2)
    with pytest.raises(RuntimeError, match="unique"):
        torch.empty(1, 2).dim_order(ambiguity_check=True)
    formats = [torch.contiguous_format, torch.channels_last]
    assert torch.empty(1, 2).dim_order(ambiguity_check=formats) == (0, 1)


def test_shifts_and_division_from_the_right() -> None:
    x = torch.arange(4)
    assert (1 << x).tolist() == [1, 2, 4, 8]
    assert (16 >> x).tolist() == [16, 8, 4, 2]
    assert torch.tensor([2.0, 4.0]).__rdiv__(8).tolist() == [4, 2]


def test_old_names_warn() -> None:
    with pytest.warns(UserWarning, match="resize"):
        assert torch.zeros(4).resize(2, 2).shape == (2, 2)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="9 elements"):
        torch.zeros(4).resize(3, 3)
    x = torch.zeros(2, requires_grad=True)
    with torch.no_grad():
        assert x.module_load(torch.ones(2)).tolist() == [1, 1] == x.tolist()


def test_new_takes_type_and_device_from_the_tensor() -> None:
    x = torch.ones(2, dtype=torch.int32)
    assert x.new([1, 2]).dtype is torch.int32
    assert x.new(3, 4).shape == (3, 4)
    assert x.new().shape == (0,)
    with pytest.raises(TypeError, match="sequence"):
        x.new(2.5)


def test_numpy_functions_give_tensors() -> None:
    x, a = torch.ones(3), np.arange(3.0)
    for result in (np.add(a, x), np.add(x, a), np.sin(x), x + a):
        assert isinstance(result, torch.Tensor)
    assert np.isnan(x).dtype is torch.uint8
    assert isinstance(np.asarray(x), np.ndarray)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)


def test_divisions_from_the_right_ask_the_first_operand() -> None:
    for name in ("__rdiv__", "__rtruediv__"):
        with pytest.raises(AttributeError, match="'int' object has no attribute 'reciprocal'"):
            getattr(torch.Tensor, name)(2, torch.ones(2))
    assert torch.tensor([2.0, 4.0]).__rdiv__(1).tolist() == [0.5, 0.25]
