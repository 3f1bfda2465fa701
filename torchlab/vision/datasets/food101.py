"""Food-101 (Bossard et al. 2014): photographs of 101 dishes.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.Food101.html
"""

from __future__ import annotations

import json
import os

from torchlab.vision.datasets.folder import default_loader
from torchlab.vision.datasets.listed import ListedImages, Loader, numbered
from torchlab.vision.datasets.utils import NOT_FOUND, download_and_extract_archive, verify_str_arg
from torchlab.vision.datasets.vision import Transform


class Food101(ListedImages):
    """(image, class's number). split: "train" or "test". The files are in root/food-101."""

    _URL = "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz"
    _MD5 = "85eeb15f3717b99a5da872d97d918f87"

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        self._base_folder = self._below("food-101")
        self._meta_folder = self._base_folder / "meta"
        self._images_folder = self._base_folder / "images"
        if download:
            self._download()
        if not self._check_exists():
            raise RuntimeError(NOT_FOUND)
        with open(self._meta_folder / f"{split}.json") as file:
            names: dict[str, list[str]] = json.load(file)
        self.classes = sorted(names)
        self.class_to_idx = numbered(self.classes)
        for dish, files in names.items():
            self._labels += [self.class_to_idx[dish]] * len(files)
            self._image_files += [
                self._images_folder.joinpath(*f"{name}.jpg".split("/")) for name in files
            ]

    def _check_exists(self) -> bool:
        return self._meta_folder.is_dir() and self._images_folder.is_dir()

    def _download(self) -> None:
        if not self._check_exists():
            download_and_extract_archive(self._URL, str(self.root), md5=self._MD5)

    def extra_repr(self) -> str:
        return f"split={self._split}"
