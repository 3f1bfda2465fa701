"""Caltech 101 (Li et al. 2004) and Caltech 256 (Griffin et al. 2007): photographs of objects.

Source: https://docs.pytorch.org/vision/0.28/datasets.html#image-classification
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.archives import extract_archive
from torchlab.vision.datasets.utils import (
    NOT_FOUND_OR_CORRUPTED,
    download_and_extract_archive,
    verify_str_arg,
)
from torchlab.vision.datasets.vision import Transform, VisionDataset

PIL = lazy("PIL.Image", needs="pip install pillow")
scipy_io = lazy("scipy.io")

# Categories whose annotations lie in a folder of another name.
_OTHER_NAMES = {
    "Faces": "Faces_2", "Faces_easy": "Faces_3", "Motorbikes": "Motorbikes_16",
    "airplanes": "Airplanes_Side_2",
}  # fmt: skip


class Caltech101(VisionDataset):
    """(Pillow image, target). target_type: "category", the class's number; "annotation", the
    points of an outline (2, N); or a list of both, which gives a tuple.

    The files are in root/caltech101. Attributes: categories, annotation_categories, y (numbers).
    """

    _URL = "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip"
    _MD5 = "3138e1922a9193bfa496528edbbc45d0"

    def __init__(
        self,
        root: str | os.PathLike[str],
        target_type: list[str] | str = "category",
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        folder = os.path.join(os.path.expanduser(root), "caltech101")
        super().__init__(folder, transform=transform, target_transform=target_transform)
        types = [target_type] if isinstance(target_type, str) else target_type
        known = ("category", "annotation")
        self.target_type = [verify_str_arg(t, "target_type", known) for t in types]
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        found = sorted(os.listdir(self._images()))
        self.categories = [name for name in found if name != "BACKGROUND_Google"]
        self.annotation_categories = [_OTHER_NAMES.get(name, name) for name in self.categories]
        self.index: list[int] = []
        self.y: list[int] = []
        for number, name in enumerate(self.categories):
            count = len(os.listdir(os.path.join(self._images(), name)))
            self.index += range(1, count + 1)
            self.y += [number] * count

    def _images(self) -> str:
        return os.path.join(str(self.root), "101_ObjectCategories")

    def _annotations(self) -> str:
        return os.path.join(str(self.root), "Annotations")

    def _check_integrity(self) -> bool:
        return os.path.exists(self._images())

    def download(self) -> None:
        """The archive and the two in it, unpacked."""
        if self._check_integrity():
            return
        download_and_extract_archive(
            self._URL, str(self.root), filename="caltech-101.zip", md5=self._MD5
        )
        inner = os.path.join(str(self.root), "caltech-101")
        for name in sorted(os.listdir(inner)):
            if name.endswith((".tar", ".tar.gz")):
                extract_archive(os.path.join(inner, name), self.root)

    def _target(self, kind: str, index: int) -> Any:
        if kind == "category":
            return self.y[index]
        path = os.path.join(
            self._annotations(),
            self.annotation_categories[self.y[index]],
            f"annotation_{self.index[index]:04d}.mat",
        )
        return scipy_io.loadmat(path)["obj_contour"]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        name = f"image_{self.index[index]:04d}.jpg"
        image = PIL.open(os.path.join(self._images(), self.categories[self.y[index]], name))
        targets = tuple(self._target(kind, index) for kind in self.target_type)
        return self._changed(image, targets if len(targets) > 1 else targets[0])

    def __len__(self) -> int:
        return len(self.index)

    def extra_repr(self) -> str:
        kinds: Sequence[str] = self.target_type
        return f"Target type: {kinds}"


class Caltech256(VisionDataset):
    """(Pillow image, class's number). The files are in root/caltech256/256_ObjectCategories."""

    _URL = "https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar"
    _MD5 = "67b4f42ca05d46448c6bb8ecd2220f6d"

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        folder = os.path.join(os.path.expanduser(root), "caltech256")
        super().__init__(folder, transform=transform, target_transform=target_transform)
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        self.categories = sorted(os.listdir(self._images()))
        self.index: list[int] = []
        self.y: list[int] = []
        for number, name in enumerate(self.categories):
            files = os.listdir(os.path.join(self._images(), name))
            count = sum(file.endswith(".jpg") for file in files)
            self.index += range(1, count + 1)
            self.y += [number] * count

    def _images(self) -> str:
        return os.path.join(str(self.root), "256_ObjectCategories")

    def _check_integrity(self) -> bool:
        return os.path.exists(self._images())

    def download(self) -> None:
        """The archive, unpacked."""
        if self._check_integrity():
            return
        download_and_extract_archive(
            self._URL, str(self.root), filename="256_ObjectCategories.tar", md5=self._MD5
        )

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        y = self.y[index]
        name = f"{y + 1:03d}_{self.index[index]:04d}.jpg"
        image = PIL.open(os.path.join(self._images(), self.categories[y], name))
        return self._changed(image, y)

    def __len__(self) -> int:
        return len(self.index)
