"""Sparse tensors: products and sums against SciPy's sparse matrices, derivatives against finite
differences, and what the tape, the modes and the optimizers see of them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import torchlab as torch
from torchlab._core import events
from torchlab._core.dispatch import exotic
from torchlab.testing import assert_close

LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")


def random(rng, rows, cols, density=0.4, dtype=np.float64):
    return sp.random_array((rows, cols), density=density, rng=rng, dtype=dtype, format="coo")


def ours(s, layout="coo"):
    """SciPy's matrix as a tensor of a layout."""
    x = torch.sparse_coo_tensor(
        torch.tensor(np.array([s.row, s.col], np.int64)), torch.tensor(s.data), s.shape
    )
    if layout == "coo":
        return x
    if layout in ("bsr", "bsc"):
        return getattr(x, f"to_sparse_{layout}")((2, 2))
    return getattr(x, f"to_sparse_{layout}")()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_and_components_agree_with_scipy(layout):
    rng = np.random.default_rng(1)
    for _ in range(10):
        s = random(rng, 4, 6)
        x = ours(s, layout)
        assert repr(x.layout) == f"torch.sparse_{layout}"
        np.testing.assert_array_equal(x.to_dense().numpy(), s.toarray())
        if layout in ("csr", "csc"):
            m = s.asformat(layout)
            m.sort_indices()
            first, second = ("crow", "col") if layout == "csr" else ("ccol", "row")
            np.testing.assert_array_equal(getattr(x, f"{first}_indices")().numpy(), m.indptr)
            np.testing.assert_array_equal(getattr(x, f"{second}_indices")().numpy(), m.indices)
            np.testing.assert_array_equal(x.values().numpy(), m.data)
        if layout == "bsr":
            m = s.tobsr((2, 2))
            m.sort_indices()
            np.testing.assert_array_equal(x.crow_indices().numpy(), m.indptr)
            np.testing.assert_array_equal(x.col_indices().numpy(), m.indices)
            np.testing.assert_array_equal(x.values().numpy(), m.data)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_agree_with_scipy(layout):
    rng = np.random.default_rng(2)
    for _ in range(10):
        s, d = random(rng, 4, 6), rng.normal(size=(6, 3))
        x, y = ours(s, layout), torch.tensor(d)
        for r in (x @ y, torch.sparse.mm(x, y), torch.addmm(torch.zeros(4, 3).double(), x, y)):
            np.testing.assert_allclose(r.numpy(), s @ d)
        np.testing.assert_allclose(x.mv(y[:, 0]).numpy(), s @ d[:, 0])
        if layout != "bsr" and layout != "bsc":
            np.testing.assert_allclose((y.t() @ x.t()).numpy(), (s @ d).T)
            t = random(rng, 6, 5)
            if layout != "coo":
                r = x @ ours(t, layout)
                np.testing.assert_allclose(r.to_dense().numpy(), (s @ t).toarray())
    s, t = random(rng, 4, 6), random(rng, 6, 5)
    coo = torch.sparse.mm(ours(s), ours(t))
    assert coo.is_coalesced()
    np.testing.assert_allclose(coo.to_dense().numpy(), (s @ t).toarray())


def test_sums_products_and_reductions_agree_with_scipy():
    rng = np.random.default_rng(3)
    for _ in range(20):
        s, t = random(rng, 4, 6), random(rng, 4, 6)
        x, y = ours(s).coalesce(), ours(t).coalesce()
        np.testing.assert_allclose((x + y).to_dense().numpy(), (s + t).toarray())
        np.testing.assert_allclose((x - 2 * y).to_dense().numpy(), (s - 2 * t).toarray())
        np.testing.assert_allclose((x * y).to_dense().numpy(), s.multiply(t).toarray())
        assert (x * y)._nnz() == s.multiply(t).nnz
        np.testing.assert_allclose(x.sum(0).to_dense().numpy(), s.sum(axis=0))
        np.testing.assert_allclose(torch.sparse.sum(x, 1).to_dense().numpy(), s.sum(axis=1))
        np.testing.assert_allclose(x.norm().item(), sp.linalg.norm(s))
        np.testing.assert_allclose(x.t().to_dense().numpy(), s.T.toarray())
        both = torch.cat([x, y], 1)
        np.testing.assert_allclose(both.to_dense().numpy(), sp.hstack([s, t]).toarray())
    d = np.arange(12.0).reshape(3, 4)
    r = torch.sparse.spdiags(torch.tensor(d), torch.tensor([0, 2, -1]), (4, 4))
    np.testing.assert_array_equal(r.to_dense().numpy(), sp.spdiags(d, [0, 2, -1], 4, 4).toarray())


