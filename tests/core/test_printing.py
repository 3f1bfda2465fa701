"""Printed tensors: texts that PyTorch 2.13 shows, and the rules of the options."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from torchlab._core.printing import format_tensor, get_printoptions, printoptions, set_printoptions


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    set_printoptions(profile="default")


def show(values: Any, dtype: Any = np.float32, name: str = "", **options: Any) -> str:
    array = np.asarray(values, dtype)
    return format_tensor(array, dtype_name=f"torch.{name or array.dtype.name}", **options)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (1.5, "tensor(1.5000)"),
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.5, NAN, INF], "tensor([1.5000,    nan,    inf])"),
        ([INF, -INF, 3.0], "tensor([inf, -inf, 3.])"),
        ([NAN, 1.0], "tensor([nan, 1.])"),
        ([1e-8, 1.0], "tensor([1.0000e-08, 1.0000e+00])"),
        ([1e9, 1.0], "tensor([1.0000e+09, 1.0000e+00])"),
        ([0.0, 1e-5], "tensor([0.0000e+00, 1.0000e-05])"),
        ([12345.678], "tensor([12345.6777])"),
        ([-0.0, 0.0], "tensor([-0., 0.])"),
        ([], "tensor([])"),
        (np.zeros((2, 0, 3)), "tensor([], size=(2, 0, 3))"),
        (np.zeros(1001), "tensor([0., 0., 0.,  ..., 0., 0., 0.])"),
    ],
)
def test_float32(values: Any, text: str) -> None:
    assert show(values) == text


@pytest.mark.parametrize(
    ("values", "dtype", "text"),
    [
        (True, np.bool_, "tensor(True)"),
        ([True, False], np.bool_, "tensor([ True, False])"),
        ([1, -200], np.int64, "tensor([   1, -200])"),
        (1, np.int32, "tensor(1, dtype=torch.int32)"),
        ([2**64 - 1], np.uint64, "tensor([18446744073709551615], dtype=torch.uint64)"),
        ([], np.int64, "tensor([], dtype=torch.int64)"),
        (np.zeros((0, 3)), np.bool_, "tensor([], size=(0, 3), dtype=torch.bool)"),
        ([1.0], np.float64, "tensor([1.], dtype=torch.float64)"),
        ([1.0], ml_dtypes.bfloat16, "tensor([1.], dtype=torch.bfloat16)"),
        ([1.0, 2.5, -448.0], ml_dtypes.float8_e4m3fn,
         "tensor([   1.0000,    2.5000, -448.0000], dtype=torch.float8_e4m3fn)"),
        (1 + 2j, np.complex64, "tensor(1.+2.j)"),
        ([1 + 2j, 3.5 - 1e-9j], np.complex64,
         "tensor([1.0000+2.0000e+00j, 3.5000-1.0000e-09j])"),
    ],
)  # fmt: skip
def test_other_dtypes(values: Any, dtype: Any, text: str) -> None:
    assert show(values, dtype) == text


def test_nested_dimensions_and_lines() -> None:
    assert (
        show(np.zeros((2, 2, 2)))
        == "tensor([[[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]]])"
    )
    assert (
        show(np.arange(2000).reshape(2, 1000), np.int64)
        == "tensor([[   0,    1,    2,  ...,  997,  998,  999],\n"
        "        [1000, 1001, 1002,  ..., 1997, 1998, 1999]])"
    )
    assert (
        show(np.arange(8) / 3)
        == "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333])"
    )
    with printoptions(linewidth=30):
        assert (
            show(np.arange(8) / 3) == "tensor([0.0000, 0.3333,\n        0.6667, 1.0000,\n"
            "        1.3333, 1.6667,\n        2.0000, 2.3333])"
        )


def test_suffixes() -> None:
    assert show([1.0], requires_grad=True) == "tensor([1.], requires_grad=True)"
    assert (
        show([2.0], grad_fn_name="AddBackward0", requires_grad=True)
        == "tensor([2.], grad_fn=<AddBackward0>)"
    )
    assert (
        show([1.0], is_parameter=True, requires_grad=True)
        == "Parameter containing:\ntensor([1.], requires_grad=True)"
    )
    assert show([1.0], device="sim:0") == "tensor([1.], device='sim:0')"
    assert show([1.0], default_dtype="torch.float64") == "tensor([1.], dtype=torch.float32)"
    assert show([1j], np.complex128, default_dtype="torch.float64") == "tensor([0.+1.j])"
    assert show([1.0], prefix="Tagged") == "Tagged([1.])"
    wide = show(np.full(9, 0.25), np.float64, requires_grad=True)
    assert (
        wide == "tensor([0.2500, 0.2500, 0.2500, 0.2500, 0.2500, 0.2500, 0.2500, 0.2500, 0.2500],\n"
        "       dtype=torch.float64, requires_grad=True)"
    )


def test_without_data() -> None:
    text = format_tensor(None, shape=(2, 3), dtype_name="torch.float32", device="meta")
    assert text == "tensor(..., device='meta', size=(2, 3))"


def test_options() -> None:
    assert get_printoptions() == {
        "precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None,
    }  # fmt: skip
    set_printoptions(precision=2, sci_mode=True)
    assert show([1.0, 0.5]) == "tensor([1.00e+00, 5.00e-01])"
    set_printoptions(threshold=5, edgeitems=1)
    assert get_printoptions()["sci_mode"] is None
    assert show(np.arange(8), np.int64) == "tensor([0,  ..., 7])"
    set_printoptions(profile="full")
    assert show(np.zeros(1001)).count("0.") == 1001
    with printoptions(profile="short"):
        assert show([1 / 3]) == "tensor([0.33])"
    assert get_printoptions()["precision"] == 4


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"precision": "a"}, TypeError), ({"precision": 2.5}, TypeError),
        ({"sci_mode": "b"}, TypeError), ({"profile": "x"}, ValueError),
        ({"linewidth": 20, "edgeitems": -1}, ValueError),
    ],
)  # fmt: skip
def test_bad_options_change_nothing(options: dict[str, Any], error: type[Exception]) -> None:
    before = get_printoptions()
    with pytest.raises(error):
        set_printoptions(**options)
    assert get_printoptions() == before


def test_a_huge_tensor_is_not_read() -> None:
    # 2^40 elements that share one: converting them would take hours.
    huge = np.broadcast_to(np.float32(1), (2**20, 2**20))
    start = time.perf_counter()
    assert show(huge).count("1.") == 36
    assert time.perf_counter() - start < 5
