"""What data sets have in common that know their images as a list of files with labels.

Source: https://docs.pytorch.org/vision/0.28/datasets.html#image-classification
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

from torchlab.vision.datasets.folder import default_loader
from torchlab.vision.datasets.vision import Transform, VisionDataset

Loader = Callable[[Any], Any]


class ListedImages(VisionDataset):
    """(image, label) of `_image_files` and `_labels`. `loader`: reads a file (a Pillow image)."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader = loader
        self._image_files: list[Any] = []
        self._labels: list[Any] = []

    def _below(self, *names: str) -> pathlib.Path:
        return pathlib.Path(str(self.root), *names)

    def __len__(self) -> int:
        return len(self._image_files)

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        return self._changed(self.loader(self._image_files[idx]), self._labels[idx])


def numbered(names: list[str]) -> dict[str, int]:
    """Each class's number."""
    return {name: i for i, name in enumerate(names)}


__all__ = ["ListedImages", "Loader", "numbered"]
