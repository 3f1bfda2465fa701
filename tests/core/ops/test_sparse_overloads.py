"""Overloads of torch.ops with sparse operands, and indices between COO and CSR."""

from __future__ import annotations

import pytest

import torchlab as torch

aten = torch.ops.aten
DENSE = torch.tensor([[0.0, 2, 3], [0, 0, 0], [1, 0, 5]])
B = torch.arange(6.0).reshape(3, 2)


def test_products_by_their_private_names():
    a, c = DENSE.to_sparse_csr(), DENSE.to_sparse()
    ones = torch.ones(3, 2)
    product = [[16, 21], [0, 0], [20, 26]]
    assert aten._sparse_mm(a, B).tolist() == product
    assert aten._sparse_mm(a, B, "sum").tolist() == aten._sparse_mm.reduce(a, B, "sum").tolist()
    assert aten._sparse_addmm.default(ones, a, B).tolist() == [[17, 22], [1, 1], [21, 27]]
    assert aten._sparse_addmm(ones, a, B, beta=2, alpha=3)[0].tolist() == [50, 65]
    assert aten._sparse_addmm(ones, DENSE, B).tolist() == [[17, 22], [1, 1], [21, 27]]
    squared = [[3, 0, 15], [0, 0, 0], [5, 2, 28]]
    assert aten._sparse_sparse_matmul(c, c).to_dense().tolist() == squared


@pytest.mark.parametrize("reduce", ["max", "amax"])
def test_reduced_products_say_where_they_come_from(reduce):
    a = DENSE.to_sparse_csr()
    made, origin = aten._sparse_mm_reduce_impl(a, B, reduce)
    assert made.tolist() == [[12, 15], [0, 0], [20, 25]] and origin.shape == (0,)
    made, origin = aten._sparse_mm_reduce_impl(a.clone().requires_grad_(), B, reduce)
    assert origin[[0, 2]].tolist() == [[1, 1], [3, 3]]
    assert torch.sparse.mm(a, B, "min").tolist() == [[4, 6], [0, 0], [0, 1]]
    with pytest.raises(RuntimeError, match="reduce type of prod has not been enabled"):
        torch.sparse.mm(a, B, "prod")
    with pytest.raises(RuntimeError, match="sum, prod, mean, amax or amin, got xx"):
        torch.sparse.mm(a, B, "xx")


def test_overloads_with_keywords_and_those_that_write():
    c = DENSE.to_sparse()
    assert aten.addmm.default(torch.ones(3, 2), c, B, beta=2)[0].tolist() == [18, 23]
    x = torch.ones(3, 3)
    aten.add_.Tensor(x, c, alpha=2)
    assert x.tolist() == [[1, 5, 7], [1, 1, 1], [3, 1, 11]]
    out = torch.zeros(3, 2)
    aten.mm.out(c, B, out=out)
    assert out.tolist() == [[16, 21], [0, 0], [20, 26]]


def test_copies_take_what_asks_for_nothing():
    x = torch.ones(2)
    made = aten._to_copy.default(
        x, dtype=torch.int32, layout=torch.strided, pin_memory=False, non_blocking=True
    )
    assert made.dtype is torch.int32
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'layout'"):
        aten._to_copy.default(x, layout=torch.sparse_coo)


def test_row_numbers_and_pointers():
    rows = torch.tensor([0, 0, 2, 3])
    crow = torch._convert_indices_from_coo_to_csr(rows, 5)
    assert crow.tolist() == [0, 2, 2, 3, 4, 4] and crow.dtype is torch.int64
    assert torch._convert_indices_from_coo_to_csr(rows, 5, out_int32=True).dtype is torch.int32
    back = torch._convert_indices_from_csr_to_coo(crow, torch.tensor([4, 1, 2, 3]))
    assert back.tolist() == [[0, 0, 2, 3], [4, 1, 2, 3]]
    swapped = torch._convert_indices_from_csr_to_coo(crow, rows, transpose=True)
    assert swapped.tolist() == [[0, 0, 2, 3], [0, 0, 2, 3]]
    batch = torch._convert_indices_from_csr_to_coo(
        torch.stack([crow, crow]), torch.stack([rows, rows])
    )
    assert batch.shape == (3, 8) and batch[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    with pytest.raises(RuntimeError, match="supposed to be a vector, but got 2 dimensional"):
        torch._convert_indices_from_coo_to_csr(torch.stack([rows, rows]), 5)
    with pytest.raises(NotImplementedError, match="not implemented for 'Double'"):
        torch._convert_indices_from_coo_to_csr(rows.double(), 5)
