"""Images of several sizes in one batch.

Source: https://docs.pytorch.org/vision/0.28/models.html#object-detection
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor


class ImageList:
    """A padded batch (N, C, H, W) and the (height, width) of each image within it."""

    def __init__(self, tensors: Tensor, image_sizes: list[tuple[int, int]]) -> None:
        self.tensors = tensors
        self.image_sizes = image_sizes

    def to(self, device: Any) -> ImageList:
        """The same on another device."""
        return ImageList(self.tensors.to(device), self.image_sizes)


__all__ = ["ImageList"]
