"""`torch.nn.modules.sparse`: embeddings, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.embedding_bag import EmbeddingBag
from torchlab.nn.sparse import Embedding

__all__ = ["Embedding", "EmbeddingBag"]
