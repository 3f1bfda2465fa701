"""Matrix products that add, products of vectors, chains: values by hand and from NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as tl

RNG = np.random.default_rng(7)
A, B = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((2, 4, 5))


def test_beta_zero_does_not_read_what_was_there():
    nan = tl.full((3, 5), float("nan"), dtype=tl.float64)
    a, b = tl.tensor(A[0]), tl.tensor(B[0])
    np.testing.assert_allclose(tl.addmm(nan, a, b, beta=0).numpy(), A[0] @ B[0])
    batch = tl.full((2, 3, 5), float("nan"), dtype=tl.float64)
    r = tl.baddbmm(batch, tl.tensor(A), tl.tensor(B), beta=0, alpha=2)
    np.testing.assert_allclose(r.numpy(), 2 * A @ B)
    total = tl.addbmm(nan, tl.tensor(A), tl.tensor(B), beta=0)
    np.testing.assert_allclose(total.numpy(), (A @ B).sum(0))
    v = tl.tensor(B[0][:, 0])
    np.testing.assert_allclose(tl.addmv(nan[:, 0], a, v, beta=0).numpy(), A[0] @ B[0][:, 0])
    outer = tl.addr(nan, a[:, 0], tl.tensor(B[0][0]), beta=0)
    np.testing.assert_allclose(outer.numpy(), np.outer(A[0][:, 0], B[0][0]))


def test_in_place_forms_write_into_self():
    c = tl.ones(3, 5, dtype=tl.float64)
    assert c.addmm_(tl.tensor(A[0]), tl.tensor(B[0]), beta=3, alpha=2) is c
    np.testing.assert_allclose(c.numpy(), 3 + 2 * A[0] @ B[0])
    with pytest.raises(RuntimeError, match="doesn't match"):
        tl.ones(5, dtype=tl.float64).addmm_(tl.tensor(A[0]), tl.tensor(B[0]))


@pytest.mark.parametrize("dtype", [tl.int8, tl.uint8, tl.int32, tl.int64])
def test_integers_wrap_around(dtype):
    a = tl.full((2, 3), 100).to(dtype)
    assert a.dtype is dtype
    r = a @ a.t()
    assert r.dtype is dtype
    np.testing.assert_array_equal(r.numpy(), (a.numpy() @ a.numpy().T))


def test_truth_values_have_no_products():
    a = tl.ones(2, 2, dtype=tl.bool)
    for call in (lambda: a @ a, lambda: tl.addmm(a, a, a), lambda: a @ a[0], lambda: a[0] @ a[0]):
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            call()
    assert tl.addr(~a, a[0], a[0]).all()


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16])
def test_16_bit_products_are_summed_in_float32(dtype):
    a = tl.ones(1, 4096, dtype=dtype)
    assert (a @ a.t()).item() == 4096  # a float16 sum would stop at 2048
    assert (a[0] @ a[0]).item() == 4096


def test_cross():
    x, y = tl.tensor([1.0, 0, 0]), tl.tensor([0.0, 1, 0])
    assert tl.linalg.cross(x, y).tolist() == [0, 0, 1]
    a, b = RNG.standard_normal((2, 4, 3))
    np.testing.assert_allclose(tl.linalg.cross(tl.tensor(a), tl.tensor(b)).numpy(), np.cross(a, b))
    with pytest.raises(RuntimeError, match="must have length 3"):
        tl.linalg.cross(tl.ones(2), tl.ones(2))


def test_kron_inner_vdot_tensordot():
    a, b = RNG.standard_normal((2, 3)), RNG.standard_normal((4, 1, 2))
    np.testing.assert_allclose(tl.kron(tl.tensor(a), tl.tensor(b)).numpy(), np.kron(a, b))
    np.testing.assert_allclose(tl.inner(tl.tensor(a), tl.tensor(a)).numpy(), np.inner(a, a))
    z = np.array([1 + 2j, 3 - 1j])
    assert tl.vdot(tl.tensor(z), tl.tensor(z)).item() == np.vdot(z, z)
    t = tl.tensordot(tl.tensor(A), tl.tensor(B), dims=([0, 2], [0, 1]))
    np.testing.assert_allclose(t.numpy(), np.tensordot(A, B, ([0, 2], [0, 1])))
    one = tl.tensordot(tl.ones(1, 2), tl.ones(3, 2), dims=([0], [0]))  # 1 goes with 3
    assert one.tolist() == [[3, 3], [3, 3]]


def test_chains_take_the_cheapest_order():
    parts = [RNG.standard_normal(s) for s in ((10, 2), (2, 30), (30, 3), (3,))]
    r = tl.linalg.multi_dot([tl.tensor(p) for p in parts])
    np.testing.assert_allclose(r.numpy(), np.linalg.multi_dot(parts))
    with pytest.raises(RuntimeError, match="at least 2 tensors"):
        tl.linalg.multi_dot([tl.ones(2, 2)])
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        tl.linalg.multi_dot([tl.ones(2, 2), tl.ones(3, 2)])


def test_distances_of_all_pairs():
    x, y = RNG.standard_normal((30, 3)), RNG.standard_normal((4, 3))
    difference = x[:, None] - y
    for p in (0.5, 1.0, 2.0, 3.0, np.inf):
        expected = np.linalg.norm(difference, ord=p, axis=-1)
        found = tl.cdist(tl.tensor(x), tl.tensor(y), p=p)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)
    i, j = np.triu_indices(4, 1)
    np.testing.assert_allclose(
        tl.pdist(tl.tensor(y)).numpy(), np.linalg.norm(y[i] - y[j], axis=1), rtol=1e-12
    )
    near = tl.tensor(y, requires_grad=True)
    tl.cdist(near, near).sum().backward()  # the distance of a row to itself has the subgradient 0
    assert tl.isfinite(near.grad).all()


def test_covariances():
    x = RNG.standard_normal((3, 6))
    f, a = np.array([1, 2, 1, 3, 1, 2]), RNG.random(6)
    found = tl.cov(tl.tensor(x), fweights=tl.tensor(f), aweights=tl.tensor(a))
    np.testing.assert_allclose(found.numpy(), np.cov(x, fweights=f, aweights=a))
    np.testing.assert_allclose(tl.corrcoef(tl.tensor(x)).numpy(), np.corrcoef(x))


def test_trapezoids_and_differences():
    x = np.sort(RNG.random(7))
    y = RNG.standard_normal((2, 7))
    t = tl.tensor(y)
    np.testing.assert_allclose(tl.trapezoid(t, tl.tensor(x)).numpy(), np.trapezoid(y, x))
    np.testing.assert_allclose(tl.trapezoid(t, dx=0.5).numpy(), np.trapezoid(y, dx=0.5))
    total = tl.cumulative_trapezoid(t, tl.tensor(x))[:, -1]
    np.testing.assert_allclose(total.numpy(), np.trapezoid(y, x))
    for order in (1, 2):
        found = tl.gradient(t, spacing=(tl.tensor(x),), dim=1, edge_order=order)[0]
        np.testing.assert_allclose(found.numpy(), np.gradient(y, x, axis=1, edge_order=order))
        even = tl.gradient(t, spacing=2.0, dim=1, edge_order=order)[0]
        np.testing.assert_allclose(even.numpy(), np.gradient(y, 2.0, axis=1, edge_order=order))


def test_renorm_scales_long_slices_only():
    x = tl.tensor([[3.0, 4.0], [0.3, 0.4]])
    r = tl.renorm(x, 2, 0, 1.0)
    np.testing.assert_allclose(r.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    with pytest.raises(RuntimeError, match="maxnorm"):
        tl.renorm(x, 2, 0, -1.0)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (1, 5), (3, 1), (3, 5)])
def test_addbmm_in_place_grows(shape):
    """The target gets the size of the result, as PyTorch's."""
    a, b = tl.tensor(A), tl.tensor(B)
    c = tl.tensor(RNG.standard_normal(shape))
    expected = c.numpy() + (A @ B).sum(0)
    assert c.addbmm_(a, b) is c
    assert c.shape == (3, 5) and c.stride() == (5, 1)
    np.testing.assert_allclose(c.numpy(), expected)


