"""Norms: values by hand, empty tensors, and the subgradient 0 at 0."""

from __future__ import annotations

import math

import pytest

import torchlab as tl
from torchlab._core.dispatch.registry import function

INF = math.inf
vector_norm, matrix_norm, linalg_norm = (
    function(name, "linalg") for name in ("vector_norm", "matrix_norm", "norm")
)


@pytest.mark.parametrize(
    ("p", "value"),
    [
        (2, 5),
        (1, 7),
        (0, 2),
        (INF, 4),
        (-INF, 0),
        (3, (27 + 64) ** (1 / 3)),
        (0.5, (3**0.5 + 2) ** 2),
    ],
)
def test_vectors(p, value):
    x = tl.tensor([-3.0, 0.0, 4.0])
    assert vector_norm(x, p).item() == pytest.approx(value, rel=1e-6)
    assert tl.norm(x, p).item() == pytest.approx(value, rel=1e-6)
    assert vector_norm(x.reshape(3, 1).expand(3, 2), p, 0).tolist() == pytest.approx(
        [value] * 2, rel=1e-6
    )


def test_complex_and_types():
    z = tl.tensor([3 + 4j, 0j])
    assert z.norm().item() == 5 and z.norm().dtype is tl.float32
    assert z.norm(dtype=tl.complex128).dtype is tl.float64
    assert tl.ones(4, dtype=tl.float16).norm().dtype is tl.float16
    assert tl.tensor(-2.0).norm().item() == 2
    with pytest.raises(
        RuntimeError, match="Expected a floating point or complex tensor as input. Got Long"
    ):
        tl.tensor([1]).norm()
    with pytest.raises(RuntimeError, match="dtype should be real for real inputs"):
        vector_norm(tl.ones(2), dtype=tl.complex64)
    with pytest.raises(RuntimeError, match="convertible without narrowing"):
        vector_norm(tl.ones(2, dtype=tl.float64), dtype=tl.float32)


def test_nothing():
    assert tl.empty(0).norm().item() == 0 and vector_norm(tl.empty(0, 3), 1, 0).tolist() == [
        0,
        0,
        0,
    ]
    assert vector_norm(tl.empty(0, 3), INF, 1).shape == (0,)
    for p in (INF, -1):
        with pytest.raises(RuntimeError, match="does not have an identity"):
            vector_norm(tl.empty(0), p)


def test_matrices():
    m = tl.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert matrix_norm(m).item() == pytest.approx(math.sqrt(30))
    assert [matrix_norm(m, p).item() for p in (1, -1, INF, -INF)] == [6, 4, 7, 3]
    assert matrix_norm(m, 1, keepdim=True).shape == (1, 1)
    assert linalg_norm(m, INF).item() == 7 and linalg_norm(m, 1, dim=0).tolist() == [4, 6]
    assert linalg_norm(m).item() == m.norm("fro").item() == pytest.approx(math.sqrt(30))
    assert tl.norm(m, "fro", dim=1, keepdim=True).shape == (2, 1)
    with pytest.raises(RuntimeError, match="Order 3 not supported"):
        matrix_norm(m, 3)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        matrix_norm(m[0])
    with pytest.raises(RuntimeError, match="If dim is not specified but ord is"):
        linalg_norm(tl.ones(2, 2, 2), 2)


def gradient(f, values):
    x = tl.tensor(values, dtype=tl.float64).requires_grad_()
    f(x).sum().backward()
    return x.grad.tolist()


def test_a_count_has_no_gradient():
    x = tl.zeros(2, requires_grad=True)
    vector_norm(x, 0).backward()
    assert x.grad is None


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, INF])
def test_the_gradient_at_zero_is_zero(p):
    assert gradient(lambda x: vector_norm(x, p), [0.0, 0.0]) == [0, 0]


def test_gradients():
    assert gradient(lambda x: x.norm(), [3.0, -4.0]) == pytest.approx([0.6, -0.8])
    assert gradient(lambda x: x.norm(1), [3.0, -4.0]) == [1, -1]
    assert gradient(lambda x: x.norm(INF), [4.0, -4.0]) == [0.5, -0.5]
    c = 91.0 ** (-2 / 3)
    assert gradient(lambda x: x.norm(3), [3.0, -4.0]) == pytest.approx([9 * c, -16 * c])
    assert gradient(
        lambda x: tl.dist(x, tl.zeros(2, dtype=tl.float64)), [3.0, -4.0]
    ) == pytest.approx([0.6, -0.8])
    x = tl.zeros(2).requires_grad_()
    (d,) = tl.autograd.grad(x.norm(), x, create_graph=True)
    (h,) = tl.autograd.grad(d.sum(), x)
    assert h.isnan().all()


def test_dist():
    assert tl.dist(tl.tensor([1.0, 2.0]), tl.tensor([4.0, 6.0])).item() == 5
    assert tl.dist(tl.ones(2, 2), tl.zeros(2), 1).item() == 4
