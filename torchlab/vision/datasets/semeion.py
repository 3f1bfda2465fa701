"""Semeion (Buscema 1998): 16 x 16 pixels, black or white, of digits written by hand.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.SEMEION.html
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from torchlab.vision.datasets.utils import NOT_FOUND_OR_CORRUPTED, check_integrity, download_url
from torchlab.vision.datasets.vision import Transform, VisionDataset
from torchlab.vision.transforms.functional import to_pil_image


class SEMEION(VisionDataset):
    """(Pillow image, digit). The file is root/semeion.data.

    Attributes: data (N, 16, 16) and labels (N), NumPy arrays.
    """

    url = "http://archive.ics.uci.edu/ml/machine-learning-databases/semeion/semeion.data"
    filename = "semeion.data"
    md5_checksum = "cb545d371d2ce14ec121470795a77432"

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = True,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        # 256 pixels, then the digit as a row of ten flags
        rows = np.loadtxt(os.path.join(str(self.root), self.filename), ndmin=2)
        self.data = (rows[:, :256] * 255).astype(np.uint8).reshape(-1, 16, 16)
        self.labels = np.nonzero(rows[:, 256:])[1]

    def _check_integrity(self) -> bool:
        return check_integrity(os.path.join(str(self.root), self.filename), self.md5_checksum)

    def download(self) -> None:
        """The file."""
        download_url(self.url, str(self.root), self.filename, self.md5_checksum)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._changed(to_pil_image(self.data[index]), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)
