"""CelebA (Liu et al. 2015): 202,599 faces of 10,177 people, with 40 attributes each.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.CelebA.html
"""

from __future__ import annotations

import csv
import os
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
from torchlab.vision.datasets.archives import extract_archive
from torchlab.vision.datasets.utils import (
    NOT_FOUND_OR_CORRUPTED,
    check_integrity,
    download_file_from_google_drive,
    verify_str_arg,
)
from torchlab.vision.datasets.vision import Transform, VisionDataset

PIL = lazy("PIL.Image", needs="pip install pillow")

_SPLITS = ("train", "valid", "test", "all")
_TARGETS = ("attr", "identity", "bbox", "landmarks")


class CelebA(VisionDataset):
    """(Pillow image of 178 x 218, target). split: "train", "valid", "test" or "all".

    target_type: "attr", 40 labels 0 or 1 (40,); "identity", the person's number (); "bbox", the
    box (4,) of corner and size in the picture before it was cut out; "landmarks", five points
    (10,); all int64. A list of these gives a tuple, an empty one None.

    The files are in root/celeba. Attributes: filename, attr, identity, bbox, landmarks_align,
    attr_names.
    """

    base_folder = "celeba"
    file_list = [
        (
            "0B7EVK8r0v71pZjFTYXZWM3FlRnM",
            "00d2c5bc6d35e252742224ab0c1e8fcb",
            "img_align_celeba.zip",
        ),
        (
            "0B7EVK8r0v71pblRyaVFSWGxPY0U",
            "75e246fa4810816ffd6ee81facbd244c",
            "list_attr_celeba.txt",
        ),
        (
            "1_ee_0u7vcNLOfNLegJRHmolfH5ICW-XS",
            "32bd1bd63d3c78cd57e08160ec5ed1e2",
            "identity_CelebA.txt",
        ),
        (
            "0B7EVK8r0v71pbThiMVRxWXZ4dU0",
            "00566efa6fedff7a56946cd1c10f1c16",
            "list_bbox_celeba.txt",
        ),
        (
            "0B7EVK8r0v71pd0FJY3Blby1HUTQ",
            "cc24ecafdb5b50baae59b03474781f8c",
            "list_landmarks_align_celeba.txt",
        ),
        (
            "0B7EVK8r0v71pY0NSMzRuSXJEVkk",
            "d32c9cbf5e040fd4025c592c306e6668",
            "list_eval_partition.txt",
        ),
    ]

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        target_type: list[str] | str = "attr",
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = split
        self.target_type = target_type if isinstance(target_type, list) else [target_type]
        if not self.target_type and target_transform is not None:
            raise RuntimeError("target_transform is specified but target_type is empty")
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        name = split.lower() if isinstance(split, str) else split
        part = _SPLITS.index(verify_str_arg(name, "split", _SPLITS))
        _, files, parts = self._table("list_eval_partition.txt")
        chosen = np.arange(len(files)) if name == "all" else np.flatnonzero(parts[:, 0] == part)
        self.filename = [files[i] for i in chosen]

        def rows(table: np.ndarray) -> Any:
            return aten.from_numpy(table[chosen])

        self.identity = rows(self._table("identity_CelebA.txt")[2])
        self.bbox = rows(self._table("list_bbox_celeba.txt", 2)[2])
        self.landmarks_align = rows(self._table("list_landmarks_align_celeba.txt", 2)[2])
        self.attr_names, _, signs = self._table("list_attr_celeba.txt", 2)
        self.attr = rows((signs + 1) // 2)

    def _path(self, name: str) -> str:
        return os.path.join(str(self.root), self.base_folder, name)

    def _table(self, name: str, head: int = 0) -> tuple[list[str], list[str], np.ndarray]:
        """Names of the columns (in the last of `head` lines), names of the rows, numbers."""
        with open(self._path(name), newline="") as file:
            lines = list(csv.reader(file, delimiter=" ", skipinitialspace=True))
        columns, lines = lines[head - 1] if head else [], lines[head:]
        numbers = np.array([[int(x) for x in line[1:]] for line in lines], np.int64)
        return columns, [line[0] for line in lines], numbers

    def _check_integrity(self) -> bool:
        # The archive itself may be gone once it is unpacked.
        tables = [item for item in self.file_list if not item[2].endswith(".zip")]
        whole = all(check_integrity(self._path(name), md5) for _, md5, name in tables)
        return whole and os.path.isdir(self._path("img_align_celeba"))

    def download(self) -> None:
        """The archive and the tables; the archive unpacked."""
        if self._check_integrity():
            return
        for number, md5, name in self.file_list:
            download_file_from_google_drive(number, self._path(""), name, md5)
        extract_archive(self._path("img_align_celeba.zip"))

    def _target(self, kind: str, index: int) -> Any:
        verify_str_arg(kind, "target_type", _TARGETS)
        if kind == "identity":
            return self.identity[index, 0]
        tables = {"attr": self.attr, "bbox": self.bbox, "landmarks": self.landmarks_align}
        return tables[kind][index]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = PIL.open(self._path(os.path.join("img_align_celeba", self.filename[index])))
        targets = tuple(self._target(kind, index) for kind in self.target_type)
        if not targets:
            return (image if self.transform is None else self.transform(image)), None
        return self._changed(image, targets if len(targets) > 1 else targets[0])

    def __len__(self) -> int:
        return len(self.attr)

    def extra_repr(self) -> str:
        return f"Target type: {self.target_type}\nSplit: {self.split}"
