"""Broadcasting, splitting, parts replaced, conversions that keep or change the format."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as tl


def test_broadcasting():
    assert tl.broadcast_shapes((2, 1), (3,), 3) == (2, 3)
    assert tl.broadcast_shapes((0,), (1,)) == (0,) and tl.broadcast_shapes() == ()
    a, b = tl.broadcast_tensors(tl.ones(2, 1), tl.arange(3))
    assert a.stride() == (1, 0) and b.stride() == (0, 1) and a.shape == b.shape == (2, 3)
    with pytest.raises(RuntimeError, match="broadcast a dimension of length 3"):
        tl.broadcast_shapes((2,), (3,))
    with pytest.raises(ValueError, match="negative"):
        tl.broadcast_shapes((-1,))
    with pytest.raises(TypeError, match="got list"):
        tl.broadcast_tensors([a, b])


def test_unravel_index():
    at = tl.arange(24).reshape(4, 6)
    for mine, theirs in zip(
        tl.unravel_index(at, (2, 3, 4)), np.unravel_index(at.numpy(), (2, 3, 4)), strict=True
    ):
        assert mine.tolist() == theirs.tolist()
    assert [t.item() for t in tl.unravel_index(tl.tensor(5), (2, 3))] == [1, 2]
    with pytest.raises(TypeError, match="integer dtype"):
        tl.unravel_index(tl.tensor([1.0]), (2, 3))
    with pytest.raises(ValueError, match="negative"):
        tl.unravel_index(tl.tensor([1]), (-2,))


def test_parts_share_memory_and_come_as_tuples():
    x = tl.arange(10).reshape(2, 5)
    for parts in (
        x.split_with_sizes((2, 3), 1),
        tl.unsafe_split(x, 3, 1),
        x.unsafe_split_with_sizes((2, 3), 1),
        x.unsafe_chunk(2, 1),
    ):
        assert type(parts) is tuple and len(parts) == 2
        assert tl.cat(parts, 1).tolist() == x.tolist()
        assert parts[0].data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="non-negative"):
        x.split_with_sizes((-1, 6), 1)
    with pytest.raises(IndexError, match="no dimensions"):
        tl.tensor(1).unbind()


def test_unsafe_parts_may_be_written_to():
    x = tl.ones(4, requires_grad=True)
    a, b = tl.unsafe_split(x * 1, 2)
    a.mul_(3)
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [3, 3, 1, 1]


def test_ravel_adjoint_movedim_narrow():
    x = tl.arange(6).reshape(2, 3)
    assert x.ravel().data_ptr() == x.data_ptr() and x.t().ravel().tolist() == [0, 3, 1, 4, 2, 5]
    assert tl.tensor([[1j, 2]]).adjoint().tolist() == [[-1j], [2]]
    with pytest.raises(RuntimeError, match="matrices"):
        tl.adjoint(tl.ones(2))
    assert tl.narrow(x, 1, tl.tensor(1), 2).tolist() == [[1, 2], [4, 5]]
    with pytest.raises(RuntimeError, match="0-dim integral"):
        tl.narrow(x, 1, tl.tensor([1]), 2)
    assert tl.movedim(x, 0, 1).shape == (3, 2)
    with pytest.raises(RuntimeError, match="repeated dim"):
        tl.movedim(x, (0, 0), (0, 1))
    with pytest.raises(RuntimeError, match="Invalid source or destination"):
        tl.movedim(x, (0, 1), (0,))
    assert x.is_same_size(tl.ones(2, 3)) and not x.is_same_size(x.t())


def test_as_strided_scatter():
    x = tl.zeros(3, 3, dtype=tl.float64, requires_grad=True)
    src = tl.ones(2, 2, dtype=tl.float64, requires_grad=True)

    def f(x, src):
        return tl.as_strided_scatter(x, src, (2, 2), (1, 2), 1)

    assert f(x, src).tolist() == [[0, 1, 1], [1, 1, 0], [0, 0, 0]]
    assert tl.autograd.gradcheck(f, (x, src))
    turned = tl.as_strided_scatter(tl.zeros(2, 3).t(), tl.ones(2), (2,), (3,))
    assert turned.stride() == (1, 3) and turned.tolist() == [[1, 1], [0, 0], [0, 0]]
    with pytest.raises(RuntimeError, match="size equal to the slice"):
        tl.as_strided_scatter(x, tl.ones(3), (2,), (1,))


def test_conversions_know_the_format():
    x = tl.ones(2, 3, 4, 5)
    assert x.float(memory_format=tl.channels_last).stride() == (60, 1, 15, 3)
    part = tl.ones(4, 6)[::2, ::2]
    assert part.float(memory_format=tl.contiguous_format) is part
    assert tl.tensor([1j, 0j]).bool().tolist() == [True, False]
    # to 16 bits by way of float32, which rounds twice
    assert tl.tensor(1 + 2.0**-11 + 2.0**-40, dtype=tl.float64).half().item() == 1.0


def test_out_of_reads_is_apart_and_of_the_same_type():
    x, at = tl.arange(6.0), tl.tensor([0, 2])
    for call in (
        lambda out: tl.take(x, at, out=out),
        lambda out: tl.gather(x, 0, at, out=out),
        lambda out: tl.index_select(x, 0, at, out=out),
        lambda out: tl.masked_select(x, x < 2, out=out),
    ):
        with pytest.raises(RuntimeError, match="single memory location"):
            call(x)
        with pytest.raises(RuntimeError, match="dtype"):
            call(tl.empty(2, dtype=tl.float64))
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_chunk_cat_and_masked_indices():
    a, b = tl.arange(6).reshape(2, 3), tl.arange(8).reshape(4, 2)
    assert tl._chunk_cat([a, b], 0, 2).tolist() == [[0, 1, 2, 0, 1, 2, 3], [3, 4, 5, 4, 5, 6, 7]]
    x, mask = tl.arange(4.0), tl.tensor([True, False, True])
    where = [tl.tensor([3, 99, -1])]
    assert tl._unsafe_masked_index(x, mask, where, 5).tolist() == [3, 5, 3]
    added = tl._unsafe_masked_index_put_accumulate(x, mask, where, tl.ones(3))
    assert added.tolist() == [0, 1, 2, 5]
