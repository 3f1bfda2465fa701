"""Transformer (arXiv:1706.03762), and its stacks of layers.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.Transformer.html
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.ops.attention_multihead import as_numbers
from torchlab.nn import functional as F
from torchlab.nn import init
from torchlab.nn.containers import ModuleList
from torchlab.nn.module import Module
from torchlab.nn.normalization import LayerNorm
from torchlab.nn.transformer_layers import TransformerDecoderLayer, TransformerEncoderLayer


def _get_clones(module: Any, N: int) -> ModuleList:
    """N copies."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Any:
    full = aten.full((size, size), -math.inf, dtype=dtype, device=device)
    return aten.triu(full, diagonal=1)


def _is_causal(mask: Any, is_causal: bool | None, length: int) -> bool:
    """What the caller says; where that is None, whether `mask` is the causal one."""
    if is_causal is not None or mask is None:
        return is_causal is True
    causal = _causal_mask(length, device=mask.device, dtype=mask.dtype)
    return tuple(mask.shape) == (length, length) and bool(aten.all(mask == causal))


def _length(x: Any, batch_first: bool) -> int:
    return x.shape[0 if x.ndim == 2 or not batch_first else 1]  # type: ignore[no-any-return]


class TransformerEncoder(Module):
    """`num_layers` copies of `encoder_layer`, one after the other, then `norm`."""

    __constants__ = ("norm",)

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        if isinstance(encoder_layer, TransformerEncoderLayer):
            why_not = encoder_layer._can_fuse()
            if why_not is None and encoder_layer.norm_first:
                why_not = "encoder_layer.norm_first was True"
        else:
            why_not = "encoder_layer was not TransformerEncoderLayer"
        self.use_nested_tensor = enable_nested_tensor and why_not is None
        if enable_nested_tensor and why_not is not None:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"{why_not}",
                stacklevel=2,
            )

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:
        """src (S, N, E), (N, S, E) with batch_first, or (S, E); mask (S, S); src_key_padding_mask
        (N, S). is_causal None: found out from the mask."""
        fused = all(
            isinstance(layer, TransformerEncoderLayer) and layer._fused(src)
            for layer in self.layers
        )
        left_out = None
        numbers = as_numbers("mask", mask, src.dtype)
        if mask is not None and is_causal is None:
            first = self.layers[0]
            is_causal = _is_causal(numbers, None, _length(src, first.self_attn.batch_first))
        if fused:
            left_out = self._left_out(src, mask, src_key_padding_mask)
        else:
            given, mask = mask, numbers
            src_key_padding_mask = as_numbers(
                "src_key_padding_mask", src_key_padding_mask, src.dtype, given, "mask"
            )
        x = src
        for layer in self.layers:
            x = layer(
                x,
                src_mask=mask,
                is_causal=bool(is_causal),
                src_key_padding_mask=src_key_padding_mask,
            )
        if left_out is not None:
            x = aten.masked_fill(x, aten.unsqueeze(left_out, -1), 0.0)
        return x if self.norm is None else self.norm(x)

    def _left_out(self, src: Any, mask: Any, padding: Any) -> Any:
        """Where PyTorch's fused inference leaves padding out of the computation, so that
        the result is 0 there: the padding, as booleans. Else None."""
        if not self.use_nested_tensor or padding is None or mask is not None or src.ndim != 3:
            return None
        left_out = padding != 0 if padding.is_floating_point() else padding
        if self.mask_check and not bool(aten.all(left_out[:, 1:] | ~left_out[:, :-1])):
            return None  # padding in the middle or at the front
        return left_out


class TransformerDecoder(Module):
    """`num_layers` copies of `decoder_layer`, one after the other, then `norm`."""

    __constants__ = ("norm",)

    def __init__(
        self,
        decoder_layer: TransformerDecoderLayer,
        num_layers: int,
        norm: Module | None = None,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """Shapes as of `TransformerDecoderLayer`. tgt_is_causal None: found out from tgt_mask."""
        if tgt_mask is not None and tgt_is_causal is None:
            batch_first = self.layers[0].self_attn.batch_first
            tgt_is_causal = _is_causal(tgt_mask, None, _length(tgt, batch_first))
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """Encoder and decoder: src (S, N, E), tgt (T, N, E), or (N, …) with batch_first → as tgt.

    custom_encoder, custom_decoder: used in place of the standard stacks.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[..., Any] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-05,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        arguments = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first,
        )  # fmt: skip
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(*arguments, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **made)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            below = TransformerDecoderLayer(*arguments, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **made)
            self.decoder = TransformerDecoder(below, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """All weight matrices Xavier-uniform."""
        for weight in self.parameters():
            if weight.ndim > 1:  # type: ignore[attr-defined]
                init.xavier_uniform_(weight)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """Masks (S, S), (T, T), (T, S), padding masks (N, S), (N, T), (N, S): see
        `MultiheadAttention.forward`. Raises RuntimeError for sizes that do not fit."""
        batched = src.ndim == 3
        at = 0 if self.batch_first else 1
        if batched and src.shape[at] != tgt.shape[at]:
            raise RuntimeError(
                "the batch number of src and tgt must be equal, got "
                f"{src.shape[at]} and {tgt.shape[at]}"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                "the feature number of src and tgt must be equal to d_model, got "
                f"{src.shape[-1]} and {tgt.shape[-1]} for d_model={self.d_model}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """(sz, sz): −∞ above the diagonal, 0 on and below it."""
        return _causal_mask(sz, device=device, dtype=dtype)


__all__ = ["Transformer", "TransformerDecoder", "TransformerEncoder"]
