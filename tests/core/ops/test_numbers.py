"""Python numbers beside tensors: what they become, when they wrap around, when they are refused.

Source: https://docs.pytorch.org/docs/2.13/tensor_attributes.html#torch.dtype
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import torchlab as torch

U8 = [1, 2, 253]


def bytes_() -> torch.Tensor:
    return torch.tensor(U8, dtype=torch.uint8)


def test_an_operand_wraps_around_as_in_c() -> None:
    assert (bytes_() * 300).tolist() == [x * 300 % 256 for x in U8]
    assert (bytes_() == -3).tolist() == [False, False, True]
    assert (bytes_() < 300).tolist() == [x < 300 % 256 for x in U8]


@pytest.mark.parametrize("alpha", [-3, -255])
def test_a_negative_factor_wraps_around_in_an_unsigned_type(alpha: int) -> None:
    x = bytes_()
    assert torch.add(x, x, alpha=alpha).tolist() == [(v + alpha * v) % 256 for v in U8]
    assert torch.addcmul(x, x, x, value=alpha).tolist() == [(v + alpha * v * v) % 256 for v in U8]


REFUSED = {
    "alpha": lambda x: torch.add(x, x, alpha=300),
    "addmm": lambda x: torch.addmm(x[:, None], x[:, None], x[None], beta=300),
    "fill_": lambda x: x.fill_(300),
    "clamp": lambda x: x.clamp(0, 300),
    "masked_fill": lambda x: x.masked_fill(x > 1, 300),
    "where": lambda x: torch.where(x > 1, x, 300),
    "scatter": lambda x: x.scatter(0, torch.tensor([0]), 300),
    "index_fill": lambda x: x.index_fill(0, torch.tensor([0]), 300),
    "pad": lambda x: torch.nn.functional.pad(x, (1, 1), value=300),
    "full": lambda x: torch.full_like(x, 300),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_number_argument_that_does_not_fit_is_refused(name: str) -> None:
    x = bytes_()
    with pytest.raises(RuntimeError, match="cannot be converted to type uint8_t without overflow"):
        REFUSED[name](x)
    assert x.tolist() == U8


@pytest.mark.parametrize(
    ("dtype", "value", "name"),
    [
        ("float16", -1e9, "c10::Half"),
        ("bfloat16", 1e39, "c10::BFloat16"),
        ("float32", 1e39, "float"),
        ("int32", 2**40, "int"),
    ],
)
def test_a_mask_is_not_filled_with_what_does_not_fit(dtype: str, value: float, name: str) -> None:
    x = torch.ones(2).to(getattr(torch, dtype))
    _ = (x * value) if x.is_floating_point() else None  # an operand may become infinite
    with pytest.raises(RuntimeError, match=f"type {name} without overflow"):
        x.masked_fill(torch.tensor([True, False]), value)
    with pytest.raises(RuntimeError, match=f"type {name} without overflow"):
        x.clamp_min(value)


@pytest.mark.parametrize("half", [ml_dtypes.bfloat16, np.float16])
def test_a_factor_of_16_bit_floats_is_not_rounded_but_an_addend_is(half: type) -> None:
    a = np.linspace(-3, 3, 501, dtype=np.float32).astype(half)
    x = torch.from_numpy(a)
    wide, exact, rounded = a.astype(np.float32), np.float32(0.1), np.float32(half(0.1))
    for got, expected in (
        (x * 0.1, wide * exact),
        (x / 0.1, wide / exact),
        (x * torch.tensor(0.1), wide * exact),
        (x.clone().mul_(0.1), wide * exact),
        (x + 0.1, wide + rounded),
        (x + torch.tensor(0.1), wide + rounded),
        (0.1 - x, rounded - wide),
        (x.lerp(-x, 0.1), wide + exact * (-wide - wide)),
    ):
        np.testing.assert_array_equal(got.numpy(), expected.astype(half))


def test_floats_outside_the_range_become_the_least_integer() -> None:
    x = torch.tensor([float("inf"), float("nan"), 3e9, -1.9])
    assert x.int().tolist()[3] == -1
    assert x.double().to(torch.uint8).tolist()[2:] == [3000000000 % 256, 255]


def test_complex_numbers_are_true_where_they_are_not_zero() -> None:
    assert torch.tensor(np.array([1j, 0]), dtype=torch.bool).tolist() == [True, False]


@pytest.mark.parametrize("data", [None, {}, [None], object()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
def test_what_is_no_number_is_refused(data: object, dtype: torch.dtype) -> None:
    with pytest.raises(TypeError):
        torch.tensor(data, dtype=dtype)


def test_lists_of_arrays_of_the_other_byte_order() -> None:
    assert torch.tensor([np.arange(3, dtype=">i4")]).tolist() == [[0, 1, 2]]


def test_the_old_constructor_shares_an_array_of_its_type() -> None:
    a = np.zeros(3, np.float32)
    torch.Tensor(a)[0] = 1
    assert a.tolist() == [1, 0, 0]


def test_there_is_one_cpu() -> None:
    x = torch.ones(2, device="cpu:3")
    assert str(x.device) == "cpu"
    assert (x + torch.ones(2)).tolist() == [2, 2]
    assert str(torch.empty(0, device="meta:1").device) == "meta"


def test_layouts_of_pointwise_results() -> None:
    x = torch.ones(3, 4).t()
    assert torch.complex(x, x).stride() == torch.polar(x, x).stride() == (1, 4)
    assert torch.fill(x, 2).stride() == (1, 4)
    wide = torch.ones(1, 3, 1, dtype=torch.bfloat16).expand(3, 3, 1)
    assert torch.frexp(wide).mantissa.stride() == (3, 1, 1)


def test_roll_and_amax_take_none_for_no_dims() -> None:
    assert torch.roll(torch.arange(3), 1, dims=None).tolist() == [2, 0, 1]
    assert torch.amax(torch.arange(3), None).item() == 2
