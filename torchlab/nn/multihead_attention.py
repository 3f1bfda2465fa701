"""MultiheadAttention.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.MultiheadAttention.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import bool_
from torchlab.amp.switches import is_autocast_enabled
from torchlab.autograd.grad_mode import is_grad_enabled
from torchlab.nn import functional as F
from torchlab.nn import init
from torchlab.nn.linear import Linear
from torchlab.nn.module import Module
from torchlab.nn.parameter import Parameter


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear with the name that PyTorch gives the projection of an attention's result."""


class MultiheadAttention(Module):
    """Attention of several heads (arXiv:1706.03762): query (L, N, E), key (S, N, kdim), value
    (S, N, vdim), or with batch_first the batch in front, or all without N → the result, shaped as
    the query, and the weights (N, L, S) or None.

    add_bias_kv: one more learnt key and value; add_zero_attn: one more of zeros.
    """

    __constants__ = ("batch_first",)
    in_proj_weight: Any
    in_proj_bias: Any
    bias_k: Any
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads, got embed_dim={embed_dim} and "
                f"num_heads={num_heads}"
            )
        same = self._qkv_same_embed_dim
        shapes: dict[str, tuple[int, ...] | None] = {
            "q_proj_weight": None if same else (embed_dim, embed_dim),
            "k_proj_weight": None if same else (embed_dim, self.kdim),
            "v_proj_weight": None if same else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if same else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        for name, shape in shapes.items():
            self._enter(name, shape, device, dtype)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        for name in ("bias_k", "bias_v"):
            self._enter(name, (1, 1, embed_dim) if add_bias_kv else None, device, dtype)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _enter(self, name: str, shape: tuple[int, ...] | None, device: Any, dtype: Any) -> None:
        weight = None if shape is None else Parameter(aten.empty(shape, device=device, dtype=dtype))
        self.register_parameter(name, weight)

    def _reset_parameters(self) -> None:
        """Draw the initial values again: weights of the projections Xavier-uniform, biases 0."""
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """key_padding_mask (N, S): true where a key does not count. attn_mask (L, S) or (N·heads,
        L, S): true where a query may not look; or numbers to add to the scores. is_causal says
        that attn_mask is the causal one. average_attn_weights: else weights (N, heads, L, S)."""
        fused = self._fused(query, key, value, key_padding_mask, attn_mask)
        turned = self.batch_first and query.ndim == 3
        if turned:
            query, key, value = _turned(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights or fused,
            attn_mask=attn_mask, use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        if turned:
            output = aten.transpose(output, 0, 1)
        if fused:
            output = aten.contiguous(output)
        return output, weights if need_weights else None

    def _fused(self, query: Any, key: Any, value: Any, padding: Any, mask: Any) -> bool:
        """Whether PyTorch would run its fused inference kernel.

        Its results differ in two ways that can be seen: a query that may look nowhere gives NaN,
        not 0, also without weights; and the output is contiguous.
        """
        return (
            not self.training
            and self.batch_first
            and query is key
            and key is value
            and query.ndim == 3
            and self._qkv_same_embed_dim
            and self.in_proj_bias is not None
            and query.dtype == self.in_proj_weight.dtype == self.in_proj_bias.dtype
            and self.num_heads % 2 == 0
            and self.bias_k is None
            and not self.add_zero_attn
            and all(m is None or m.dtype == bool_ for m in (padding, mask))
            and not is_autocast_enabled(query.device.type)
            and not needs_grad(query, *self.parameters())
        )

    def merge_masks(self, attn_mask: Any, key_padding_mask: Any, query: Any) -> tuple[Any, Any]:
        """One mask (N, heads, L, L) of both, and its kind: 0 attn_mask alone (as it is), 1
        key_padding_mask alone (as it is), 2 both; None of none."""
        mask, kind = None, None
        if key_padding_mask is not None:
            mask, kind = key_padding_mask, 1
        if attn_mask is not None:
            batch, length = query.shape[:2]
            kind = 2
            if attn_mask.ndim == 3:
                wide = aten.view(attn_mask, (batch, -1, length, length))
            else:
                wide = aten.view(attn_mask, (1, 1, length, length))
                wide = aten.expand(wide, (batch, self.num_heads, -1, -1))
            mask = wide
            if key_padding_mask is not None:
                padding = aten.view(key_padding_mask, (batch, 1, 1, length))
                mask = wide + aten.expand(padding, (-1, self.num_heads, -1, -1))
        return mask, kind


def _turned(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """All three with the batch second; what was the same tensor stays the same, which saves two
    products."""
    q = aten.transpose(query, 0, 1)
    k = q if key is query else aten.transpose(key, 0, 1)
    v = k if value is key else aten.transpose(value, 0, 1)
    return q, k, v


def needs_grad(*tensors: Any) -> bool:
    """Whether a call with these tensors would be recorded."""
    return is_grad_enabled() and any(t.requires_grad for t in tensors)


__all__ = ["MultiheadAttention"]
