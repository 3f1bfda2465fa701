"""Sums and means: values by hand, accuracy in every layout, types, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as tl


def grid() -> tl.Tensor:
    return tl.arange(24.0).reshape(2, 3, 4)


def test_sum_over_dimensions():
    x = grid()
    assert x.sum().item() == 276
    assert x.sum(0).tolist() == [[12, 14, 16, 18], [20, 22, 24, 26], [28, 30, 32, 34]]
    assert x.sum((0, 2)).tolist() == [60, 92, 124]
    assert x.sum((0, -1), keepdim=True).shape == (1, 3, 1)
    assert x.sum(()).item() == x.sum(dim=None).item() == 276
    assert x.sum(axis=0, keepdims=True).shape == (1, 3, 4)
    assert x.transpose(0, 2).sum(1).tolist() == [[12, 48], [15, 51], [18, 54], [21, 57]]


def test_results_are_row_major_whatever_the_layout():
    x = grid().permute(2, 0, 1)
    for r in (x.sum(1), x.mean(1), x.long().sum(1), x.amax(1), x.prod(1), x.std(1), x.all(1)):
        assert r.stride() == (3, 1)


def test_types():
    assert tl.tensor([True, True]).sum().dtype is tl.int64
    assert tl.tensor([200, 100], dtype=tl.uint8).sum().item() == 300
    assert tl.tensor([1, 2]).sum(dtype=tl.float32).dtype is tl.float32
    half = tl.full((4096,), 1.0, dtype=tl.float16)
    assert half.sum().dtype is tl.float16 and half.sum().item() == 4096
    assert tl.full((70000,), 1.0, dtype=tl.float16).sum(dtype=tl.float32).item() == 70000
    assert tl.full((3,), 1.0, dtype=tl.bfloat16).mean().dtype is tl.bfloat16
    assert tl.tensor([1 + 2j, 3j]).sum().item() == 1 + 5j
    assert tl.tensor([complex(np.inf, 0), 1j]).sum().item() == complex(np.inf, 1)


@pytest.mark.parametrize("layout", ["rows", "columns", "gaps"])
def test_float32_means_do_not_drift(layout):
    a = np.full((2**20, 3), 0.48, np.float32)
    if layout == "columns":
        x = tl.from_numpy(np.asfortranarray(a))
    elif layout == "gaps":
        x = tl.from_numpy(np.full((2**20, 6), 0.48, np.float32))[:, ::2]
    else:
        x = tl.from_numpy(a)
    assert np.abs(x.mean(0).numpy() - 0.48).max() < 5e-7
    assert abs(x.mean().item() - 0.48) < 5e-7
    assert abs(x.t().sum(1)[1].item() / (0.48 * 2**20) - 1) < 1e-6


def test_what_expand_repeats_is_multiplied():
    x = tl.tensor([[1.0], [2.0]]).expand(2, 10**9)
    assert x.sum().item() == pytest.approx(3e9)
    assert x.sum(1).tolist() == [1e9, 2e9]


def test_nothing_sums_to_zero():
    assert tl.empty(0).sum().item() == 0
    assert tl.empty(0, 3).sum(0).tolist() == [0, 0, 0]
    assert tl.empty(3, 0).sum(0).shape == (0,)
    assert np.isnan(tl.empty(0).mean().item())


def test_nan_and_infinity_pass_through():
    x = tl.tensor([[1.0, np.inf], [np.nan, 2.0]])
    assert np.isnan(x.sum(0).tolist()[0]) and x.sum(0).tolist()[1] == np.inf
    assert x.nansum(0).tolist() == [1, np.inf]
    assert tl.tensor([1.0, np.nan, 3.0]).nanmean().item() == 2


def test_gradients():
    x = grid().requires_grad_()
    (x.sum(1) * tl.arange(8.0).reshape(2, 4)).sum().backward()
    assert x.grad[1, 2].tolist() == [4, 5, 6, 7]
    y = grid().requires_grad_()
    y.mean((0, 2), keepdim=True).sum().backward()
    assert y.grad.unique().tolist() == [0.125]
    assert y.mean().grad_fn.name() == "MeanBackward0" and y.sum(0).grad_fn.name() == "SumBackward1"


def test_errors():
    x = grid()
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.sum(3)
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times"):
        x.sum((0, 0))
    with pytest.raises(RuntimeError, match="could not infer output dtype.*Long"):
        tl.tensor([1, 2]).mean()
    with pytest.raises(TypeError, match="unexpected keyword argument 'dims'"):
        x.sum(dims=0)
    with pytest.raises(RuntimeError, match="nansum on CPU does not support complex"):
        tl.tensor([1j]).nansum()


def test_truth_and_counts():
    x = tl.tensor([[1.0, 0.0], [2.0, np.nan]])
    assert x.all(0).tolist() == [True, False] and x.any().item() is True
    assert tl.all(x, ()).tolist() == [[True, False], [True, True]]
    assert tl.tensor([3, 0], dtype=tl.uint8).any().dtype is tl.uint8
    assert tl.empty(0).all().item() is True and tl.empty(0).any().item() is False
    assert x.count_nonzero().item() == 3 and x.count_nonzero(1).tolist() == [1, 2]


def test_trace_and_sum_to_size():
    m = tl.arange(6.0).reshape(2, 3).requires_grad_()
    m.trace().backward()
    assert m.trace().item() == 4 and m.grad.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert grid().sum_to_size(3, 1).tolist() == [[60], [92], [124]]
    with pytest.raises(RuntimeError, match="is not expandable to size"):
        grid().sum_to_size(5)


def test_meta_tensors_have_shapes():
    x = tl.empty(2, 3, 4, device="meta")
    assert x.sum(1).shape == (2, 4) and x.mean().shape == () and x.std(0).shape == (3, 4)
    assert x.max(0).indices.dtype is tl.int64 and x.sort(0)[0].shape == (2, 3, 4)
    assert x.topk(2, 1)[0].shape == (2, 2, 4) and x.cumsum(0).shape == (2, 3, 4)
    assert x.long().sum(0).dtype is tl.int64
