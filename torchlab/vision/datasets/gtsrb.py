"""GTSRB (Stallkamp et al. 2012): German traffic signs of 43 kinds.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.GTSRB.html
"""

from __future__ import annotations

import csv
import os
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.folder import find_classes, make_dataset
from torchlab.vision.datasets.listed import ListedImages
from torchlab.vision.datasets.utils import NOT_FOUND, download_and_extract_archive, verify_str_arg
from torchlab.vision.datasets.vision import Transform

PIL = lazy("PIL.Image", needs="pip install pillow")
_FROM = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"


def _open(path: Any) -> Any:
    return PIL.open(path).convert("RGB")


class GTSRB(ListedImages):
    """(Pillow image, class's number). split: "train" or "test". The files are in root/gtsrb."""

    _archives = {
        "train": [("GTSRB-Training_fixed.zip", "513f3c79a4c5141765e10e952eaa2478")],
        "test": [
            ("GTSRB_Final_Test_Images.zip", "c7e4e6327067d32654124b0fe9e82185"),
            ("GTSRB_Final_Test_GT.zip", "fe31e9c9270bbcd7b84b7f21a9d9d9e5"),
        ],
    }
    _from = _FROM

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform, target_transform, _open)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        self._base_folder = self._below("gtsrb")
        part = "Training" if split == "train" else "Final_Test/Images"
        self._target_folder = self._base_folder.joinpath("GTSRB", *part.split("/"))
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError(NOT_FOUND)
        if split == "train":
            _, numbers = find_classes(str(self._target_folder))
            samples = make_dataset(str(self._target_folder), numbers, (".ppm",))
        else:
            with open(self._base_folder / "GT-final_test.csv", newline="") as file:
                rows = csv.DictReader(file, delimiter=";", skipinitialspace=True)
                samples = [
                    (str(self._target_folder / row["Filename"]), int(row["ClassId"]))
                    for row in rows
                ]
        self._samples = samples
        self._image_files = [path for path, _ in samples]
        self._labels = [number for _, number in samples]

    def _check_exists(self) -> bool:
        return self._target_folder.is_dir()

    def download(self) -> None:
        """The split's archives, unpacked."""
        if self._check_exists():
            return
        for name, md5 in self._archives[self._split]:
            download_and_extract_archive(self._from + name, str(self._base_folder), md5=md5)
