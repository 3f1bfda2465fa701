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


def test_masks_of_two_types_are_told() -> None:
    layer = nn.TransformerEncoderLayer(4, 1, 4, 0.0, batch_first=True)
    x = torchlab.ones(1, 2, 4)
    causal = nn.Transformer.generate_square_subsequent_mask(2)
    padding = torchlab.tensor([[False, True]])
    calls = {
        "src_key_padding_mask and src_mask": lambda: layer(x, causal, padding),
        "src_key_padding_mask and mask": lambda: nn.TransformerEncoder(
            layer, 1, enable_nested_tensor=False
        )(x, causal, padding),
        "key_padding_mask and attn_mask": lambda: layer.self_attn(
            x, x, x, key_padding_mask=padding, attn_mask=causal
        ),
    }
    for names, call in calls.items():
        with pytest.warns(UserWarning, match=f"mismatched {names} is deprecated"):
            call()


def test_biases_aligned_with_a_corner() -> None:
    from torchlab.nn.attention import bias

    lower = bias.causal_lower_right(2, 4)
    assert repr(lower) == (
        "tensor([[ True,  True,  True, False],\n        [ True,  True,  True,  True]])"
    )
    q, k = torchlab.zeros(1, 1, 2, 3), torchlab.zeros(1, 1, 4, 3)
    v = torchlab.arange(4.0)[:, None].expand(1, 1, 4, 3)
    attention = nn.functional.scaled_dot_product_attention
    assert attention(q, k, v, lower)[0, 0, :, 0].tolist() == [1, 1.5]
    assert type(attention(q, k, v, lower)) is torchlab.Tensor
    upper = attention(q, k, v, bias.causal_upper_left(2, 4))
    assert upper[0, 0, :, 0].tolist() == [0, 0.5]
    with pytest.raises(ValueError, match="should not be used with causal=True"):
        attention(q, k, v, lower, is_causal=True)
    with pytest.raises(AssertionError, match="2D"):
        bias.causal_upper_left(1, 2, 3)
    with pytest.raises(AssertionError, match="CausalVariant"):
        bias.CausalBias(1, 2, 3)
    with pytest.warns(UserWarning, match="NaNs"):
        bias.causal_lower_right(3, 2)


def test_masks_that_do_not_fit() -> None:
    q = torchlab.zeros(1, 1, 3, 4)
    attention = nn.functional.scaled_dot_product_attention
    with pytest.raises(RuntimeError, match=r"\[1, 1, 3, 3\] doesn't match .*\[5, 1, 3, 3\]"):
        attention(q, q, q, torchlab.zeros(5, 1, 3, 3))
    with pytest.raises(RuntimeError, match="must match"):
        attention(q, q, q, torchlab.zeros(2, 3))


def test_helpers_that_other_libraries_take():
    from torchlab.nn.modules.transformer import _get_activation_fn, _get_clones

    assert _get_activation_fn("gelu") is nn.functional.gelu
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not tanh"):
        _get_activation_fn("tanh")
    made = _get_clones(nn.Linear(2, 2), 3)
    assert len(made) == 3 and torchlab.equal(made[0].weight, made[2].weight)
    assert made[0].weight is not made[2].weight
