"""Sums of products are rounded once in float32, and numbers beside 16-bit floats."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import torchlab as torch

RNG = np.random.default_rng(3)
A, B, C = (RNG.standard_normal(200).astype(np.float32) for _ in range(3))
F = np.float32


def exact_sum(a: Any, b: Any, c: Any) -> list[Fraction]:
    """a + b · c without any rounding."""
    rows = [[Fraction(float(v)) for v in row] for row in zip(a, b, c, strict=True)]
    return [x + y * z for x, y, z in rows]


def assert_rounded_once(result: Any, exact: list[Fraction]) -> None:
    """No float32 number is nearer to `exact` than `result`."""
    found = result.numpy()
    half = np.spacing(np.abs(found)).astype(np.float64) / 2
    for r, e, h in zip(found, exact, half, strict=True):
        assert abs(Fraction(float(r)) - e) <= Fraction(float(h))


@pytest.mark.parametrize("alpha", [0.3, -0.7, 1e-3])
def test_sums_of_products_are_rounded_once(alpha: float) -> None:
    a, b, c = (torch.from_numpy(x) for x in (A, B, C))
    factor = np.full(200, alpha, F)
    assert_rounded_once(torch.add(a, b, alpha=alpha), exact_sum(A, B, factor))
    assert_rounded_once(torch.sub(a, b, alpha=alpha), exact_sum(A, B, -factor))
    assert_rounded_once(torch.rsub(b, a, alpha=alpha), exact_sum(A, B, -factor))
    assert_rounded_once(a.clone().add_(b, alpha=alpha), exact_sum(A, B, factor))
    assert_rounded_once(torch.addcmul(a, b, c, value=alpha), exact_sum(A, B * F(alpha), C))
    assert_rounded_once(torch.addcmul(a, b, c), exact_sum(A, B, C))
    step = (B - A).astype(F)
    near = abs(alpha) < 0.5
    share = factor if near else (factor - F(1)).astype(F)
    assert_rounded_once(torch.lerp(a, b, alpha), exact_sum(A if near else B, share, step))


def test_quotients_are_scaled_first() -> None:
    a, b, c = (torch.from_numpy(x) for x in (A, B, C))
    found = torch.addcdiv(a, b, c, value=0.3).numpy()
    assert np.array_equal(found, A + F(0.3) * B / C)


def test_lerp_is_exact_at_both_ends() -> None:
    a, b = torch.from_numpy(A), torch.from_numpy(B)
    assert torch.lerp(a, b, 0.0).equal(a)
    assert torch.lerp(a, b, 1.0).equal(b)
    assert torch.lerp(a, b, torch.ones(200)).equal(b)


def test_other_types_scale_as_before() -> None:
    x = torch.tensor([250, 3], dtype=torch.uint8)
    assert torch.sub(x, torch.tensor([1, 2], dtype=torch.uint8), alpha=3).tolist() == [247, 253]
    z = torch.tensor([1 + 2j])
    assert torch.sub(z, z, alpha=2).tolist() == [-1 - 2j]
    assert torch.add(torch.tensor([True]), torch.tensor([True]), alpha=True).tolist() == [True]


def test_a_weight_of_lerp_in_16_bits() -> None:
    """PyTorch rounds a tensor to the type of the others, a number not."""
    a = torch.tensor([0.1, 1.0, 2.3, -4.0], dtype=torch.bfloat16)
    b = torch.tensor([1.0, 2.0, 3.0, -1.7], dtype=torch.bfloat16)
    assert torch.lerp(a, b, 0.3).tolist() == [0.369140625, 1.296875, 2.5, -3.3125]
    rounded = [0.37109375, 1.296875, 2.515625, -3.3125]
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        assert torch.lerp(a, b, torch.tensor(0.3, dtype=dtype)).tolist() == rounded


def test_rsub_takes_its_strides_from_the_minuend_first() -> None:
    a = torch.zeros(5, 5, 4)
    b = torch.zeros(5, 4, 5).permute(2, 0, 1)
    assert torch.rsub(a, b).stride() == torch.rsub(a, b, alpha=2).stride() == (1, 20, 5)
    assert torch.rsub(b, a).stride() == torch.sub(a, b).stride() == (20, 4, 1)


def test_numbers_alone_into_a_target() -> None:
    out = torch.zeros(3)
    assert torch.add(2, 3, out=out.resize_(0)) is out
    assert out.shape == () and out.item() == 5
    assert torch.div(1, 4, out=torch.zeros(())).item() == 0.25
    assert torch.mul(2, 3, out=torch.zeros((), dtype=torch.int64)).dtype is torch.int64
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        torch.true_divide(2, 3, out=torch.zeros((), dtype=torch.int64))


def test_complex_sums_multiply_by_a_complex_alpha() -> None:
    one, infinite = torch.tensor([1 + 0j]), torch.tensor([complex(math.inf, 0)])
    for r in (one + infinite, torch.add(one, infinite), one.clone().add_(infinite)):
        assert r.real.item() == math.inf and math.isnan(r.imag.item())
    with torch.inference_mode():
        assert math.isnan((torch.tensor([1 + 0j]) + infinite).imag.item())


def test_gradient_of_a_sum_with_a_complex_alpha() -> None:
    a, b = (torch.tensor([1 + 2j, 3 - 1j], requires_grad=True) for _ in range(2))
    g = torch.tensor([1 + 1j, 2j])
    assert torch.autograd.grad(torch.add(a, b, alpha=1j), b, g)[0].tolist() == [1 - 1j, 2 + 0j]
    assert torch.autograd.grad(torch.sub(a, b, alpha=1j), b, g)[0].tolist() == [-1 + 1j, -2 + 0j]
    r = a.index_add(0, torch.tensor([1, 0]), b, alpha=1j)
    assert torch.autograd.grad(r, b, g)[0].tolist() == [2 + 0j, 1 - 1j]


@pytest.mark.parametrize("call", [torch.add, torch.sub, torch.Tensor.add_, torch.Tensor.sub_])
def test_a_true_alpha_is_for_truth_values(call: Any) -> None:
    for dtype in (torch.float32, torch.int64, torch.complex64):
        x = torch.ones(2, dtype=dtype)
        for other in (x.clone(), 1):
            with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean"):
                call(x, other, alpha=True)
    x = torch.tensor([True, False])
    assert torch.add(x, x, alpha=True).tolist() == [True, False]


def test_gradient_of_sgn_where_its_result_was_overwritten() -> None:
    x = torch.tensor([0.25 - 1j, 3 + 4j], dtype=torch.complex128, requires_grad=True)
    y = x.sgn()
    y.data.zero_()
    (g,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert g.real.tolist() == [0.48507125007266594, 0.1]  # g / (2 |x|)


def test_gradient_of_sinc_far_out_and_near_zero() -> None:
    x = torch.tensor([2e120, 1e160, 1e-200, 0.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(x.sinc().sum(), x)
    assert g.tolist() == [4.821339407948681e-121, -0.0, 0.0, 0.0]


def test_lgamma_of_subnormal_numbers() -> None:
    x = torch.tensor([5e-324, -5e-324, 1e-310], dtype=torch.float64)
    assert x.lgamma().tolist() == [744.4400719213812, 744.4400719213812, 713.8013788281542]
