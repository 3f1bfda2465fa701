"""EMNIST (Cohen et al. 2017, arXiv:1702.05373): handwritten letters and digits, like MNIST.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.EMNIST.html
"""

from __future__ import annotations

import os
import shutil
import string
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.datasets.archives import extract_archive
from torchlab.vision.datasets.mnist import MNIST, read_idx
from torchlab.vision.datasets.utils import download_and_extract_archive, verify_str_arg

# Letters that look alike large and small are one class in "bymerge" and "balanced".
_MERGED = "cijklmopsuvwxyz"


class EMNIST(MNIST):
    """split: "byclass", "bymerge", "balanced", "letters", "digits" or "mnist"; the files are in
    root/EMNIST/raw. Other arguments as for MNIST. The images lie on their side, as NIST gives them.
    """

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    _all_classes = set(string.digits + string.ascii_letters)
    _merged_classes = set(_MERGED)
    classes_split_dict = {
        "byclass": sorted(_all_classes),
        "bymerge": sorted(_all_classes - _merged_classes),
        "balanced": sorted(_all_classes - _merged_classes),
        "letters": ["N/A", *string.ascii_lowercase],
        "digits": list(string.digits),
        "mnist": list(string.digits),
    }

    def __init__(self, root: str | os.PathLike[str], split: str, **kwargs: Any) -> None:
        self.split = verify_str_arg(split, "split", self.splits)
        super().__init__(root, **kwargs)
        self.classes = self.classes_split_dict[self.split]

    def _file(self, what: str) -> str:
        part = "train" if self.train else "test"
        return os.path.join(self.raw_folder, f"emnist-{self.split}-{part}-{what}")

    @property
    def images_file(self) -> str:
        return self._file("images-idx3-ubyte")

    @property
    def labels_file(self) -> str:
        return self._file("labels-idx1-ubyte")

    def _load_data(self) -> tuple[Tensor, Tensor]:
        labels = read_idx(self.labels_file).astype(np.int64)
        return aten.from_numpy(read_idx(self.images_file)), aten.from_numpy(labels)

    def _check_exists(self) -> bool:
        return os.path.isfile(self.images_file) and os.path.isfile(self.labels_file)

    def download(self) -> None:
        """The archive of all splits, unpacked."""
        if self._check_exists():
            return
        download_and_extract_archive(self.url, self.raw_folder, md5=self.md5)
        packed = os.path.join(self.raw_folder, "gzip")
        for name in sorted(os.listdir(packed)):
            if name.endswith(".gz"):
                target = os.path.join(self.raw_folder, name.removesuffix(".gz"))
                extract_archive(os.path.join(packed, name), target)
        shutil.rmtree(packed)
