"""QMNIST (Yadav and Bottou 2019, arXiv:1905.10498): MNIST's digits again, with all that is known of
them.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.QMNIST.html
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.datasets.archives import extract_archive
from torchlab.vision.datasets.mnist import MNIST, read_idx
from torchlab.vision.datasets.utils import download_url, verify_str_arg
from torchlab.vision.transforms.functional import to_pil_image

_FROM = "https://raw.githubusercontent.com/facebookresearch/qmnist/master/"


class QMNIST(MNIST):
    """what: "train", "test" (60000), "test10k" (those of MNIST), "test50k" (the others) or "nist";
    without it `train` chooses. compat: the target is the digit; else a row of 8 numbers, of which
    the digit is the first. The files are in root/QMNIST/raw."""

    subsets = {
        "train": "train", "test": "test", "test10k": "test", "test50k": "test", "nist": "nist",
    }  # fmt: skip
    resources: Any = {
        "train": [
            (_FROM + "qmnist-train-images-idx3-ubyte.gz", "ed72d4157d28c017586c42bc6afe6370"),
            (_FROM + "qmnist-train-labels-idx2-int.gz", "0058f8dd561b90ffdd0f734c6a30e5e4"),
        ],
        "test": [
            (_FROM + "qmnist-test-images-idx3-ubyte.gz", "1394631089c404de565df7b7aeaf9412"),
            (_FROM + "qmnist-test-labels-idx2-int.gz", "5b5b05890a5e13444e108efe57b788aa"),
        ],
        "nist": [
            (_FROM + "xnist-images-idx3-ubyte.xz", "7f124b3b8ab81486c9d8c2749c17f834"),
            (_FROM + "xnist-labels-idx2-int.xz", "5ed0e788978e45d4a8bd4b7caec3d79d"),
        ],
    }

    def __init__(
        self,
        root: str | os.PathLike[str],
        what: str | None = None,
        compat: bool = True,
        train: bool = True,
        **kwargs: Any,
    ) -> None:
        if what is None:
            what = "train" if train else "test"
        self.what = verify_str_arg(what, "what", tuple(self.subsets))
        self.compat = compat
        super().__init__(root, train, **kwargs)

    def _files(self) -> list[str]:
        names = (os.path.basename(url) for url, _ in self.resources[self.subsets[self.what]])
        return [os.path.join(self.raw_folder, os.path.splitext(name)[0]) for name in names]

    @property
    def images_file(self) -> str:
        return self._files()[0]

    @property
    def labels_file(self) -> str:
        return self._files()[1]

    def _check_exists(self) -> bool:
        return all(os.path.isfile(path) for path in self._files())

    def _load_data(self) -> tuple[Tensor, Tensor]:
        images, labels = read_idx(self.images_file), read_idx(self.labels_file)
        if images.dtype != np.uint8 or images.ndim != 3 or labels.shape != (len(images), 8):
            raise ValueError(
                f"{self.raw_folder}: {self.what} has images {images.dtype}{images.shape} and"
                f" labels {labels.shape}; (N, H, W) bytes and (N, 8) were expected"
            )
        part = {"test10k": slice(10000), "test50k": slice(10000, None)}.get(self.what, slice(None))
        return aten.from_numpy(images[part]), aten.from_numpy(labels[part].astype(np.int64))

    def download(self) -> None:
        """The two files of the subset."""
        if self._check_exists():
            return
        for url, md5 in self.resources[self.subsets[self.what]]:
            download_url(url, self.raw_folder, md5=md5)
            extract_archive(os.path.join(self.raw_folder, os.path.basename(url)))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        target = self.targets[index]
        known = int(target[0]) if self.compat else target
        return self._changed(to_pil_image(self.data[index]), known)

    def extra_repr(self) -> str:
        return f"Split: {self.what}"
