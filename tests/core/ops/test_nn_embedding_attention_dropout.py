"""Embedding, attention and dropout against values computed by hand."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
import torchlab.nn.functional as F
from torchlab.nn.attention import SDPBackend, sdpa_kernel


def table() -> torch.Tensor:
    return torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)


def test_embedding_and_its_gradient() -> None:
    w = table()
    y = F.embedding(torch.tensor([[0, 2], [2, 2]]), w)
    assert y.tolist() == [[[1, 2], [5, 6]], [[5, 6], [5, 6]]]
    y.sum().backward()
    assert w.grad.tolist() == [[1, 1], [0, 0], [3, 3]]


def test_padding_row_gets_no_gradient_and_frequency_divides_it() -> None:
    w = table()
    F.embedding(torch.tensor([0, 2, 2]), w, padding_idx=0).sum().backward()
    assert w.grad.tolist() == [[0, 0], [0, 0], [2, 2]]
    w = table()
    F.embedding(
        torch.tensor([0, 2, 2]), w, padding_idx=-3, scale_grad_by_freq=True
    ).sum().backward()
    assert w.grad.tolist() == [[0, 0], [0, 0], [1, 1]]


def test_max_norm_shrinks_only_the_rows_that_were_asked_for() -> None:
    w = table()
    before = w._version
    F.embedding(torch.tensor([1]), w, max_norm=1.0)
    assert w[0].tolist() == [1, 2]
    assert w[1].tolist() == pytest.approx([0.6, 0.8])
    assert w._version > before


def test_max_norm_invalidates_what_backward_had_saved() -> None:
    w = table()
    x = torch.ones(2, requires_grad=True)
    early = w.mv(x).sum()
    late = F.embedding(torch.tensor([1]), w, max_norm=1.0).sum()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (early * late).backward()


def test_embedding_errors() -> None:
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(torch.tensor([3]), table())
    with pytest.raises(RuntimeError, match="scalar types: Long, Int"):
        F.embedding(torch.tensor([1.0]), table())


def test_bags() -> None:
    w = table().detach()
    i, offsets = torch.tensor([0, 2, 1]), torch.tensor([0, 2])
    assert F.embedding_bag(i, w, offsets, mode="sum").tolist() == [[6, 8], [3, 4]]
    assert F.embedding_bag(i, w, offsets).tolist() == [[3, 4], [3, 4]]
    assert F.embedding_bag(i, w, offsets, mode="max").tolist() == [[5, 6], [3, 4]]
    empty = F.embedding_bag(i, w, torch.tensor([0, 0, 3]), mode="sum")
    assert empty[0].tolist() == empty[2].tolist() == [0, 0]


def test_attention_averages_values_by_similarity() -> None:
    q = torch.tensor([[[math.log(3.0)]]])
    k = torch.tensor([[[1.0], [0.0]]])
    v = torch.tensor([[[8.0], [0.0]]])
    assert F.scaled_dot_product_attention(q, k, v, scale=1.0).item() == pytest.approx(6, rel=1e-6)


def test_causal_attention_does_not_look_ahead() -> None:
    q = torch.zeros(1, 3, 2)
    v = torch.tensor([[[3.0], [6.0], [9.0]]])
    got = F.scaled_dot_product_attention(q, q, v, is_causal=True)
    assert got.flatten().tolist() == pytest.approx([3, 4.5, 6])


def test_rows_that_may_look_nowhere_are_zero_and_pass_no_gradient() -> None:
    q = torch.ones(1, 2, 2, requires_grad=True)
    mask = torch.tensor([[True, True], [False, False]])
    got = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert got[0, 1].tolist() == [0, 0]
    got.sum().backward()
    assert not q.grad.isnan().any().item()


def _heads(batch: int = 2, length: int = 5, heads: int = 3, width: int = 4) -> torch.Tensor:
    return torch.randn(batch, length, heads, width).transpose(1, 2)


def test_attention_lies_in_memory_as_the_query_does() -> None:
    q, k, v = _heads(), _heads(length=7), _heads(length=7)
    out = F.scaled_dot_product_attention(q, k, v)
    assert out.stride() == (60, 4, 12, 1) and out.transpose(1, 2).view(2, 5, 12).shape == (2, 5, 12)
    with sdpa_kernel(SDPBackend.MATH):
        plain = F.scaled_dot_product_attention(q, k, v)
    assert plain.stride() == (60, 20, 4, 1) and torch.equal(out, plain)
    assert torch.compile(F.scaled_dot_product_attention)(q, k, v).stride() == out.stride()
    q, k, v = torch.randn(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)  # of one projection
    assert F.scaled_dot_product_attention(q, k, v).stride() == (40, 4, 8, 1)
    one = torch.randn(2, 16, 96).reshape(2, 16, 1, 96).transpose(1, 2)[..., :32]
    assert F.scaled_dot_product_attention(one, one, one).stride() == (512, 32, 32, 1)


def test_attention_is_row_major_where_no_fused_kernel_goes() -> None:
    q, k = _heads(), _heads(length=7)
    assert F.scaled_dot_product_attention(q, k, _heads(2, 7, 3, 6)).stride() == (90, 30, 6, 1)
    mask = torch.zeros(3, 5, 7)
    assert F.scaled_dot_product_attention(q, k, k, mask).stride() == (60, 20, 4, 1)
    assert F.scaled_dot_product_attention(q, k, k, mask[0]).stride() == (60, 4, 12, 1)
    assert F.scaled_dot_product_attention(q, k[:, :1], k[:, :1]).stride() == (60, 20, 4, 1)
    assert F.scaled_dot_product_attention(q[0], k[0], k[0]).stride() == (20, 4, 1)


def test_gradients_of_attention_have_the_positions_before_the_heads() -> None:
    q, k, v = (torch.randn(2, 3, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    out = F.scaled_dot_product_attention(q, k, v)
    g = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    grads = torch.autograd.grad(out, (q, k, v), g)
    assert {t.stride() for t in grads} == {(60, 4, 12, 1)}
    with sdpa_kernel(SDPBackend.MATH):
        plain = torch.autograd.grad(F.scaled_dot_product_attention(q, k, v), (q, k, v), g)
    assert all(torch.allclose(a, b) for a, b in zip(grads, plain, strict=True))
    assert torch.autograd.gradcheck(F.scaled_dot_product_attention, (q, k, v))


def test_attention_errors() -> None:
    q = torch.ones(1, 2, 2)
    with pytest.raises(RuntimeError, match="should not be set when is_causal=True"):
        F.scaled_dot_product_attention(q, q, q, torch.ones(2, 2), is_causal=True)
    with pytest.raises(RuntimeError, match="to have the same dtype"):
        F.scaled_dot_product_attention(q, q.double(), q)


def test_dropout_keeps_the_mean_and_scales_the_rest() -> None:
    torch.manual_seed(0)
    x = torch.ones(10000, requires_grad=True)
    y = F.dropout(x, 0.2)
    kept = (y != 0).sum().item()
    assert 7800 < kept < 8200
    assert set(y.tolist()) == {0.0, 1.25}
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_dropout_draws_pytorchs_numbers() -> None:
    torch.manual_seed(0)
    # From the words of mt19937(0): u53 < 1/2, as printed by PyTorch 2.13 for the same seed.
    assert F.dropout(torch.ones(8), 0.5).tolist() == DROPPED


DROPPED = [0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0, 2.0]


def test_dropout_outside_training_is_the_identity() -> None:
    x = torch.ones(3)
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 1.0).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        F.dropout(x, 1.5)


def test_feature_dropout_drops_whole_channels() -> None:
    torch.manual_seed(1)
    y = F.dropout2d(torch.ones(4, 8, 3, 3), 0.5).view(32, 9)
    assert all(len(set(row)) == 1 for row in y.tolist())
    assert {row[0] for row in y.tolist()} == {0.0, 2.0}


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    torch.manual_seed(2)
    y = F.alpha_dropout(torch.randn(50000), 0.3, training=True)
    assert abs(y.mean().item()) < 0.03
    assert abs(y.std().item() - 1) < 0.03
