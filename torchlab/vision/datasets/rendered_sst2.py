"""Rendered SST2 (Radford et al. 2021, arXiv:2103.00020): sentences of film reviews as images.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.RenderedSST2.html
"""

from __future__ import annotations

import os

from torchlab.vision.datasets.folder import default_loader, make_dataset
from torchlab.vision.datasets.listed import ListedImages, Loader
from torchlab.vision.datasets.utils import NOT_FOUND, download_and_extract_archive, verify_str_arg
from torchlab.vision.datasets.vision import Transform


class RenderedSST2(ListedImages):
    """(image, 0 negative or 1 positive). split: "train", "val" or "test". The files are in
    root/rendered-sst2."""

    _URL = "https://openaipublic.azureedge.net/clip/data/rendered-sst2.tgz"
    _MD5 = "2384d08e9dcfa4bd55b324e610496ee5"
    _folders = {"train": "train", "val": "valid", "test": "test"}

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
        self._split = verify_str_arg(split, "split", tuple(self._folders))
        self._base_folder = self._below("rendered-sst2")
        self.classes = ["negative", "positive"]
        self.class_to_idx = {"negative": 0, "positive": 1}
        if download:
            self._download()
        if not self._check_exists():
            raise RuntimeError(NOT_FOUND)
        folder = self._base_folder / self._folders[split]
        self._samples = make_dataset(str(folder), self.class_to_idx, (".png",))
        self._image_files = [path for path, _ in self._samples]
        self._labels = [number for _, number in self._samples]

    def _check_exists(self) -> bool:
        return all((self._base_folder / name).is_dir() for name in self._needed())

    def _needed(self) -> list[str]:
        """The folders that have to be there, below rendered-sst2."""
        folder = self._folders[self._split]
        return [f"{folder}/{name}" for name in self.classes]

    def _download(self) -> None:
        if not self._check_exists():
            download_and_extract_archive(self._URL, str(self.root), md5=self._MD5)

    def extra_repr(self) -> str:
        return f"split={self._split}"
