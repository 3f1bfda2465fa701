"""Fractional pooling, bags, grouped products, attention of several heads and chunked losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import torchlab as torch
import torchlab.nn.functional as F
from torchlab.nn import LinearCrossEntropyOptions

RNG = np.random.default_rng(11)


def tensor(*shape: int) -> torch.Tensor:
    return torch.tensor(RNG.standard_normal(shape))


# ---- fractional pooling -------------------------------------------------------------------------


def test_windows_begin_where_the_paper_says() -> None:
    x = torch.arange(49.0).reshape(1, 1, 7, 7)
    draws = torch.tensor([[[0.5, 0.25]]])  # width, height
    y, where = F.fractional_max_pool2d(
        x, 2, output_size=3, return_indices=True, _random_samples=draws
    )
    alpha = (7 - 2) / (3 - 1)
    rows = [math.floor((i + 0.25) * alpha) - math.floor(0.25 * alpha) for i in range(2)] + [5]
    columns = [math.floor((i + 0.5) * alpha) - math.floor(0.5 * alpha) for i in range(2)] + [5]
    expected = [[7 * (r + 1) + c + 1 for c in columns] for r in rows]
    assert y[0, 0].tolist() == where[0, 0].tolist() == expected


def test_the_gradient_goes_to_the_maxima() -> None:
    x = tensor(2, 1, 5, 5, 5).requires_grad_()
    y, where = F.fractional_max_pool3d(x, 2, output_ratio=0.5, return_indices=True)
    assert y.shape == (2, 1, 2, 2, 2)
    y.sum().backward()
    np.testing.assert_array_equal(
        np.sort(np.unique(where.numpy()[0])), np.flatnonzero(x.grad.numpy()[0])
    )


def test_fractional_pooling_needs_a_size_that_fits() -> None:
    x = torch.ones(1, 1, 4, 4)
    with pytest.raises(ValueError, match="output_size or an output_ratio"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(RuntimeError, match="do not fit"):
        F.fractional_max_pool2d(x, 3, output_size=3)


# ---- bags ---------------------------------------------------------------------------------------


def test_a_bag_tells_its_sizes_and_its_maxima() -> None:
    table = torch.tensor([[0.0, 9.0], [5.0, 1.0], [5.0, 3.0]])
    rows, starts = torch.tensor([0, 1, 2, 1]), torch.tensor([0, 3, 3])
    bags, of, sizes, maxima = torch.embedding_bag(table, rows, starts, mode=2)
    assert bags.tolist() == [[5, 9], [0, 0], [5, 1]]
    assert of.tolist() == [0, 0, 0, 2] and sizes.tolist() == [3, 0, 1]
    assert maxima.tolist() == [[1, 0], [0, 0], [1, 1]]
    means, _, sizes, _ = torch.embedding_bag(table, rows, starts, mode=1, padding_idx=2)
    assert means.tolist() == [[2.5, 5], [0, 0], [5, 1]] and sizes.tolist() == [2, 0, 1]


def test_the_first_of_equal_maxima_has_the_gradient() -> None:
    table = torch.tensor([[5.0], [5.0], [1.0]], requires_grad=True)
    F.embedding_bag(torch.tensor([[2, 1, 0]]), table, mode="max").sum().backward()
    assert table.grad.tolist() == [[0], [1], [0]]


def test_renorm_shortens_the_named_rows() -> None:
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]])
    assert torch.embedding_renorm_(table, torch.tensor([0, 1]), 1.0, 2.0) is table
    np.testing.assert_allclose(table.numpy(), [[0.6, 0.8], [0.3, 0.4], [30, 40]], rtol=1e-5)


# ---- products -----------------------------------------------------------------------------------


def test_grouped_products() -> None:
    rows, many = tensor(5, 4).float(), tensor(2, 4, 8).float()
    ends = torch.tensor([2, 4], dtype=torch.int32)
    got = F.grouped_mm(rows, many, offs=ends).numpy()
    a, b = rows.numpy(), many.numpy()
    expected = np.concatenate([a[:2] @ b[0], a[2:4] @ b[1], np.zeros((1, 8))])
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    np.testing.assert_allclose(torch._grouped_mm(rows, many, ends).numpy(), expected, rtol=1e-5)
    columns = tensor(8, 4).float()
    got = F.grouped_mm(many, columns, offs=torch.tensor([1, 4], dtype=torch.int32)).numpy()
    c = columns.numpy()
    expected = np.concatenate([b[0] @ c[:, :1], b[1] @ c[:, 1:]], 1)
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    left, right = tensor(2, 8).float(), tensor(8, 4).float()
    got = F.grouped_mm(left, right, offs=torch.tensor([2, 8], dtype=torch.int32)).numpy()
    x, y = left.numpy(), right.numpy()
    np.testing.assert_allclose(got, [x[:, :2] @ y[:2], x[:, 2:] @ y[2:]], rtol=1e-5)
    assert F.grouped_mm(many.mT, many).shape == (2, 8, 8)


def test_grouped_products_refuse() -> None:
    rows, many = torch.ones(6, 8), torch.ones(2, 8, 16)
    ends = torch.tensor([2, 6], dtype=torch.int32)
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (rows.double(), many, {"offs": ends}, "Expected mat_a to be Float32, .*, got Double"),
        (rows, many.long(), {"offs": ends}, "Expected mat_b to be Float32, .*, got Long"),
        (rows, many, {}, "Have to provide offsets if there is a 2d matrix"),
        (many.mT, many, {"offs": ends}, "no offset if both matrices are 3d"),
        (many.mT[:1], many, {}, "batched dimension has to match"),
        (rows[:, :4], many, {"offs": ends}, "contraction dimension of mat_a and mat_b must match"),
        (rows, torch.ones(2, 8, 15), {"offs": ends}, "strides should be multiple of 16 bytes"),
        (torch.ones(6, 16)[:, ::2], many, {"offs": ends}, "Invalid strides/sizes, got .16, 2. for"),
        (rows, many, {"offs": ends.long()}, "Offsets have to be int32"),
        (rows, many, {"offs": ends[None]}, "offs has to be 1D"),
        (rows, many, {"offs": ends[:1]}, "matrix batch sizes have to match"),
        (rows, many, {"offs": ends, "bias": rows}, "Bias not supported yet"),
        (rows, many, {"offs": ends, "out_dtype": torch.half}, "must match `mat_a` dtype"),
    ]
    for a, b, kwargs, message in cases:
        with pytest.raises(RuntimeError, match=message):
            F.grouped_mm(a, b, **kwargs)


def test_bilinear_forms() -> None:
    x, y, w, b = tensor(2, 3), tensor(2, 4), tensor(5, 3, 4), tensor(5)
    expected = np.einsum("ni,oij,nj->no", x.numpy(), w.numpy(), y.numpy()) + b.numpy()
    np.testing.assert_allclose(torch.bilinear(x, y, w, b).numpy(), expected)
    with pytest.raises(RuntimeError, match="batch dimensions"):
        F.bilinear(x, y[:1], w, b)


def test_convolution_with_time_first() -> None:
    x, w, b = tensor(6, 2, 3), tensor(2, 3, 4), tensor(4)
    got = torch.conv_tbc(x, w, b, 1).numpy()
    padded = np.pad(x.numpy(), ((1, 1), (0, 0), (0, 0)))
    expected = [padded[t] @ w.numpy()[0] + padded[t + 1] @ w.numpy()[1] for t in range(7)]
    np.testing.assert_allclose(got, np.stack(expected) + b.numpy())


# ---- attention ----------------------------------------------------------------------------------


def heads_by_hand(x: np.ndarray, w: np.ndarray, out: np.ndarray, heads: int) -> np.ndarray:
    """Self-attention of one sequence (L, E), the last key hidden."""
    q, k, v = (x @ p.T for p in np.split(w, 3))
    width = x.shape[1] // heads
    parts = []
    for h in range(heads):
        s = slice(h * width, (h + 1) * width)
        scores = q[:, s] @ k[:-1, s].T / math.sqrt(width)
        p = np.exp(scores - scores.max(1, keepdims=True))
        parts.append(p / p.sum(1, keepdims=True) @ v[:-1, s])
    return np.concatenate(parts, 1) @ out.T


@pytest.mark.parametrize("need_weights", [True, False])
def test_heads_are_attention_side_by_side(need_weights: bool) -> None:
    x, w, out = tensor(4, 6), tensor(18, 6), tensor(6, 6)
    hidden = torch.tensor([False, False, False, True])
    y, weights = F.multi_head_attention_forward(
        x, x, x, 6, 2, w, None, None, None, False, 0.0, out, None,
        key_padding_mask=hidden, need_weights=need_weights,
    )  # fmt: skip
    np.testing.assert_allclose(y.numpy(), heads_by_hand(x.numpy(), w.numpy(), out.numpy(), 2))
    if need_weights:
        assert weights.shape == (4, 4) and weights[:, -1].abs().max().item() == 0
        np.testing.assert_allclose(weights.sum(1).numpy(), 1)
    else:
        assert weights is None


def test_what_attention_refuses() -> None:
    x, w, out = tensor(4, 6), tensor(18, 6), tensor(6, 6)
    rest = (w, None, None, None, False, 0.0, out, None)
    with pytest.raises(AssertionError, match="embedding dimension"):
        F.multi_head_attention_forward(x, x, x, 5, 1, *rest)
    with pytest.raises(AssertionError, match="not divisible"):
        F.multi_head_attention_forward(x, x, x, 6, 4, *rest)
    with pytest.raises(RuntimeError, match="is_causal hint"):
        F.multi_head_attention_forward(x, x, x, 6, 2, *rest, is_causal=True)


# ---- losses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_chunks_give_the_same_loss_and_gradients(reduction: str) -> None:
    x, w, b = (t.requires_grad_() for t in (tensor(7, 3), tensor(5, 3), tensor(5)))
    target = torch.tensor([0, 4, 2, -100, 1, 3, 3])
    weight = torch.tensor(RNG.uniform(0.5, 2, 5))
    found = []
    for options in (None, LinearCrossEntropyOptions(batch_chunk_size=3)):
        loss = F.linear_cross_entropy(
            x, w, target, linear_bias=b, weight=weight, reduction=reduction, options=options
        )
        g = torch.ones_like(loss)
        found.append([loss, *torch.autograd.grad(loss, (x, w, b), g)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), atol=1e-12)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="batch_chunk_size"):
        LinearCrossEntropyOptions(batch_chunk_size=0)
    with pytest.raises(ValueError, match="chunking_method"):
        LinearCrossEntropyOptions(chunking_method="aspect_ratio:x")
    with pytest.raises(ValueError, match="acc_policy"):
        LinearCrossEntropyOptions(acc_policy="x")  # type: ignore[arg-type]


def test_the_reduction_as_a_number() -> None:
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
    assert torch.hinge_embedding_loss(x, y, 1.0, 0).tolist() == [1.0, 0.0]
    assert torch.hinge_embedding_loss(x, y, 1.0, 2).item() == 1.0
    assert F.hinge_embedding_loss(x, y, reduction="none").tolist() == [1.0, 0.0]
    assert torch.margin_ranking_loss(x, y, y, 0.5, 0).tolist() == [0.5, 3.5]
    assert torch.kl_div(x, y.abs(), 2).item() == -3.0


def test_averages_of_integers_are_cut_towards_zero() -> None:
    x = torch.tensor([[[-1, -2, 3, 4]]])
    assert F.avg_pool1d(x, 2).tolist() == [[[-1, 3]]]
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        F.avg_pool1d(x.int(), 2)


def test_a_complex_convolution_has_the_conjugates_gradient() -> None:
    x = torch.randn(1, 2, 5, dtype=torch.complex128, requires_grad=True)
    w = torch.randn(3, 2, 2, dtype=torch.complex128, requires_grad=True)
    v = torch.randn(2, 3, 2, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(F.conv1d, (x, w))
    assert torch.autograd.gradcheck(F.conv_transpose1d, (x, v))
    assert torch.autograd.gradgradcheck(F.conv1d, (x, w))


def test_native_batch_norm_moves_the_running_statistics() -> None:
    x = tensor(6, 2)
    mean, var = torch.zeros(2).double(), torch.ones(2).double()
    y, m, r = torch.native_batch_norm(x, None, None, mean, var, True, 0.5, 0.0)
    a = x.numpy()
    np.testing.assert_allclose(m.numpy(), a.mean(0))
    np.testing.assert_allclose(r.numpy(), 1 / a.std(0))
    np.testing.assert_allclose(y.numpy(), (a - a.mean(0)) / a.std(0))
    np.testing.assert_allclose(mean.numpy(), a.mean(0) / 2)
    np.testing.assert_allclose(var.numpy(), 0.5 + a.var(0, ddof=1) / 2)
    z, m, r = torch._native_batch_norm_legit(x, None, None, mean, var, False, 0.5, 0.0)
    np.testing.assert_allclose(z.numpy(), (a - mean.numpy()) / np.sqrt(var.numpy()))
    assert m.shape == r.shape == (0,)
