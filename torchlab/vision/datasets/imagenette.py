"""Imagenette (Howard 2019): ten classes of ImageNet that are easily told apart.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.Imagenette.html
"""

from __future__ import annotations

import os

from torchlab.vision.datasets.folder import default_loader, find_classes, make_dataset
from torchlab.vision.datasets.listed import ListedImages, Loader
from torchlab.vision.datasets.utils import download_and_extract_archive, verify_str_arg
from torchlab.vision.datasets.vision import Transform

_FROM = "https://s3.amazonaws.com/fast-ai-imageclas/"


class Imagenette(ListedImages):
    """(image, class's number). split: "train" or "val"; size: "full", "320px" or "160px". The files
    are in root/imagenette2, with the size appended.

    Attributes: classes (tuples of names), class_to_idx, wnids (WordNet's), wnid_to_idx.
    """

    _ARCHIVES = {
        "full": (_FROM + "imagenette2.tgz", "fe2fc210e6bb7c5664d602c3cd71e612"),
        "320px": (_FROM + "imagenette2-320.tgz", "3df6f0d01a2c9592104656642f5e78a3"),
        "160px": (_FROM + "imagenette2-160.tgz", "e793b78cc4c9e9a4ccc0c1155377a412"),
    }
    _WNID_TO_CLASS = {
        "n01440764": ("tench", "Tinca tinca"),
        "n02102040": ("English springer", "English springer spaniel"),
        "n02979186": ("cassette player",),
        "n03000684": ("chain saw", "chainsaw"),
        "n03028079": ("church", "church building"),
        "n03394916": ("French horn", "horn"),
        "n03417042": ("garbage truck", "dustcart"),
        "n03425413": ("gas pump", "gasoline pump", "petrol pump", "island dispenser"),
        "n03445777": ("golf ball",),
        "n03888257": ("parachute", "chute"),
    }

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        size: str = "full",
        download: bool = False,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val"))
        self._size = verify_str_arg(size, "size", ("full", "320px", "160px"))
        self._url, self._md5 = self._ARCHIVES[size]
        name = os.path.splitext(os.path.basename(self._url))[0]
        self._size_root = self._below(name)
        self._image_root = str(self._size_root / split)
        if download:
            self._download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found. You can use download=True to download it.")
        self.wnids, self.wnid_to_idx = find_classes(self._image_root)
        self.classes = [self._WNID_TO_CLASS[wnid] for wnid in self.wnids]
        self.class_to_idx = {
            name: number
            for wnid, number in self.wnid_to_idx.items()
            for name in self._WNID_TO_CLASS[wnid]
        }
        self._samples = make_dataset(self._image_root, self.wnid_to_idx, (".jpeg",))
        self._image_files = [path for path, _ in self._samples]
        self._labels = [number for _, number in self._samples]

    def _check_exists(self) -> bool:
        return self._size_root.exists()

    def _download(self) -> None:
        if not self._check_exists():
            download_and_extract_archive(self._url, str(self.root), md5=self._md5)
