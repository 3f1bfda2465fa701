"""Attention and Transformers: what the masks mean."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab
from torchlab import nn


def test_uniform_attention_is_the_mean() -> None:
    m = nn.MultiheadAttention(2, 1, bias=False)
    with torchlab.no_grad():
        m.in_proj_weight.copy_(torchlab.cat([torchlab.zeros(4, 2), torchlab.eye(2)]))
        m.out_proj.weight.copy_(torchlab.eye(2))
    x = torchlab.tensor([[1.0, 2.0], [3.0, 6.0]])
    out, weights = m(x, x, x)
    assert out.tolist() == [[2.0, 4.0], [2.0, 4.0]]
    assert weights.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    out, weights = m(x, x, x, key_padding_mask=torchlab.tensor([False, True]))
    assert out.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert weights.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_a_query_that_may_look_nowhere() -> None:
    m = nn.MultiheadAttention(2, 1, bias=False)
    x, mask = torchlab.randn(2, 1, 2), torchlab.tensor([[True, True], [False, False]])
    assert m(x, x, x, attn_mask=mask, need_weights=False)[0][0].tolist() == [[0.0, 0.0]]
    assert m(x, x, x, attn_mask=mask)[1][0, 0].isnan().all()


def test_causal_results_do_not_depend_on_the_future() -> None:
    torchlab.manual_seed(0)
    t = nn.Transformer(4, 2, 1, 1, 8, dropout=0.0, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0.0, -np.inf, -np.inf], [0.0, 0.0, -np.inf], [0.0, 0.0, 0.0]]
    src, tgt = torchlab.randn(1, 3, 4), torchlab.randn(1, 3, 4)
    other = tgt.clone()
    other[:, 2] = 5.0
    a, b = t(src, tgt, tgt_mask=mask), t(src, other, tgt_mask=mask)
    np.testing.assert_allclose(a[:, :2].detach().numpy(), b[:, :2].detach().numpy(), atol=1e-6)
    assert (a[:, 2] - b[:, 2]).abs().max().item() > 1e-3


def test_inference_leaves_padding_out() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, padding = torchlab.randn(1, 3, 4), torchlab.tensor([[False, False, True]])
    with torchlab.no_grad():
        out = encoder(x, src_key_padding_mask=padding)
        short = encoder(x[:, :2])
    assert out[0, 2].tolist() == [0.0] * 4
    np.testing.assert_allclose(out[:, :2].numpy(), short.numpy(), atol=1e-6)


def test_warning_where_padding_cannot_be_left_out() -> None:
    with pytest.warns(UserWarning, match="batch_first was not True"):
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1)


def test_kernels_that_are_not_there() -> None:
    q = torchlab.zeros(1, 1, 2, 2)
    attend = nn.functional.scaled_dot_product_attention
    kinds = nn.attention.SDPBackend
    with nn.attention.sdpa_kernel([kinds.EFFICIENT_ATTENTION, kinds.MATH]):
        attend(q, q, q)
    with nn.attention.sdpa_kernel(kinds.EFFICIENT_ATTENTION):
        with pytest.raises(RuntimeError, match="No viable backend"):
            attend(q, q, q)
    attend(q, q, q)
