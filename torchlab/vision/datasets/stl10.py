"""STL-10 (Coates et al. 2011): 96 x 96 pixels in colour, ten classes, many images without one.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.STL10.html
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from torchlab.vision.datasets.utils import (
    NOT_FOUND_OR_CORRUPTED,
    check_integrity,
    download_and_extract_archive,
    verify_str_arg,
)
from torchlab.vision.datasets.vision import Transform, VisionDataset
from torchlab.vision.transforms.functional import to_pil_image


class STL10(VisionDataset):
    """(Pillow image, class's number; -1 if there is none). The files are in root/stl10_binary.

    split: "train", "test", "unlabeled" or "train+unlabeled". folds: which of the ten lists of 1000
    images for training; None: all 5000. Attributes: data (N, 3, 96, 96) and labels, NumPy arrays;
    classes.
    """

    base_folder = "stl10_binary"
    url = "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"
    filename = "stl10_binary.tar.gz"
    tgz_md5 = "91f7769df0f17e558f3565bffb0c7dfb"
    class_names_file = "class_names.txt"
    folds_list_file = "fold_indices.txt"
    train_list = [
        ["train_X.bin", "918c2871b30a85fa023e0c44e0bee87f"],
        ["train_y.bin", "5a34089d4802c674881badbb80307741"],
        ["unlabeled_X.bin", "5242ba1fed5e4be9e1e742405eb56ca4"],
    ]
    test_list = [
        ["test_X.bin", "7f263ba9f9e0b06b93213547f721ac82"],
        ["test_y.bin", "36f9794fa4beb8a2c72628de14fa638e"],
    ]
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        folds: int | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self.splits)
        self.folds = _checked_fold(folds)
        if download:
            self.download()
        elif not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        parts = [self._read(part) for part in split.split("+")]
        self.data = np.concatenate([data for data, _ in parts])
        self.labels = np.concatenate([labels for _, labels in parts])
        self.classes: list[str] = []
        names = self._path(self.class_names_file)
        if os.path.isfile(names):
            with open(names) as file:
                self.classes = file.read().splitlines()

    def _path(self, name: str) -> str:
        return os.path.join(str(self.root), self.base_folder, name)

    def _read(self, part: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        data = np.fromfile(self._path(f"{part}_X.bin"), np.uint8)
        images = data.reshape(-1, 3, 96, 96).transpose(0, 1, 3, 2)  # the file goes down columns
        if part == "unlabeled":
            return images, np.full(len(images), -1)
        labels = np.fromfile(self._path(f"{part}_y.bin"), np.uint8) - 1
        if part == "train" and self.folds is not None:
            with open(self._path(self.folds_list_file)) as file:
                chosen = np.array(file.read().splitlines()[self.folds].split(), np.int64)
            images, labels = images[chosen], labels[chosen]
        return images, labels

    def _check_integrity(self) -> bool:
        known = (*self.train_list, *self.test_list)
        return all(check_integrity(self._path(name), md5) for name, md5 in known)

    def download(self) -> None:
        """The archive, unpacked in `root`."""
        if self._check_integrity():
            return
        download_and_extract_archive(
            self.url, str(self.root), filename=self.filename, md5=self.tgz_md5
        )
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        pixels = np.ascontiguousarray(self.data[index].transpose(1, 2, 0))
        return self._changed(to_pil_image(pixels), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {self.split}"


def _checked_fold(folds: Any) -> int | None:
    if folds is None:
        return None
    if not isinstance(folds, int):
        raise ValueError(
            f"Expected type None or int for argument folds, but got type {type(folds)}."
        )
    if folds not in range(10):
        raise ValueError(
            f"Value for argument folds should be in the range [0, 10), but got {folds}."
        )
    return folds