def test_duplicates_add_up():
    x = torch.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3))
    assert not x.is_coalesced() and x._nnz() == 3
    c = x.coalesce()
    assert c.is_coalesced() and c.indices().tolist() == [[0, 1], [0, 2]]
    assert c.values().tolist() == [2.0, 4.0]
    assert (x * x).to_dense().tolist() == (x.to_dense() ** 2).tolist()
    with pytest.raises(RuntimeError, match=r"coalesce\(\) first"):
        x.values()


def test_softmax_counts_the_specified_elements_only():
    x = torch.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 2.0, 5.0], (2, 3)).coalesce()
    r = torch.sparse.softmax(x, 1).values().numpy()
    e = np.exp([1.0, 2.0])
    np.testing.assert_allclose(r, [*(e / e.sum()), 1.0], rtol=1e-6)
    assert_close(torch.sparse.log_softmax(x, 1).values().exp(), torch.tensor(r))


# ---- derivatives --------------------------------------------------------------------------------

DERIVATIVES = {
    "to_dense": lambda x: x.to_dense(),
    "sin": lambda x: x.sin(),
    "pow": lambda x: x**3,
    "add": lambda x: x + 2 * x,
    "mul": lambda x: x * x,
    "by dense": lambda x: x * torch.full(x.shape, 3.0, dtype=x.dtype),
    "sum 0": lambda x: torch.sparse.sum(x, 0),
    "norm": lambda x: x.norm(),
    "softmax": lambda x: torch.sparse.softmax(x, 1),
    "mm": lambda x: torch.sparse.mm(x, torch.arange(12.0).double().reshape(4, 3)),
    "mm sparse": lambda x: torch.sparse.mm(x, x.t()),
    "mv": lambda x: x.mv(torch.arange(4.0).double()),
    "t": lambda x: x.t(),
    "select": lambda x: x.select(0, 1),
    "index_select": lambda x: x.index_select(1, torch.tensor([2, 0, 2])),
    "cat": lambda x: torch.cat([x, x * 2], 1),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "csr": lambda x: x.to_sparse_csr() * 2,
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((1, 2)),
    "mask": lambda x: x.sparse_mask(x.detach()),
    "values": lambda x: x.coalesce().values() ** 2,
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_gradcheck(name):
    rng = np.random.default_rng(4)
    x = ours(random(rng, 3, 4, 0.6)).coalesce().requires_grad_()
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    assert check(DERIVATIVES[name], (x,), masked=True)
    if name not in ("mm sparse", "norm"):
        check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradgradcheck)
        assert check(DERIVATIVES[name], (x,))


def test_gradcheck_of_csr_and_of_sampled_addmm():
    rng = np.random.default_rng(5)
    x = ours(random(rng, 3, 4, 0.6), "csr").requires_grad_()
    a, b = (torch.tensor(rng.normal(size=s)).requires_grad_() for s in ((3, 2), (2, 4)))
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    f = torch.sparse.sampled_addmm
    assert check(lambda x, a, b: f(x, a, b, beta=2.0, alpha=3.0), (x, a, b))
    for reduce in ("sum", "mean", "amax", "amin"):
        assert check(lambda x, b: torch.sparse.mm(x, b.t(), reduce), (x, b))  # noqa: B023


def test_two_uses_of_a_leaf_and_two_backwards_add_up():
    x = torch.eye(3).to_sparse().requires_grad_()
    (x * 2).to_dense().sum().backward()
    (x + x).to_dense().sum().backward()
    assert x.grad.is_sparse and x.grad.to_dense().tolist() == (torch.eye(3) * 4).tolist()


def test_sparse_and_dense_gradients_of_an_embedding():
    table = torch.nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([1, 1, 3])).sum().backward()
    g = table.weight.grad
    assert g.is_sparse and g._indices().tolist() == [[1, 1, 3]]
    (table(torch.tensor([0])).sum() + table.weight.sum()).backward()
    assert table.weight.grad.layout is torch.strided
    assert table.weight.grad[:, 0].tolist() == [2.0, 3.0, 1.0, 2.0, 1.0]


def test_sgd_with_a_sparse_gradient():
    table = torch.nn.Embedding(4, 2, sparse=True)
    before = table.weight.detach().clone()
    optimizer = torch.optim.SGD(table.parameters(), lr=0.5)
    table(torch.tensor([1, 1, 3])).sum().backward()
    optimizer.step()
    assert_close(
        before - table.weight.detach(), torch.tensor([[0.0] * 2, [1.0] * 2, [0.0] * 2, [0.5] * 2])
    )


