"""`torch.nn.modules.transformer`: transformers, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.transformer import Transformer, TransformerDecoder, TransformerEncoder
from torchlab.nn.transformer_layers import TransformerDecoderLayer, TransformerEncoderLayer

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]
