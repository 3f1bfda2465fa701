"""FGVC Aircraft (Maji et al. 2013, arXiv:1306.5151): 100 kinds of aircraft.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.FGVCAircraft.html
"""

from __future__ import annotations

import os

from torchlab.vision.datasets.folder import default_loader
from torchlab.vision.datasets.listed import ListedImages, Loader, numbered
from torchlab.vision.datasets.utils import NOT_FOUND, download_and_extract_archive, verify_str_arg
from torchlab.vision.datasets.vision import Transform


class FGVCAircraft(ListedImages):
    """(image, class's number). split: "train", "val", "trainval" or "test". annotation_level: which
    classes, "variant", "family" or "manufacturer". The files are in root/fgvc-aircraft-2013b."""

    _URL = "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz"
    _lists = {
        "variant": "variants.txt", "family": "families.txt", "manufacturer": "manufacturers.txt",
    }  # fmt: skip

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "trainval",
        annotation_level: str = "variant",
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "trainval", "test"))
        level = verify_str_arg(annotation_level, "annotation_level", tuple(self._lists))
        self._annotation_level = level
        self._data_path = str(self._below("fgvc-aircraft-2013b"))
        if download:
            self._download()
        if not self._check_exists():
            raise RuntimeError(NOT_FOUND)
        self.classes = self._lines(self._lists[level])
        self.class_to_idx = numbered(self.classes)
        for line in self._lines(f"images_{level}_{split}.txt"):
            name, _, kind = line.partition(" ")
            path = os.path.join(self._data_path, "data", "images", f"{name}.jpg")
            self._image_files.append(path)
            self._labels.append(self.class_to_idx[kind])

    def _lines(self, name: str) -> list[str]:
        with open(os.path.join(self._data_path, "data", name)) as file:
            return [line.strip() for line in file]

    def _check_exists(self) -> bool:
        return os.path.isdir(self._data_path)

    def _download(self) -> None:
        if not self._check_exists():
            download_and_extract_archive(self._URL, str(self.root))
