"""Country211 (Radford et al. 2021, arXiv:2103.00020): photographs by the country of their place.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.Country211.html
"""

from __future__ import annotations

import os

from torchlab.vision.datasets.folder import ImageFolder, default_loader
from torchlab.vision.datasets.listed import Loader
from torchlab.vision.datasets.utils import NOT_FOUND, download_and_extract_archive, verify_str_arg
from torchlab.vision.datasets.vision import Transform


class Country211(ImageFolder):
    """(image, country's number). split: "train", "valid" or "test". The files are in
    root/country211."""

    _URL = "https://openaipublic.azureedge.net/clip/data/country211.tgz"
    _MD5 = "84988d7644798601126c29e9877aab6a"

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        self._split = verify_str_arg(split, "split", ("train", "valid", "test"))
        self.root = os.path.expanduser(root)
        self._base_folder = os.path.join(self.root, "country211")
        if download:
            self._download()
        if not self._check_exists():
            raise RuntimeError(NOT_FOUND)
        folder = os.path.join(self._base_folder, split)
        super().__init__(folder, transform, target_transform, loader)
        self.root = os.path.expanduser(root)

    def _check_exists(self) -> bool:
        return os.path.isdir(self._base_folder)

    def _download(self) -> None:
        if not self._check_exists():
            download_and_extract_archive(self._URL, str(self.root), md5=self._MD5)
