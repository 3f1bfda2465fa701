"""Omniglot (Lake et al. 2015): 1,623 characters of 50 alphabets, each drawn by 20 people.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.Omniglot.html
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.utils import (
    NOT_FOUND_OR_CORRUPTED,
    check_integrity,
    download_and_extract_archive,
    list_dir,
    list_files,
)
from torchlab.vision.datasets.vision import Transform, VisionDataset

PIL = lazy("PIL.Image", needs="pip install pillow")


class Omniglot(VisionDataset):
    """(Pillow image of shades of gray, character's number). background: the 964 characters to
    learn from, else the 659 to be tested with. loader: reads a file instead.

    The files are in root/omniglot-py. Alphabets, characters and drawings come by their names.
    """

    folder = "omniglot-py"
    download_url_prefix = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
    zips_md5 = {
        "images_background": "68d2efa1b9178cc56df9314c21c6e718",
        "images_evaluation": "6b91aef0f799c5bb55b94e3f2daec811",
    }

    def __init__(
        self,
        root: str | os.PathLike[str],
        background: bool = True,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
        loader: Callable[[Any], Any] | None = None,
    ) -> None:
        folder = os.path.join(os.path.expanduser(root), self.folder)
        super().__init__(folder, transform=transform, target_transform=target_transform)
        self.background = background
        self.loader = loader
        self._part = "images_background" if background else "images_evaluation"
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        self.target_folder = os.path.join(folder, self._part)
        self._alphabets = sorted(list_dir(self.target_folder))
        self._characters = [
            os.path.join(alphabet, name)
            for alphabet in self._alphabets
            for name in sorted(list_dir(os.path.join(self.target_folder, alphabet)))
        ]
        self._character_images = [
            [
                (name, number)
                for name in sorted(list_files(os.path.join(self.target_folder, character), ".png"))
            ]
            for number, character in enumerate(self._characters)
        ]
        self._flat_character_images = [
            item for of_character in self._character_images for item in of_character
        ]

    def _check_integrity(self) -> bool:
        path = os.path.join(str(self.root), self._part + ".zip")
        return check_integrity(path, self.zips_md5[self._part])

    def download(self) -> None:
        """The archive of this part, unpacked."""
        if self._check_integrity():
            return
        name = self._part + ".zip"
        download_and_extract_archive(
            f"{self.download_url_prefix}/{name}",
            str(self.root),
            filename=name,
            md5=self.zips_md5[self._part],
        )

    def __len__(self) -> int:
        return len(self._flat_character_images)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        name, number = self._flat_character_images[index]
        path = os.path.join(self.target_folder, self._characters[number], name)
        image = PIL.open(path).convert("L") if self.loader is None else self.loader(path)
        return self._changed(image, number)
