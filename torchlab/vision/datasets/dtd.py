"""Describable Textures (Cimpoi et al. 2014, arXiv:1311.3618): 47 kinds of texture.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.DTD.html
"""

from __future__ import annotations

import os

from torchlab.vision.datasets.folder import default_loader
from torchlab.vision.datasets.listed import ListedImages, Loader, numbered
from torchlab.vision.datasets.utils import NOT_FOUND, download_and_extract_archive, verify_str_arg
from torchlab.vision.datasets.vision import Transform


class DTD(ListedImages):
    """(image, class's number). split: "train", "val" or "test"; partition: 1 to 10, which images
    these are. The files are in root/dtd."""

    _URL = "https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz"
    _MD5 = "fff73e5086ae6bdbea199a49dfb8a4c1"

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        partition: int = 1,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        if not isinstance(partition, int):
            raise ValueError(
                "Parameter 'partition' should be an integer with `1 <= partition <= 10`, "
                f"but got {partition} instead"
            )
        self._partition = partition
        super().__init__(root, transform, target_transform, loader)
        self._base_folder = self._below("dtd")
        self._data_folder = self._base_folder / "dtd"
        self._images_folder = self._data_folder / "images"
        if download:
            self._download()
        if not self._check_exists():
            raise RuntimeError(NOT_FOUND)
        with open(self._data_folder / "labels" / f"{split}{partition}.txt") as file:
            names = [line.strip().split("/") for line in file]
        self._image_files = [self._images_folder.joinpath(*parts) for parts in names]
        self.classes = sorted({kind for kind, _ in names})
        self.class_to_idx = numbered(self.classes)
        self._labels = [self.class_to_idx[kind] for kind, _ in names]

    def _check_exists(self) -> bool:
        return self._data_folder.is_dir()

    def _download(self) -> None:
        if not self._check_exists():
            download_and_extract_archive(self._URL, str(self._base_folder), md5=self._MD5)

    def extra_repr(self) -> str:
        return f"split={self._split}, partition={self._partition}"
