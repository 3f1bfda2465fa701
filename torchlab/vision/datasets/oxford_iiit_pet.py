"""Oxford-IIIT Pet (Parkhi et al. 2012): cats and dogs of 37 breeds, with their outlines.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.OxfordIIITPet.html
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.listed import numbered
from torchlab.vision.datasets.utils import (
    NOT_FOUND,
    download_and_extract_archive,
    verify_str_arg,
)
from torchlab.vision.datasets.vision import Transform, VisionDataset

PIL = lazy("PIL.Image", needs="pip install pillow")


class OxfordIIITPet(VisionDataset):
    """(Pillow image, target). split: "trainval" or "test". target_types: "category" (the breed's
    number), "binary-category" (0 cat, 1 dog), "segmentation" (a Pillow image), or several, which
    give a tuple; none gives None. The files are in root/oxford-iiit-pet."""

    _RESOURCES = (
        (
            "https://www.robots.ox.ac.uk/~vgg/data/pets/data/images.tar.gz",
            "5c4f3ee8e5d25df40f4fd59a7f44e54c",
        ),
        (
            "https://www.robots.ox.ac.uk/~vgg/data/pets/data/annotations.tar.gz",
            "95a8c909bbe2e81eed6a22bccdf3f68f",
        ),
    )
    _VALID_TARGET_TYPES = ("category", "binary-category", "segmentation")

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "trainval",
        target_types: Sequence[str] | str = "category",
        transforms: Transform | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        self._split = verify_str_arg(split, "split", ("trainval", "test"))
        types = [target_types] if isinstance(target_types, str) else target_types
        self._target_types = [
            verify_str_arg(t, "target_types", self._VALID_TARGET_TYPES) for t in types
        ]
        super().__init__(root, transforms, transform, target_transform)
        self._base_folder = pathlib.Path(str(self.root)) / "oxford-iiit-pet"
        self._images_folder = self._base_folder / "images"
        self._anns_folder = self._base_folder / "annotations"
        self._segs_folder = self._anns_folder / "trimaps"
        if download:
            self._download()
        if not self._check_exists():
            raise RuntimeError(NOT_FOUND)
        ids, self._labels, self._bin_labels = [], [], []
        with open(self._anns_folder / f"{self._split}.txt") as file:
            for line in file:
                name, label, kind, _ = line.split()
                ids.append(name)
                self._labels.append(int(label) - 1)
                self._bin_labels.append(int(kind) - 1)
        breeds = {(name.rsplit("_", 1)[0], y) for name, y in zip(ids, self._labels, strict=True)}
        self.classes = [
            " ".join(part.title() for part in breed.split("_"))
            for breed, _ in sorted(breeds, key=lambda pair: pair[1])
        ]
        self.class_to_idx = numbered(self.classes)
        self.bin_classes = ["Cat", "Dog"]
        self.bin_class_to_idx = numbered(self.bin_classes)
        self._images = [self._images_folder / f"{name}.jpg" for name in ids]
        self._segs = [self._segs_folder / f"{name}.png" for name in ids]

    def _target(self, kind: str, idx: int) -> Any:
        if kind == "segmentation":
            return PIL.open(self._segs[idx])
        return (self._labels if kind == "category" else self._bin_labels)[idx]

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        image = PIL.open(self._images[idx]).convert("RGB")
        targets = tuple(self._target(kind, idx) for kind in self._target_types)
        target = targets if len(targets) > 1 else targets[0] if targets else None
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        return len(self._images)

    def _check_exists(self) -> bool:
        return self._images_folder.is_dir() and self._anns_folder.is_dir()

    def _download(self) -> None:
        if self._check_exists():
            return
        for url, md5 in self._RESOURCES:
            download_and_extract_archive(url, str(self._base_folder), md5=md5)
