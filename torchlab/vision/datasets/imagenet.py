"""ImageNet 2012 (Russakovsky et al. 2015, arXiv:1409.0575): a million photographs, 1000 classes.

Its archives are given out by image-net.org on request; placed in a folder, they are unpacked here.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.ImageNet.html
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

from torchlab import serialization
from torchlab._core.lazy import lazy
from torchlab.vision.datasets.archives import extract_archive
from torchlab.vision.datasets.folder import ImageFolder
from torchlab.vision.datasets.utils import check_integrity, verify_str_arg

scipy_io = lazy("scipy.io")

ARCHIVE_META = {
    "train": ("ILSVRC2012_img_train.tar", "1d675b47d978889d74fa0da5fadfb00e"),
    "val": ("ILSVRC2012_img_val.tar", "29b22e2961454d5413ddabcf34fc5622"),
    "devkit": ("ILSVRC2012_devkit_t12.tar.gz", "fa75699e90414af021442c21a62c3abf"),
}
META_FILE = "meta.bin"


class ImageNet(ImageFolder):
    """(image, class's number). split: "train" or "val". Further arguments as for ImageFolder.

    root: where the three archives lie, or what was unpacked from them (train, val, meta.bin).
    Attributes: classes (tuples of names), class_to_idx, wnids (WordNet's), wnid_to_idx.
    """

    def __init__(self, root: str | os.PathLike[str], split: str = "train", **kwargs: Any) -> None:
        root = self.root = os.path.expanduser(root)
        self.split = verify_str_arg(split, "split", ("train", "val"))
        self.parse_archives()
        names: dict[str, tuple[str, ...]] = load_meta_file(root)[0]
        super().__init__(self.split_folder, **kwargs)
        self.root = root
        self.wnids, self.wnid_to_idx = self.classes, self.class_to_idx
        self.classes = [names[wnid] for wnid in self.wnids]  # type: ignore[misc]
        self.class_to_idx = {name: i for i, some in enumerate(self.classes) for name in some}

    def parse_archives(self) -> None:
        """Unpack what is not unpacked yet."""
        root = str(self.root)
        if not check_integrity(os.path.join(root, META_FILE)):
            parse_devkit_archive(root)
        if not os.path.isdir(self.split_folder):
            (parse_train_archive if self.split == "train" else parse_val_archive)(root)

    @property
    def split_folder(self) -> str:
        return os.path.join(str(self.root), self.split)

    def extra_repr(self) -> str:
        return f"Split: {self.split}"


def load_meta_file(root: Any, file: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """(WordNet's id → names, the ids of the images for validation), as parse_devkit_archive has
    written them. RuntimeError if the file is not there."""
    path = os.path.join(root, file or META_FILE)
    if not check_integrity(path):
        raise RuntimeError(
            f"The meta file {file or META_FILE} is not present in the root directory or is"
            " corrupted. This file is automatically created by the ImageNet dataset."
        )
    found: tuple[dict[str, Any], list[str]] = serialization.load(path, weights_only=True)
    return found


def _archive(root: Any, kind: str, file: str | None) -> str:
    name, md5 = ARCHIVE_META[kind]
    path = os.path.join(root, file or name)
    if not check_integrity(path, md5):
        raise RuntimeError(
            f"The archive {file or name} is not present in the root directory or is corrupted. You"
            f" need to download it externally and place it in {root}."
        )
    return path


def parse_devkit_archive(root: Any, file: str | None = None) -> None:
    """Read the classes from the development kit and write them into meta.bin."""
    path = _archive(root, "devkit", file)
    with tempfile.TemporaryDirectory() as folder:
        extract_archive(path, folder)
        data = os.path.join(folder, "ILSVRC2012_devkit_t12", "data")
        synsets = scipy_io.loadmat(os.path.join(data, "meta.mat"), squeeze_me=True)["synsets"]
        # Those with children are groups of classes.
        leaves = [s for s in synsets if s["num_children"] == 0]
        of = {int(s["ILSVRC2012_ID"]): str(s["WNID"]) for s in leaves}
        names = {str(s["WNID"]): tuple(str(s["words"]).split(", ")) for s in leaves}
        with open(os.path.join(data, "ILSVRC2012_validation_ground_truth.txt")) as lines:
            wnids = [of[int(line)] for line in lines]
    serialization.save((names, wnids), os.path.join(root, META_FILE))


def parse_train_archive(root: Any, file: str | None = None, folder: str = "train") -> None:
    """Unpack the images for training: an archive of one archive a class."""
    path = _archive(root, "train", file)
    target = os.path.join(root, folder)
    with _unpacking(target) as partial:
        extract_archive(path, partial)
        for name in sorted(os.listdir(partial)):
            packed = os.path.join(partial, name)
            extract_archive(packed, os.path.splitext(packed)[0], remove_finished=True)


def parse_val_archive(
    root: Any, file: str | None = None, wnids: list[str] | None = None, folder: str = "val"
) -> None:
    """Unpack the images for validation, and sort them into a folder for each class."""
    path = _archive(root, "val", file)
    known = load_meta_file(root)[1] if wnids is None else wnids
    with _unpacking(os.path.join(root, folder)) as partial:
        extract_archive(path, partial)
        for wnid, name in zip(known, sorted(os.listdir(partial)), strict=True):
            os.makedirs(os.path.join(partial, wnid), exist_ok=True)
            shutil.move(os.path.join(partial, name), os.path.join(partial, wnid, name))


class _unpacking:  # used as a function
    """`with _unpacking(folder) as partial`: the folder appears when all is in it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> str:
        self.partial = self.folder + ".partial"
        shutil.rmtree(self.partial, ignore_errors=True)
        os.makedirs(self.partial)
        return self.partial

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            os.replace(self.partial, self.folder)
        else:
            shutil.rmtree(self.partial, ignore_errors=True)


__all__ = ["ImageNet"]
