"""The layers of a Transformer (arXiv:1706.03762).

Source: https://docs.pytorch.org/docs/2.13/nn.html#transformer-layers
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.ops.attention_multihead import as_numbers
from torchlab.amp.switches import is_autocast_enabled
from torchlab.nn import functional as F
from torchlab.nn.activation import GELU, ReLU
from torchlab.nn.dropout import Dropout
from torchlab.nn.linear import Linear
from torchlab.nn.module import Module
from torchlab.nn.multihead_attention import MultiheadAttention, needs_grad
from torchlab.nn.normalization import LayerNorm

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def _get_activation_fn(given: Any) -> Callable[..., Any]:
    if not isinstance(given, str):
        return given  # type: ignore[no-any-return]
    if given not in _ACTIVATIONS:
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return _ACTIVATIONS[given]


class TransformerEncoderLayer(Module):
    """Self-attention, then two linear layers, each with dropout, a residual and a LayerNorm (before
    it, with norm_first): src (S, N, E), (N, S, E) with batch_first, or (S, E) → the same shape."""

    __constants__ = ("norm_first",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[..., Any] = F.relu,
        layer_norm_eps: float = 1e-05,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        activation = _get_activation_fn(activation)
        if activation is F.relu or isinstance(activation, ReLU):
            self.activation_relu_or_gelu = 1
        elif activation is F.gelu or isinstance(activation, GELU):
            self.activation_relu_or_gelu = 2
        else:
            self.activation_relu_or_gelu = 0
        self.activation = activation

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """src_mask (S, S) or (N·heads, S, S) and src_key_padding_mask (N, S): see
        `MultiheadAttention.forward`."""
        if not self._fused(src):
            src_key_padding_mask = as_numbers(
                "src_key_padding_mask", src_key_padding_mask, src.dtype, src_mask, "src_mask"
            )
            src_mask = as_numbers("src_mask", src_mask, src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _fused(self, src: Any) -> bool:
        """Whether PyTorch would run its fused inference kernel, see `MultiheadAttention`."""
        return (
            src.ndim == 3
            and not self.training
            and self._can_fuse() is None
            and not is_autocast_enabled(src.device.type)
            and not needs_grad(src, *self.parameters())
        )

    def _can_fuse(self) -> str | None:
        """Why this layer has no fused form, in PyTorch's words; None if it has one."""
        attention = self.self_attn
        reasons = (
            (
                not attention.batch_first,
                "encoder_layer.self_attn.batch_first was not True"
                "(use batch_first for better inference performance)",
            ),
            (
                not attention._qkv_same_embed_dim,
                "encoder_layer.self_attn._qkv_same_embed_dim was not True",
            ),
            (
                attention.in_proj_bias is None,
                "encoder_layer.self_attn was passed bias=False",
            ),
            (
                not self.activation_relu_or_gelu,
                "encoder_layer.activation_relu_or_gelu was not True",
            ),
            (
                self.norm1.eps != self.norm2.eps,
                "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps",
            ),
            (attention.num_heads % 2 == 1, "encoder_layer.self_attn.num_heads is odd"),
        )
        return next((words for holds, words in reasons if holds), None)

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Any:
        x = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False,
            is_causal=is_causal,
        )[0]  # fmt: skip
        return self.dropout1(x)

    def _ff_block(self, x: Any) -> Any:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout2(x)


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's result, then two linear layers, each with dropout,
    a residual and a LayerNorm (before it, with norm_first): tgt (T, N, E), memory (S, N, E), or
    (N, …) with batch_first → as tgt."""

    __constants__ = ("norm_first",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[..., Any] = F.relu,
        layer_norm_eps: float = 1e-05,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        attention: dict[str, Any] = {"dropout": dropout, "batch_first": batch_first, "bias": bias}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention, **made)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """Masks (T, T) and (T, S), padding masks (N, T) and (N, S): see
        `MultiheadAttention.forward`."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Any:
        x = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
            is_causal=is_causal, need_weights=False,
        )[0]  # fmt: skip
        return self.dropout1(x)

    def _mha_block(
        self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool
    ) -> Any:
        x = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
            is_causal=is_causal, need_weights=False,
        )[0]  # fmt: skip
        return self.dropout2(x)

    def _ff_block(self, x: Any) -> Any:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout3(x)


__all__ = ["TransformerDecoderLayer", "TransformerEncoderLayer"]
