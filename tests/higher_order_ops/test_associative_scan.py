"""Scans with functions; values are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import torchlab as torch
from torchlab._higher_order_ops import associative_scan


def scan(function: Any, xs: Any, dim: Any = 0, **kwargs: Any) -> Any:
    return associative_scan(function, xs, dim, combine_mode="generic", **kwargs)


def add(a: Any, b: Any) -> Any:
    return a + b


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_sums(n: int) -> None:
    x = torch.arange(float(n))
    assert torch.equal(scan(add, x), x.cumsum(0))
    assert torch.equal(scan(add, x, reverse=True), x.flip(0).cumsum(0).flip(0))
    y = torch.arange(3.0 * n).view(3, n)
    assert torch.equal(scan(add, y, -1), y.cumsum(1))


def test_trees_and_matrices() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(7, 3, dtype=torch.float64), torch.randn(7, 3, dtype=torch.float64)

    def step(a: Any, b: Any) -> Any:  # of h ← x h + y
        return a[0] * b[0], b[0] * a[1] + b[1]

    products, states = scan(step, (x, y))
    torch.testing.assert_close(products, x.cumprod(0))
    h = torch.zeros(3, dtype=torch.float64)
    for i in range(7):
        h = x[i] * h + y[i]
        torch.testing.assert_close(states[i], h)
    found = scan(lambda a, b: {"u": a["u"] * b["u"]}, {"u": x})
    torch.testing.assert_close(found, {"u": x.cumprod(0)})
    m = torch.randn(4, 2, 2, dtype=torch.float64)
    torch.testing.assert_close(scan(lambda a, b: a @ b, m)[3], m[0] @ m[1] @ m[2] @ m[3])


def test_gradients() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    scan(lambda a, b: a * b, x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [9.0, 4.0, 2.0]


def test_refusals() -> None:
    x = torch.ones(7, 3)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: scan(3, x), ValueError, "Combine_fn must be a callable, but got 3"),
        (lambda: scan(add, x, 5), IndexError, r"range of \[-2, 1\], but got 5"),
        (lambda: scan(add, x, 1.5), ValueError, "Dim must be an int, but got <class 'float'>"),
        (lambda: scan(add, x, reverse=1), RuntimeError, "Reverse must be a bool"),
        (lambda: scan(add, torch.ones(0, 3)), ValueError, "scan dimension > 0"),
        (lambda: scan(lambda a, b: (a, b), x), AssertionError, "expected 2, but got 4"),
        (lambda: associative_scan(add, x, 0), ValueError, "need to be on CUDA or XPU"),
        (lambda: associative_scan(add, x, 0, combine_mode="x"), ValueError, "but got x"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
