"""Products: values, types, and gradients with none, one and two zeros."""

from __future__ import annotations

import pytest

import torchlab as tl


def gradients(f, values, weights):
    x = tl.tensor(values, dtype=tl.float64).requires_grad_()
    (first,) = tl.autograd.grad(f(x), x, create_graph=True)
    w = tl.tensor(weights, dtype=tl.float64)
    (second,) = tl.autograd.grad((first * w).sum(), x)
    return first.tolist(), second.tolist()


def test_values_and_types():
    x = tl.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.prod().item() == 24 and x.prod(0).tolist() == [3, 8]
    assert x.prod(1, keepdim=True).tolist() == [[2], [12]]
    assert tl.tensor([200, 100], dtype=tl.uint8).prod().item() == 20000
    assert tl.tensor([True, False]).prod().dtype is tl.int64
    assert tl.tensor([1.0, 2.0, 3.0], dtype=tl.float16).prod().dtype is tl.float16
    assert tl.empty(0).prod().item() == 1 and tl.empty(0, 2).prod(0).tolist() == [1, 1]
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        x.prod((0, 1))


@pytest.mark.parametrize(
    ("values", "first", "second"),
    [  # second: Σⱼ wⱼ Π of the others but i and j, with w = (1, 10, 100)
        ([2.0, 3.0, 5.0], [15, 10, 6], [10 * 5 + 100 * 3, 5 + 100 * 2, 3 + 10 * 2]),
        ([2.0, 0.0, 5.0], [0, 10, 0], [10 * 5, 5 + 100 * 2, 10 * 2]),
        ([2.0, 0.0, 0.0], [0, 0, 0], [0, 100 * 2, 10 * 2]),
    ],
)
def test_gradient_of_prod(values, first, second):
    for f in (lambda x: x.prod(), lambda x: x.reshape(1, 3).prod(1).sum()):
        got = gradients(f, values, [1.0, 10.0, 100.0])
        assert got[0] == pytest.approx(first) and got[1] == pytest.approx(second)


def test_running_products():
    x = tl.tensor([[1, 2, 3], [4, 5, 6]])
    assert x.cumprod(1).tolist() == [[1, 2, 6], [4, 20, 120]]
    assert x.cumprod(0).tolist() == [[1, 2, 3], [4, 10, 18]]
    y = tl.tensor([2.0, 3.0])
    assert y.cumprod_(0) is y and y.tolist() == [2, 6]


@pytest.mark.parametrize(
    ("values", "first"),
    [  # of y₀ + y₁ + y₂ = a + ab + abc: (1 + b + bc, a + ac, ab)
        ([2.0, 3.0, 5.0], [19, 12, 6]),
        ([2.0, 0.0, 5.0], [1, 12, 0]),
        ([0.0, 0.0, 5.0], [1, 0, 0]),
        ([0.0, 3.0, 0.0], [4, 0, 0]),
    ],
)
def test_gradient_of_cumprod(values, first):
    a, b, c = values
    # second, with w = (1, 10, 100): Hessian ((0, 1 + c, b), (1 + c, 0, a), (b, a, 0))
    second = [10 * (1 + c) + 100 * b, (1 + c) + 100 * a, b + 10 * a]
    got = gradients(lambda x: x.cumprod(0).sum(), values, [1.0, 10.0, 100.0])
    assert got[0] == pytest.approx(first) and got[1] == pytest.approx(second)


@pytest.mark.parametrize(("value", "second"), [([0.5], 0.0), ([0.0], None)])
def test_the_gradient_of_a_product_of_one_element(value, second):
    """As PyTorch's it depends on the element, by a quotient, unless that is 0."""
    x = tl.tensor(value, requires_grad=True)
    w = tl.ones(1, requires_grad=True)
    (g,) = tl.autograd.grad(x.prod(0, keepdim=True), x, w, create_graph=True)
    assert g.tolist() == [1]
    (again,) = tl.autograd.grad(g.sum(), x, allow_unused=True)
    assert again is None if second is None else again.tolist() == [second]
