"""Multi-head attention as one function, with everything that PyTorch's takes.

Source: Vaswani and others, arXiv:1706.03762;
https://docs.pytorch.org/docs/2.13/generated/torch.nn.MultiheadAttention.html
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.settings import warn_user


def _mask_check(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> bool:
    """Whether there is a batch dimension; the ranks of all tensors checked."""
    batched = query._a.ndim == 3
    if query._a.ndim not in (2, 3):
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received "
            f"{query._a.ndim}-D query tensor"
        )
    wanted = query._a.ndim
    if not key._a.ndim == value._a.ndim == wanted:
        raise AssertionError(
            f"For {wanted}-D query, expected key and value to be {wanted}-D but found "
            f"{key._a.ndim}-D and {value._a.ndim}-D tensors respectively"
        )
    if padding is not None and padding._a.ndim != wanted - 1:
        raise AssertionError(
            f"For {wanted}-D query, expected key_padding_mask to be None or {wanted - 1}-D but "
            f"found {padding._a.ndim}-D tensor instead"
        )
    if mask is not None:
        if mask._a.ndim not in (2, 3):
            raise AssertionError(
                f"For {wanted}-D query, expected attn_mask to be None, 2-D or 3-D but found "
                f"{mask._a.ndim}-D tensor instead"
            )
        if not batched and mask._a.ndim == 3:
            expected = (heads, query._a.shape[0], key._a.shape[0])
            if mask._a.shape != expected:
                raise AssertionError(
                    f"Expected attn_mask shape to be {expected} but got {tuple(mask._a.shape)}"
                )
    return batched


def as_numbers(name: str, mask: Any, dtype: Any, other: Any = None, other_name: str = "") -> Any:
    """A mask of numbers to add: −∞ where a mask of booleans is true; None of None.

    Warns if `other`, a mask that goes with it, is of another dtype. Raises AssertionError for other
    than booleans and floating-point numbers.
    """
    if mask is None:
        return None
    kind = mask._k.dtype
    if kind.name != "bool" and not kind.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported, got {kind}")
    if other is not None and other._k.dtype is not kind:
        warn_user(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both "
            "instead."
        )
    if kind.is_floating_point:
        return mask
    zeros = aten.zeros_like(mask, dtype=dtype)
    return aten.masked_fill(zeros, mask, -math.inf)


def _projections(
    query: Any, key: Any, value: Any, weights: tuple[Any, Any, Any], bias: Any
) -> list[Any]:
    biases = (None,) * 3 if bias is None else aten.chunk(bias, 3, 0)
    return [
        aten.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    ]


def _in_weights(
    packed: Any, separate: bool, q: Any, k: Any, v: Any, sizes: tuple[Any, Any], embed: int
) -> tuple[Any, Any, Any]:
    if not separate:
        if packed is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        if sizes[0] != sizes[1]:
            raise AssertionError(f"key shape {sizes[0]} does not match value shape {sizes[1]}")
        w = aten.chunk(packed, 3, 0)
        return w[0], w[1], w[2]
    for name, w in (("q", q), ("k", k), ("v", v)):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    if sizes[0][:2] != sizes[1][:2]:
        raise AssertionError(
            "key's sequence and batch dims {} do not match value's {}".format(
                *(tuple(s[:2]) for s in sizes)
            )
        )
    return q, k, v


def _heads_first(x: Any, batch: int, heads: int) -> Any:
    """(S, N, E) → (N · heads, S, E / heads)."""
    length, width = x._a.shape[0], x._a.shape[-1]
    rows = aten.reshape(x, (length, batch * heads, width // heads))
    return aten.transpose(rows, 0, 1)


def _wider(mask: Any, by: int = 1) -> Any:
    """Room in a mask for keys that were appended: they may be looked at."""
    return None if mask is None else aten.constant_pad_nd(mask, (0, by), 0.0)


def _static(name: str, given: Any, batch: int, heads: int, width: int) -> Any:
    if given._a.shape[0] != batch * heads or given._a.shape[2] != width:
        raise AssertionError(
            f"expecting {name}.size(0) of {batch * heads} and .size(2) of {width}, but got "
            f"{list(given._a.shape)}"
        )
    return given


@face("multi_head_attention_forward", method=False, spaces=("nn.functional",))
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Attention of several heads: query (L, N, E), key (S, N, …), value (S, N, …), or all without
    N → (output (L, N, E), weights (N, L, S) or None).

    key_padding_mask (N, S): true where a key does not count. attn_mask (L, S) or (N · heads, L, S):
    true where a query may not look; or numbers to add. bias_k, bias_v: one more key and value;
    add_zero_attn: one more of zeros. average_attn_weights: else weights (N, heads, L, S).
    """
    batched = _mask_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (aten.unsqueeze(t, 1) for t in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = aten.unsqueeze(key_padding_mask, 0)
    length, batch, embed = query._a.shape
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if embed != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}"
        )
    if embed % num_heads:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    width = embed // num_heads
    dtype = query._k.dtype
    padding = as_numbers("key_padding_mask", key_padding_mask, dtype, attn_mask, "attn_mask")
    hinted = is_causal and padding is None and not need_weights
    mask = None if hinted else as_numbers("attn_mask", attn_mask, dtype)
    is_causal = hinted
    weights = _in_weights(
        in_proj_weight,
        use_separate_proj_weight,
        q_proj_weight,
        k_proj_weight,
        v_proj_weight,
        (tuple(key._a.shape), tuple(value._a.shape)),
        embed,
    )
    q, k, v = _projections(query, key, value, weights, in_proj_bias)

    if mask is not None:
        if mask._a.ndim == 2:
            wanted: tuple[int, ...] = (length, key._a.shape[0])
            if mask._a.shape != wanted:
                raise RuntimeError(
                    f"The shape of the 2D attn_mask is {mask.shape}, but should be {wanted}."
                )
            mask = aten.unsqueeze(mask, 0)
        else:
            wanted = (batch * num_heads, length, key._a.shape[0])
            if mask._a.shape != wanted:
                raise RuntimeError(
                    f"The shape of the 3D attn_mask is {mask.shape}, but should be {wanted}."
                )

    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must be both None or both tensors")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = aten.cat([k, aten.expand(bias_k, (1, batch, embed))], 0)
        v = aten.cat([v, aten.expand(bias_v, (1, batch, embed))], 0)
        mask, padding = _wider(mask), _wider(padding)

    q = _heads_first(q, batch, num_heads)
    k, v = (
        _heads_first(x, batch, num_heads)
        if given is None
        else _static(name, given, batch, num_heads, width)
        for name, x, given in (("static_k", k, static_k), ("static_v", v, static_v))
    )
    if add_zero_attn:
        none = (batch * num_heads, 1, width)
        k = aten.cat([k, aten.new_zeros(aten.detach(k), none)], 1)
        v = aten.cat([v, aten.new_zeros(aten.detach(v), none)], 1)
        mask, padding = _wider(mask), _wider(padding)
    keys = k._a.shape[1]
    if padding is not None:
        if padding._a.shape != (batch, keys):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, keys)}, but got {padding.shape}"
            )
        padding = aten.expand(aten.view(padding, (batch, 1, 1, keys)), (-1, num_heads, -1, -1))
        padding = aten.reshape(padding, (batch * num_heads, 1, keys))
        mask = padding if mask is None else mask + padding
    dropout_p = dropout_p if training else 0.0

    found = None
    if need_weights:
        scaled = q * math.sqrt(1.0 / width)
        turned = aten.transpose(k, -2, -1)
        scores = aten.bmm(scaled, turned) if mask is None else aten.baddbmm(mask, scaled, turned)
        found = aten.softmax(scores, -1)
        if dropout_p > 0.0:
            found = aten.dropout(found, dropout_p, True)
        r = aten.bmm(found, v)
    else:
        if mask is not None:
            mask = (
                aten.unsqueeze(mask, 0)
                if mask._a.shape[0] == 1 and mask._a.ndim == 3
                else aten.view(mask, (batch, num_heads, -1, keys))
            )
        q = aten.view(q, (batch, num_heads, length, width))
        k, v = (aten.view(t, (batch, num_heads, keys, width)) for t in (k, v))
        r = aten.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
        r = aten.reshape(r, (batch * num_heads, length, width))
    r = aten.reshape(aten.transpose(r, 0, 1), (length * batch, embed))
    r = aten.linear(r, out_proj_weight, out_proj_bias)
    r = aten.view(r, (length, batch, r._a.shape[1]))
    if found is not None:
        found = aten.view(found, (batch, num_heads, length, keys))
        if average_attn_weights:
            found = aten.mean(found, 1)
    if not batched:
        r = aten.squeeze(r, 1)
        found = None if found is None else aten.squeeze(found, 0)
    return r, found