def test_saved_tensors_hooks_and_a_write_after_saving():
    x = torch.eye(3).to_sparse().requires_grad_()
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append(1), t)[1], lambda t: t):
        y = torch.sparse.mm(x, torch.ones(3, 2, requires_grad=True) * 2)
    y.sum().backward()
    assert seen and x.grad.values().tolist() == [4.0] * 3
    d = torch.ones(3, 2, requires_grad=True) * 2
    y = torch.sparse.mm(x, d)
    d.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        z = (x * 2).to_dense().sum()
        z.backward()
        z.backward()


# ---- the seam -----------------------------------------------------------------------------------


def test_a_sparse_tensor_is_a_tensor():
    x = torch.eye(2).to_sparse()
    assert isinstance(x, torch.Tensor) and torch.is_tensor(x)
    assert repr(type(x)) == repr(torch.Tensor)
    assert not x._k.plain and not x._k.fast and not x._k.direct


@pytest.mark.parametrize("layout, error", [("coo", NotImplementedError), ("csr", RuntimeError)])
def test_what_is_not_there_says_so_and_changes_nothing(layout, error):
    x = getattr(torch.eye(2), f"to_sparse_{layout}")()
    for f in (torch.exp, torch.erfc, lambda t: t == t, lambda t: torch.eye(2).mul_(t.exp())):
        with pytest.raises(error):
            f(x)
    d = torch.eye(2)
    with pytest.raises(RuntimeError):
        d.div_(x)
    with pytest.raises(RuntimeError):
        d.copy_(x)
    assert d.tolist() == torch.eye(2).tolist()


def test_no_operator_takes_a_pattern_for_an_array():
    pattern = torch.eye(2).to_sparse()._a
    for f in (np.asarray, np.sin, lambda a: a + np.ones((2, 2)), lambda a: a.strides):
        with pytest.raises((NotImplementedError, TypeError)):
            f(pattern)


def test_inference_mode_no_grad_and_events():
    x = torch.eye(3).to_sparse()
    with torch.inference_mode():
        y = x * 2 + x
    assert y.is_inference() and y.to_dense().sum().item() == 9
    x.requires_grad_()
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.mul_(2)
    seen = []
    subscription = events.op_call.subscribe(lambda op, **rest: seen.append(op.name))
    try:
        torch.mm(x.detach(), torch.ones(3, 1))
    finally:
        subscription.close()
    assert "mm" in seen


def test_a_subclass_with_its_own_handler_goes_first():
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "mine"

    assert torch.add(torch.eye(2).as_subclass(Loud), torch.eye(2).to_sparse()) == "mine"
    assert torch.add(torch.eye(2).to_sparse(), torch.eye(2).as_subclass(Loud)) == "mine"


def test_another_backend_docks_on_in_a_few_lines():
    class Answer(exotic.Exotic):
        __slots__ = ()
        backend = "AnswerCPU"

    try:

        @exotic.exotic("AnswerCPU", "add")
        def add(self, other, alpha):
            return 42

        x = object.__new__(Answer)
        x._a, x._k = torch.eye(2).to_sparse()._a, torch.eye(2).to_sparse()._k
        x._e = x._s = x._v = x._g = None
        assert x + 1 == 42 and torch.add(torch.eye(2), x) == 42
        with pytest.raises(NotImplementedError, match="AnswerCPU"):
            torch.exp(x)
    finally:
        exotic.TABLES.pop("AnswerCPU", None)
        exotic.CLASSES.pop("AnswerCPU", None)


def test_copies_keep_layout_and_wish_for_gradients():
    for layout in LAYOUTS:
        x = ours(random(np.random.default_rng(6), 4, 4), layout).requires_grad_()
        for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert y.requires_grad and y.is_leaf and y.layout is x.layout
            assert_close(y, x)


def test_values_share_memory():
    v = torch.tensor([1.0, 2.0])
    x = torch.sparse_coo_tensor([[0, 1]], v, (2,))
    v.mul_(2)
    assert x.to_dense().tolist() == [2.0, 4.0]
    x._values().add_(1)
    assert v.tolist() == [3.0, 5.0]


def test_invariants_can_be_switched_on():
    check = torch.sparse.check_sparse_tensor_invariants
    assert not check.is_enabled()
    with check(), pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        torch.sparse_coo_tensor([[5]], [1.0], (2,))
    assert not check.is_enabled()

    @check()
    def make():
        return torch.sparse_csr_tensor([0, 1], [7], [1.0], (1, 2))

    with pytest.raises(RuntimeError, match="col_indices"):
        make()
