"""`torch.nn.modules.transformer`: transformers, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
    _get_clones,
)
from torchlab.nn.transformer_layers import (
    TransformerDecoderLayer,
    TransformerEncoderLayer,
    _get_activation_fn,
)

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "_get_activation_fn",
    "_get_clones",
]
