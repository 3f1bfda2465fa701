"""SVHN (Netzer et al. 2011): 32 x 32 pixels in colour of house numbers, in MATLAB's files.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.SVHN.html
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.utils import (
    NOT_FOUND_OR_CORRUPTED,
    check_integrity,
    download_url,
    verify_str_arg,
)
from torchlab.vision.datasets.vision import Transform, VisionDataset
from torchlab.vision.transforms.functional import to_pil_image

scipy_io = lazy("scipy.io")
_FROM = "http://ufldl.stanford.edu/housenumbers/"


class SVHN(VisionDataset):
    """(Pillow image, digit). split: "train", "test" or "extra"; the files are in root.

    Attributes: data (N, 3, 32, 32) and labels (N), NumPy arrays.
    """

    split_list = {
        "train": [
            _FROM + "train_32x32.mat",
            "train_32x32.mat",
            "e26dedcc434d2e4c54c9b2d4a06d8373",
        ],
        "test": [_FROM + "test_32x32.mat", "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"],
        "extra": [
            _FROM + "extra_32x32.mat",
            "extra_32x32.mat",
            "a93ce644f1a588dc4d68dda5feec44a7",
        ],
    }

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", tuple(self.split_list))
        self.url, self.filename, self.file_md5 = self.split_list[split]
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        found = scipy_io.loadmat(os.path.join(str(self.root), self.filename))
        self.data = np.transpose(found["X"], (3, 2, 0, 1))
        self.labels = found["y"].astype(np.int64).squeeze()
        self.labels[self.labels == 10] = 0  # the file says 10 for the digit 0

    def _check_integrity(self) -> bool:
        return check_integrity(os.path.join(str(self.root), self.filename), self.file_md5)

    def download(self) -> None:
        """The split's file."""
        download_url(self.url, str(self.root), self.filename, self.file_md5)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        pixels = np.ascontiguousarray(np.transpose(self.data[index], (1, 2, 0)))
        return self._changed(to_pil_image(pixels), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {self.split}"
