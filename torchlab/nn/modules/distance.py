"""`torch.nn.modules.distance`: distances, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.distance import CosineSimilarity, PairwiseDistance

__all__ = ["CosineSimilarity", "PairwiseDistance"]
