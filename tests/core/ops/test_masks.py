"""Masks are boolean tensors; anything else is refused, for its `~` is not "not"."""

from __future__ import annotations

import pytest

import torchlab as torch


def test_where_routes_each_gradient_to_its_side() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    torch.where(torch.tensor([True, False]), a, b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([1.0, 0.0], [0.0, 1.0])


def test_where_takes_uint8_with_a_warning_and_the_right_gradient() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="uint8"):
        torch.where(torch.tensor([1, 0], dtype=torch.uint8), a, b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([1.0, 0.0], [0.0, 1.0])


def test_other_conditions_are_refused() -> None:
    x = torch.ones(2)
    with pytest.raises(TypeError, match="must be Tensor, not bool"):
        torch.where(True, x, x)
    with pytest.raises(RuntimeError, match="expected condition to be a boolean tensor"):
        torch.where(x, x, x)
    with pytest.raises(RuntimeError, match="only supports boolean masks"):
        x.masked_fill_(x, 5.0)
    assert x.tolist() == [1.0, 1.0]


def test_a_power_with_a_number_for_an_exponent() -> None:
    x = torch.tensor([0.0, 2.0], requires_grad=True)
    (x**3).sum().backward()
    assert x.grad.tolist() == [0.0, 12.0]
