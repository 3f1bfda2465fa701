"""KITTI's objects (Geiger et al. 2012): streets, with boxes in the image and in space.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.Kitti.html
"""

from __future__ import annotations

import os
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.utils import download_and_extract_archive
from torchlab.vision.datasets.vision import Transform, VisionDataset

PIL = lazy("PIL.Image", needs="pip install pillow")


class Kitti(VisionDataset):
    """(Pillow image, objects). train: the 7,481 images with objects; else the 7,518 for which the
    target is None.

    An object is a dict: type (text), truncated, alpha, rotation_y (float), occluded (int), bbox
    (left, top, right, bottom), dimensions (height, width, length in metres), location (x, y, z).

    The files are in root/Kitti/raw, in training/image_2, training/label_2 and testing/image_2.
    """

    data_url = "https://s3.eu-central-1.amazonaws.com/avg-kitti/"
    resources = ["data_object_image_2.zip", "data_object_label_2.zip"]
    image_dir_name = "image_2"
    labels_dir_name = "label_2"

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        transforms: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.train = train
        self._location = "training" if train else "testing"
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found. You may use download=True to download it.")
        folder = self._folder(self.image_dir_name)
        names = sorted(os.listdir(folder))
        self.images = [os.path.join(folder, name) for name in names]
        self.targets: list[str] = []
        if train:
            labels = self._folder(self.labels_dir_name)
            self.targets = [os.path.join(labels, name.split(".")[0] + ".txt") for name in names]

    @property
    def _raw_folder(self) -> str:
        return os.path.join(str(self.root), type(self).__name__, "raw")

    def _folder(self, name: str) -> str:
        return os.path.join(self._raw_folder, self._location, name)

    def _check_exists(self) -> bool:
        names = [self.image_dir_name] + ([self.labels_dir_name] if self.train else [])
        return all(os.path.isdir(self._folder(name)) for name in names)

    def download(self) -> None:
        """The two archives, unpacked. (KITTI publishes no checksums; a broken archive does not
        unpack.)"""
        if self._check_exists():
            return
        for name in self.resources:
            download_and_extract_archive(
                self.data_url + name, download_root=self._raw_folder, filename=name
            )

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = PIL.open(self.images[index])
        target: Any = None
        if self.train:
            with open(self.targets[index]) as file:
                target = [_object(line.split()) for line in file if line.strip()]
        return (image, target) if self.transforms is None else self.transforms(image, target)


def _object(words: list[str]) -> dict[str, Any]:
    kind, occluded = words[0], int(words[2])
    numbers = [float(word) for word in words[1:15]]
    return {
        "type": kind,
        "truncated": numbers[0],
        "occluded": occluded,
        "alpha": numbers[2],
        "bbox": numbers[3:7],
        "dimensions": numbers[7:10],
        "location": numbers[10:13],
        "rotation_y": numbers[13],
    }
