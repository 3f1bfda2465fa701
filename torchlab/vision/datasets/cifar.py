"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009): 32 x 32 pixels in colour.

Source: https://docs.pytorch.org/vision/0.28/datasets.html#image-classification
"""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np

from torchlab.vision.datasets.utils import check_integrity, download_and_extract_archive
from torchlab.vision.datasets.vision import Transform, VisionDataset
from torchlab.vision.transforms.functional import to_pil_image

_ARRAYS = {
    (f"numpy.{core}.multiarray", name)
    for core in ("core", "_core")
    for name in ("_reconstruct", "scalar")
} | {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}


class _Unpickler(pickle.Unpickler):
    """For files from elsewhere: takes arrays, strings and numbers, and runs nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ARRAYS:
            raise pickle.UnpicklingError(
                f"a CIFAR file holds arrays and lists, not {module}.{name}"
            )
        return super().find_class(module, name)


class CIFAR10(VisionDataset):
    """Photographs of ten classes: (Pillow image, class's number). 50000 for training, 10000 for
    tests.

    root: the files are in root/cifar-10-batches-py. Attributes: data (N, 32, 32, 3), a NumPy array
    of bytes; targets, a list; classes; class_to_idx.
    RuntimeError if the files are not there with their MD5, without `download`.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [
        ["data_batch_1", "c99cafc152244af753f735de768cd75f"],
        ["data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"],
        ["data_batch_3", "54ebc095f3ab1f0389bbae665268c751"],
        ["data_batch_4", "634d18415352ddfa80567beed471001a"],
        ["data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"],
    ]
    test_list = [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    meta = {
        "filename": "batches.meta",
        "key": "label_names",
        "md5": "5ff9c542aee3614f3951f8cda6e48888",
    }

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(
                "Dataset not found or corrupted. You can use download=True to download it"
            )
        parts = [self._read(name) for name, _ in (self.train_list if train else self.test_list)]
        rows = np.concatenate([part["data"] for part in parts])
        self.data = np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self.targets: list[int] = []
        for part in parts:
            self.targets += part["labels"] if "labels" in part else part["fine_labels"]
        self.classes: list[str] = self._read(self.meta["filename"])[self.meta["key"]]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def _path(self, name: str) -> str:
        return os.path.join(str(self.root), self.base_folder, name)

    def _read(self, name: str) -> dict[str, Any]:
        with open(self._path(name), "rb") as file:
            # The files are from Python 2; latin1 gives its strings back unchanged.
            return _Unpickler(file, encoding="latin1").load()

    def _check_integrity(self) -> bool:
        known = [*self.train_list, *self.test_list, [self.meta["filename"], self.meta["md5"]]]
        return all(check_integrity(self._path(name), md5) for name, md5 in known)

    def download(self) -> None:
        """The archive, unpacked in `root`."""
        if self._check_integrity():
            return
        download_and_extract_archive(
            self.url, str(self.root), filename=self.filename, md5=self.tgz_md5
        )

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._changed(to_pil_image(self.data[index]), self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


class CIFAR100(CIFAR10):
    """Like CIFAR10, with 100 classes; the files are in root/cifar-100-python."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {
        "filename": "meta",
        "key": "fine_label_names",
        "md5": "7973b15100ade9c7d40fb424638fde48",
    }
