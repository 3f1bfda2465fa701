"""Data sets in folders: one folder for each class.

Source: https://docs.pytorch.org/vision/0.28/datasets.html#base-classes-for-custom-datasets
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.vision import Transform, VisionDataset

PIL = lazy("PIL.Image", "pip install pillow")

IMG_EXTENSIONS = (
    ".jpg",
    ".jpeg",
    ".png",
    ".ppm",
    ".bmp",
    ".pgm",
    ".tif",
    ".tiff",
    ".webp",
)


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Whether the name ends so, in large or small letters."""
    return filename.lower().endswith(
        extensions if isinstance(extensions, str) else tuple(extensions)
    )


def is_image_file(filename: str) -> bool:
    """Whether the name ends in one of `IMG_EXTENSIONS`."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: str | os.PathLike[str]) -> tuple[list[str], dict[str, int]]:
    """The folders in `directory`, sorted, and their numbers."""
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: i for i, name in enumerate(classes)}


def make_dataset(
    directory: str | os.PathLike[str],
    class_to_idx: dict[str, int] | None = None,
    extensions: str | tuple[str, ...] | None = None,
    is_valid_file: Callable[[str], bool] | None = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """(file, class) of all files under the classes' folders that have one of `extensions`, or
    that `is_valid_file` takes."""
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        _, class_to_idx = find_classes(directory)
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError(
            "Both extensions and is_valid_file cannot be None or not None at the same time"
        )

    def wanted(path: str) -> bool:
        if is_valid_file is not None:
            return is_valid_file(path)
        assert extensions is not None
        return has_file_allowed_extension(path, extensions)

    found: list[tuple[str, int]] = []
    empty = []
    for name in sorted(class_to_idx):
        before = len(found)
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            paths = (os.path.join(folder, file) for file in sorted(files))
            found += [(path, class_to_idx[name]) for path in paths if wanted(path)]
        if len(found) == before:
            empty.append(name)
    if empty and not allow_empty:
        text = f"Found no valid file for the classes {', '.join(empty)}."
        if extensions is not None:
            known = extensions if isinstance(extensions, str) else ", ".join(extensions)
            text += f" Supported extensions are: {known}"
        raise FileNotFoundError(text)
    return found


class DatasetFolder(VisionDataset):
    """The files in root/CLASS/…, read by `loader`: (sample, class's number).

    Attributes: classes, class_to_idx, samples (file, number), targets (numbers).
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        loader: Callable[[str], Any],
        extensions: tuple[str, ...] | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(
            self.root, self.class_to_idx, extensions, is_valid_file, allow_empty
        )
        self.targets = [number for _, number in self.samples]
        self.loader = loader
        self.extensions = extensions

    @staticmethod
    def make_dataset(
        directory: Any,
        class_to_idx: dict[str, int],
        extensions: tuple[str, ...] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        if class_to_idx is None:
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: Any) -> tuple[list[str], dict[str, int]]:
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._changed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


def pil_loader(path: str) -> Any:
    """The file as an RGB Pillow image."""
    with open(path, "rb") as file:
        return PIL.open(file).convert("RGB")


def default_loader(path: str) -> Any:
    """What reads an image where nothing else is given: `pil_loader`."""
    return pil_loader(path)


class ImageFolder(DatasetFolder):
    """The images in root/CLASS/…: (Pillow image, class's number)."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(
            root,
            loader,
            IMG_EXTENSIONS if is_valid_file is None else None,
            transform,
            target_transform,
            is_valid_file,
            allow_empty,
        )
        self.imgs = self.samples
