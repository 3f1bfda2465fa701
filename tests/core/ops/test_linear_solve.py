"""Solutions, inverses, determinants, ranks, powers: against NumPy and SciPy, and at singular
matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import torchlab as tl

RNG = np.random.default_rng(3)
A = RNG.standard_normal((2, 4, 4))
B = RNG.standard_normal((2, 4, 3))
SINGULAR = tl.tensor([[1.0, 2.0], [2.0, 4.0]])
BATCH = tl.stack([tl.eye(2), SINGULAR])


def test_solve():
    a, b = tl.tensor(A), tl.tensor(B)
    np.testing.assert_allclose(tl.linalg.solve(a, b).numpy(), np.linalg.solve(A, B))
    x = tl.linalg.solve(a, b.mT, left=False)
    np.testing.assert_allclose((x @ a).numpy(), B.swapaxes(-1, -2))
    v = tl.linalg.solve(a, b[..., 0])
    np.testing.assert_allclose((a @ v[..., None]).numpy()[..., 0], B[..., 0])
    assert tl.linalg.solve(a, b).stride() == (12, 1, 4)


def test_singular_matrices_are_named():
    text = "linalg.solve: The solver failed because the input matrix is singular."
    with pytest.raises(tl.linalg.LinAlgError, match=text):
        tl.linalg.solve(SINGULAR, SINGULAR)
    with pytest.raises(tl.linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 2"):
        tl.linalg.inv(BATCH)
    inverse, info = tl.linalg.inv_ex(BATCH)
    assert info.tolist() == [0, 2]
    assert inverse[0].tolist() == [[1, 0], [0, 1]]
    assert not tl.isfinite(inverse[1]).any()
    assert tl.linalg.solve_ex(BATCH, BATCH).info.dtype is tl.int32


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangles(upper, unit):
    x = tl.linalg.solve_triangular(tl.tensor(A[0]), tl.tensor(B[0]), upper=upper,
                                   unitriangular=unit)  # fmt: skip
    expected = scipy.linalg.solve_triangular(A[0], B[0], lower=not upper, unit_diagonal=unit)
    np.testing.assert_allclose(x.numpy(), expected)


def test_determinants():
    a = tl.tensor(A)
    np.testing.assert_allclose(tl.linalg.det(a).numpy(), np.linalg.det(A))
    sign, log = tl.linalg.slogdet(a)
    np.testing.assert_allclose((sign * log.exp()).numpy(), np.linalg.det(A))
    assert tl.linalg.det(tl.ones(2, 0, 0)).tolist() == [1, 1]
    assert tl.logdet(-tl.eye(3)).isnan()
    assert tl.logdet(SINGULAR).item() == -np.inf


@pytest.mark.parametrize("rank", [3, 2, 1])
def test_determinant_of_singular_matrices_has_the_cofactors_as_gradient(rank):
    m = np.diag([0.0] * (4 - rank) + [1.0, 2.0, 3.0][:rank])
    x = tl.tensor(m, requires_grad=True)
    tl.linalg.det(x).backward()
    expected = np.zeros((4, 4))
    if rank == 3:
        expected[0, 0] = 6
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-14)


def test_tensor_equations():
    a = RNG.standard_normal((6, 2, 3))
    b = RNG.standard_normal(6)
    found = tl.linalg.tensorsolve(tl.tensor(a), tl.tensor(b))
    np.testing.assert_allclose(found.numpy(), np.linalg.tensorsolve(a, b))
    inverse = tl.linalg.tensorinv(tl.tensor(a.reshape(2, 3, 6)), ind=2)
    np.testing.assert_allclose(inverse.numpy(), np.linalg.tensorinv(a.reshape(2, 3, 6), 2))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver):
    a, b = RNG.standard_normal((6, 3)), RNG.standard_normal((6, 2))
    x, residuals, rank, values = tl.linalg.lstsq(tl.tensor(a), tl.tensor(b), driver=driver)
    expected, squares, _, singular = np.linalg.lstsq(a, b, rcond=None)
    np.testing.assert_allclose(x.numpy(), expected)
    if driver != "gelsy":
        np.testing.assert_allclose(residuals.numpy(), squares)
    assert rank.tolist() == ([] if driver == "gels" else 3)
    if driver in ("gelsd", "gelss"):
        np.testing.assert_allclose(values.numpy(), singular)
    wide = tl.linalg.lstsq(tl.tensor(a.T), tl.tensor(a.T @ b), driver=driver).solution
    np.testing.assert_allclose(wide.numpy(), np.linalg.pinv(a.T) @ (a.T @ b), atol=1e-12)


def test_rank_and_pseudo_inverse():
    low = tl.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0 + 1e-9]], dtype=tl.float64)
    assert tl.linalg.matrix_rank(low).item() == 2
    assert tl.linalg.matrix_rank(low, tol=1e-6).item() == 1
    assert tl.linalg.matrix_rank(low, rtol=1e-6).item() == 1
    assert tl.linalg.matrix_rank(low, atol=tl.tensor([1e-12, 1.0, 100.0])).tolist() == [2, 1, 0]
    m = RNG.standard_normal((4, 2))
    np.testing.assert_allclose(tl.linalg.pinv(tl.tensor(m)).numpy(), np.linalg.pinv(m))
    s = m @ m.T
    np.testing.assert_allclose(
        tl.linalg.pinv(tl.tensor(s), hermitian=True, rtol=1e-10).numpy(),
        np.linalg.pinv(s, rcond=1e-10),
        atol=1e-10,
    )


@pytest.mark.parametrize("p", [None, 1, -1, 2, -2, "fro", np.inf])
def test_condition(p):
    found = tl.linalg.cond(tl.tensor(A), p)
    np.testing.assert_allclose(found.numpy(), np.linalg.cond(A, p))


def test_powers():
    a = tl.tensor(A)
    for n in (-3, 0, 1, 2, 3, 10):
        np.testing.assert_allclose(
            tl.linalg.matrix_power(a, n).numpy(), np.linalg.matrix_power(A, n), rtol=1e-8
        )
    np.testing.assert_allclose(tl.linalg.matrix_exp(a).numpy(), scipy.linalg.expm(A))
    turn = tl.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=tl.float64) * np.pi
    np.testing.assert_allclose(tl.matrix_exp(turn).numpy(), -np.eye(2), atol=1e-14)


def test_out():
    out = tl.empty(0, dtype=tl.float64)
    assert tl.linalg.inv(tl.tensor(A), out=out) is out
    np.testing.assert_allclose(out.numpy(), np.linalg.inv(A))
    sign, log = tl.empty(2, dtype=tl.float64), tl.empty(2, dtype=tl.float64)
    tl.linalg.slogdet(tl.tensor(A), out=(sign, log))
    np.testing.assert_allclose(log.numpy(), np.linalg.slogdet(A)[1])


def test_the_gradient_of_the_determinant_of_one_element_does_not_depend_on_it():
    x = tl.tensor([[[-1.5]], [[2.0]]], requires_grad=True)
    (g,) = tl.autograd.grad(tl.linalg.det(x).sum(), x, create_graph=True)
    assert g.tolist() == [[[1.0]], [[1.0]]] and not g.requires_grad
    w = tl.ones(2, requires_grad=True)
    (g,) = tl.autograd.grad(tl.linalg.det(x), x, w, create_graph=True)
    again = tl.autograd.grad(g.sum(), (x, w), allow_unused=True)
    assert again[0] is None and again[1].tolist() == [1.0, 1.0]
