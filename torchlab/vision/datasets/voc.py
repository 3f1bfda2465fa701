"""PASCAL VOC (Everingham et al. 2010): photographs with the objects' classes as pictures or boxes.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.VOCDetection.html
"""

from __future__ import annotations

import os
from typing import Any
from xml.etree import ElementTree

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.utils import (
    NOT_FOUND_OR_CORRUPTED,
    download_and_extract_archive,
    verify_str_arg,
)
from torchlab.vision.datasets.vision import Transform, VisionDataset

PIL = lazy("PIL.Image", needs="pip install pillow")


def _release(year: str, filename: str, md5: str, base_dir: str, loaded: str = "") -> dict[str, str]:
    url = f"https://thor.robots.ox.ac.uk/pascal/VOC/voc{year}/{loaded or filename}"
    return {"url": url, "filename": filename, "md5": md5, "base_dir": base_dir}


DATASET_YEAR_DICT = {
    "2012": _release(
        "2012",
        "VOCtrainval_11-May-2012.tar",
        "6cd6e144f989b92b3379bac3b3de84fd",
        "VOCdevkit/VOC2012",
    ),
    "2011": _release(
        "2011",
        "VOCtrainval_25-May-2011.tar",
        "6c3384ef61512963050cb5d687e5bf1e",
        "TrainVal/VOCdevkit/VOC2011",
    ),
    "2010": _release(
        "2010",
        "VOCtrainval_03-May-2010.tar",
        "da459979d0c395079b5c75ee67908abb",
        "VOCdevkit/VOC2010",
    ),
    "2009": _release(
        "2009",
        "VOCtrainval_11-May-2009.tar",
        "a3e00b113cfcfebf17e343f59da3caa1",
        "VOCdevkit/VOC2009",
    ),
    "2008": _release(
        "2008",
        "VOCtrainval_11-May-2012.tar",
        "2629fa636546599198acfcfbfcf1904a",
        "VOCdevkit/VOC2008",
        loaded="VOCtrainval_14-Jul-2008.tar",
    ),
    "2007": _release(
        "2007",
        "VOCtrainval_06-Nov-2007.tar",
        "c52e279531787c972589f7e41ab4ae64",
        "VOCdevkit/VOC2007",
    ),
    "2007-test": _release(
        "2007",
        "VOCtest_06-Nov-2007.tar",
        "b6e924de25625d8de591ea690078ad9f",
        "VOCdevkit/VOC2007",
    ),
}


class _VOCBase(VisionDataset):
    """year: "2007" to "2012". image_set: "train", "val", "trainval"; for 2007 "test", too.

    Attributes: images and targets, the files' paths. The folder VOCdevkit is in root.
    """

    _SPLITS_DIR: str
    _TARGET_DIR: str
    _TARGET_FILE_EXT: str

    def __init__(
        self,
        root: str | os.PathLike[str],
        year: str = "2012",
        image_set: str = "train",
        download: bool = False,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        transforms: Transform | None = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.year = verify_str_arg(year, "year", [str(y) for y in range(2007, 2013)])
        sets = ["train", "trainval", "val"] + (["test"] if year == "2007" else [])
        self.image_set = verify_str_arg(image_set, "image_set", sets)
        release = DATASET_YEAR_DICT["2007-test" if image_set == "test" else year]
        self.url, self.filename = release["url"], release["filename"]
        self.md5 = release["md5"]
        folder = os.path.join(str(self.root), *release["base_dir"].split("/"))
        if download:
            download_and_extract_archive(
                self.url, str(self.root), filename=self.filename, md5=self.md5
            )
        if not os.path.isdir(folder):
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        with open(os.path.join(folder, "ImageSets", self._SPLITS_DIR, image_set + ".txt")) as file:
            names = [line.strip() for line in file if line.strip()]
        self.images = [os.path.join(folder, "JPEGImages", name + ".jpg") for name in names]
        self.targets = [
            os.path.join(folder, self._TARGET_DIR, name + self._TARGET_FILE_EXT) for name in names
        ]

    def _both(self, image: Any, target: Any) -> tuple[Any, Any]:
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        return len(self.images)


class VOCSegmentation(_VOCBase):
    """(Pillow image, Pillow image of every pixel's class; 255 for the borders)."""

    _SPLITS_DIR = "Segmentation"
    _TARGET_DIR = "SegmentationClass"
    _TARGET_FILE_EXT = ".png"

    @property
    def masks(self) -> list[str]:
        return self.targets

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = PIL.open(self.images[index]).convert("RGB")
        return self._both(image, PIL.open(self.masks[index]))


class VOCDetection(_VOCBase):
    """(Pillow image, the annotation: dicts of texts as in the XML, `object` always a list)."""

    _SPLITS_DIR = "Main"
    _TARGET_DIR = "Annotations"
    _TARGET_FILE_EXT = ".xml"

    @property
    def annotations(self) -> list[str]:
        return self.targets

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = PIL.open(self.images[index]).convert("RGB")
        tree = ElementTree.parse(self.annotations[index]).getroot()
        return self._both(image, self.parse_voc_xml(tree))

    @staticmethod
    def parse_voc_xml(node: ElementTree.Element) -> dict[str, Any]:
        """The element as a dict: its text, or its children by their names; a list where a name
        occurs more than once. Empty elements are left out."""
        if not len(node):
            return {node.tag: node.text.strip()} if node.text else {}
        found: dict[str, list[Any]] = {}
        for child in node:
            for name, value in VOCDetection.parse_voc_xml(child).items():
                found.setdefault(name, []).append(value)
        several = ("object",) if node.tag == "annotation" else ()
        return {
            node.tag: {
                name: values if len(values) > 1 or name in several else values[0]
                for name, values in found.items()
            }
        }
