"""Operators with nested arguments and results."""

from __future__ import annotations

from typing import Any

import pytest

import torchlab
from torchlab.autograd import NestedIOFunction


class Mixed(NestedIOFunction):
    def forward_extended(self, pair: Any, named: Any) -> Any:
        a, b = pair
        self.save_for_backward((a, b), named)
        return a * b, {"sum": [a + named["c"]]}

    def backward_extended(self, g: Any, h: Any) -> Any:
        (a, b), named = self.saved_tensors
        (k,) = h["sum"]
        return (g * b + k, g * a), {"c": k}


class Wrong(NestedIOFunction):
    def forward_extended(self, x: Any) -> Any:
        return x[0] + x[1]

    def backward_extended(self, g: Any) -> Any:
        return g


def leaf(value: float) -> Any:
    return torchlab.tensor([value], dtype=torchlab.float64, requires_grad=True)


def test_nested_arguments_and_results() -> None:
    a, b, c = leaf(2.0), leaf(3.0), leaf(5.0)
    product, rest = Mixed()((a, b), {"c": c})
    assert product.item() == 6 and rest["sum"][0].item() == 7
    (product * 10 + rest["sum"][0]).sum().backward()
    assert [x.grad.item() for x in (a, b, c)] == [31, 20, 1]
    assert torchlab.autograd.gradcheck(
        lambda a, b, c: torchlab.cat([Mixed()((a, b), {"c": c})[0]]), (a, b, c)
    )


def test_what_is_not_defined_or_does_not_fit() -> None:
    with pytest.raises(NotImplementedError):
        NestedIOFunction()(leaf(1.0))
    with pytest.raises(RuntimeError, match="returned 1 gradients for 2 arguments"):
        Wrong()((leaf(1.0), leaf(2.0))).sum().backward()
