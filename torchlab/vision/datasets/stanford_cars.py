"""Stanford Cars (Krause et al. 2013): 196 models of cars.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.StanfordCars.html
"""

from __future__ import annotations

import os

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.folder import default_loader
from torchlab.vision.datasets.listed import ListedImages, Loader, numbered
from torchlab.vision.datasets.utils import verify_str_arg
from torchlab.vision.datasets.vision import Transform

scipy_io = lazy("scipy.io")


class StanfordCars(ListedImages):
    """(image, class's number). split: "train" or "test". The files are in root/stanford_cars; the
    address from which they came is gone, so `download` raises ValueError."""

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
        self._base_folder = self._below("stanford_cars")
        devkit = self._base_folder / "devkit"
        if split == "train":
            self._annotations_mat_path = devkit / "cars_train_annos.mat"
        else:
            self._annotations_mat_path = self._base_folder / "cars_test_annos_withlabels.mat"
        self._images_base_path = self._base_folder / f"cars_{split}"
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found.")
        found = scipy_io.loadmat(self._annotations_mat_path, squeeze_me=True)["annotations"]
        self._samples = [
            (str(self._images_base_path / car["fname"]), int(car["class"]) - 1)
            for car in found.ravel()
        ]
        self._image_files = [path for path, _ in self._samples]
        self._labels = [number for _, number in self._samples]
        meta = scipy_io.loadmat(str(devkit / "cars_meta.mat"), squeeze_me=True)
        self.classes = meta["class_names"].tolist()
        self.class_to_idx = numbered(self.classes)

    def _check_exists(self) -> bool:
        if not (self._base_folder / "devkit").is_dir():
            return False
        return self._annotations_mat_path.exists() and self._images_base_path.is_dir()

    def download(self) -> None:
        """ValueError: there is nowhere to load the files from."""
        raise ValueError(
            "The original URL is broken so the StanfordCars dataset cannot be downloaded anymore."
        )