def test_addbmm_in_place_grows_with_its_history():
    a, b = tl.ones(2, 3, 4), tl.ones(2, 4, 5)
    w = tl.ones(1, 1, requires_grad=True)
    r = (w * 2).addbmm_(a, b)
    assert r.grad_fn.name() == "AddbmmBackward0"
    r.sum().backward()
    assert w.grad.tolist() == [[30.0]]
    base = tl.ones(20)
    base[:1].view(1, 1).addbmm_(a, b)  # PyTorch grows a view over its neighbours
    assert base.tolist() == [9.0] * 15 + [1.0] * 5
    c = tl.ones(4, 4)
    with pytest.raises(RuntimeError, match="expanded size"):
        c.addbmm_(a, b)
    with pytest.raises(RuntimeError, match="not resizable"):
        tl.from_numpy(np.ones((1, 1), np.float32)).addbmm_(a, b)


def _graph(t):
    """The names of the nodes behind `t`, depth first, without the leaves."""
    names, nodes = [], [t.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None and node.next_functions:
            names.append(node.name().removesuffix("Backward0"))
            nodes += [to for to, _ in reversed(node.next_functions)]
    return names


def _leaf(*shape):
    return tl.ones(*shape, requires_grad=True)


@pytest.mark.parametrize(
    ("run", "names"),
    [
        (lambda: tl.nn.functional.linear(_leaf(3), _leaf(3)), ["Dot", "T"]),
        (lambda: tl.nn.functional.linear(_leaf(4, 3), _leaf(2, 3), _leaf(2)), ["Addmm", "T"]),
        (
            lambda: tl.nn.functional.linear(_leaf(5, 4, 3), _leaf(2, 3), _leaf(2)),
            ["View", "Addmm", "View", "T"],
        ),
        (
            lambda: tl.nn.functional.linear(_leaf(3), _leaf(2, 3), _leaf(2)),
            ["View", "Addmm", "View", "T"],
        ),
        (
            lambda: tl.nn.functional.linear(_leaf(5, 3, 4).mT, _leaf(2, 3), _leaf(2)),
            ["Add", "UnsafeView", "Mm", "UnsafeView", "Clone", "Transpose", "T"],
        ),
        (lambda: tl.outer(_leaf(2), _leaf(3)), ["Mul", "View"]),
        (
            lambda: tl.kron(_leaf(2), _leaf(2, 2)),
            ["UnsafeView", "Mul", "UnsafeView", "UnsafeView"],
        ),
        (
            lambda: tl.tensordot(_leaf(3), _leaf(3), 1),
            ["View", "Dot", "Permute", "Permute"],
        ),
        (lambda: tl.vstack([_leaf(1)[0]]), ["Cat", "View", "Select"]),
    ],
)
def test_the_tape_is_pytorchs(run, names):
    assert _graph(run()) == names


def test_linear_of_more_dimensions_adds_its_bias():
    x = tl.arange(12, dtype=tl.float64).reshape(2, 2, 3)
    w, b = tl.tensor([[1.0, 0, 2]], dtype=tl.float64), tl.tensor([0.5], dtype=tl.float64)
    y = tl.nn.functional.linear(x, w, b)
    assert y.tolist() == [[[4.5], [13.5]], [[22.5], [31.5]]]
    with pytest.raises(RuntimeError, match="at least 1D"):
        tl.nn.functional.linear(x[0, 0, 0], w)


def test_truth_values_are_not_subtracted_from():
    x = tl.tensor([1.0])
    for run in (lambda: tl.rsub(x > 0, x), lambda: tl.rsub(x, x > 0)):
        with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
            run()


def test_sums_beside_products_of_nothing():
    none, v = tl.zeros(3, 0), tl.zeros(0)
    assert tl.addmv(tl.tensor(2.0), none, v).shape == ()  # beta · self, as it is
    assert tl.addmv(tl.ones(1), none, v, beta=2).tolist() == [2.0]
    assert tl.addmv(tl.ones(1), tl.zeros(0, 3), tl.zeros(3)).shape == (1,)
    assert tl.addmv(tl.tensor(2.0), none, v, beta=0).tolist() == [0.0] * 3
    r = tl.addbmm(tl.ones(3, 2), tl.zeros(0, 3, 2, dtype=tl.int64), tl.zeros(0, 2, 2).double())
    assert r.dtype is tl.float32 and r.tolist() == [[1.0, 1.0]] * 3
    meta = tl.addmv(tl.tensor(2.0, device="meta"), none.to("meta"), v.to("meta"))
    assert meta.shape == ()


@pytest.mark.parametrize("dtype", [tl.float32, tl.int64, tl.bool])
def test_strides_of_addr_are_those_of_self(dtype):
    a, b = tl.ones(3, dtype=dtype), tl.ones(2, dtype=dtype)
    for device in ("cpu", "meta"):
        x, y = a.to(device), b.to(device)

        def strides(c, x=x, y=y, device=device):
            return tl.addr(c.to(dtype).to(device), x, y).stride()

        assert strides(tl.zeros(2, 3).T) == (1, 3)
        assert strides(tl.zeros(3, 2)) == (2, 1)
        assert strides(tl.zeros(2)) == (2, 1)
    assert tl.addr(tl.zeros(1, 3).T, tl.ones(3), tl.ones(1)).stride() == (1, 3)


def test_wrong_shapes_come_before_truth_values_in_addmm():
    a, b = tl.zeros(2, 3, dtype=tl.bool), tl.zeros(3, 2, dtype=tl.bool)
    with pytest.raises(RuntimeError, match="must match") as raised:
        tl.addmm(tl.zeros(4, 3, dtype=tl.bool), a, b)
    assert raised.type is RuntimeError


def test_einsum_exchanges_two_operands_so_that_the_result_lies_in_order():
    ones = tl.ones
    assert tl.einsum("ij,jk->ki", ones(2, 3), ones(3, 4)).stride() == (2, 1)
    assert tl.einsum("bij,bjk->kbi", ones(2, 3, 4), ones(2, 4, 5)).stride() == (3, 15, 1)
    assert tl.einsum("bj,jac->abc", ones(3, 6), ones(6, 2, 4)).stride() == (4, 8, 1)
    x, y = tl.tensor(A), tl.tensor(B)
    r = tl.einsum("bij,bjk->kib", x, y)
    np.testing.assert_allclose(r.numpy(), np.einsum("bij,bjk->kib", A, B))
    r = tl.einsum("bij,bjk->bki", x, y)
    np.testing.assert_allclose(r.numpy(), np.einsum("bij,bjk->bki", A, B))
