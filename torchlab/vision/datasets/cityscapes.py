"""Cityscapes (Cordts et al. 2016): streets of 50 cities, every pixel labelled.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.Cityscapes.html
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from torchlab._core.lazy import lazy
from torchlab.vision.datasets.archives import extract_archive
from torchlab.vision.datasets.utils import verify_str_arg
from torchlab.vision.datasets.vision import Transform, VisionDataset

PIL = lazy("PIL.Image", needs="pip install pillow")

_ENDS = {
    "instance": "instanceIds.png", "semantic": "labelIds.png", "color": "color.png",
    "polygon": "polygons.json",
}  # fmt: skip
_CATEGORIES = ("void", "flat", "construction", "object", "nature", "sky", "human", "vehicle")
# Name, category, number in training (- for none), colour; one after another from number 0 on.
# Source: labels.py in https://github.com/mcordts/cityscapesScripts
_LABELS = """\
unlabeled,void,-,0 0 0; ego vehicle,void,-,0 0 0; rectification border,void,-,0 0 0;
out of roi,void,-,0 0 0; static,void,-,0 0 0; dynamic,void,-,111 74 0; ground,void,-,81 0 81;
road,flat,0,128 64 128; sidewalk,flat,1,244 35 232; parking,flat,-,250 170 160;
rail track,flat,-,230 150 140; building,construction,2,70 70 70; wall,construction,3,102 102 156;
fence,construction,4,190 153 153; guard rail,construction,-,180 165 180;
bridge,construction,-,150 100 100; tunnel,construction,-,150 120 90; pole,object,5,153 153 153;
polegroup,object,-,153 153 153; traffic light,object,6,250 170 30;
traffic sign,object,7,220 220 0; vegetation,nature,8,107 142 35; terrain,nature,9,152 251 152;
sky,sky,10,70 130 180; person,human,11,220 20 60; rider,human,12,255 0 0; car,vehicle,13,0 0 142;
truck,vehicle,14,0 0 70; bus,vehicle,15,0 60 100; caravan,vehicle,-,0 0 90;
trailer,vehicle,-,0 0 110; train,vehicle,16,0 80 100; motorcycle,vehicle,17,0 0 230;
bicycle,vehicle,18,119 11 32"""


class CityscapesClass(NamedTuple):
    """A label: `id` is what the files hold, `train_id` what one learns (255: nothing)."""

    name: str
    id: int
    train_id: int
    category: str
    category_id: int
    has_instances: bool
    ignore_in_eval: bool
    color: tuple[int, ...]


def _classes() -> list[CityscapesClass]:
    found = []
    for number, line in enumerate(_LABELS.replace("\n", " ").split(";")):
        name, category, train, color = line.strip().split(",")
        found.append(
            CityscapesClass(
                name,
                number,
                255 if train == "-" else int(train),
                category,
                _CATEGORIES.index(category),
                category in ("human", "vehicle"),
                train == "-",
                tuple(int(c) for c in color.split()),
            )
        )
    plate = CityscapesClass("license plate", -1, -1, "vehicle", 7, False, True, (0, 0, 142))
    return [*found, plate]


class Cityscapes(VisionDataset):
    """(Pillow image, target). mode: "fine" (split "train", "val" or "test") or "coarse" ("train",
    "train_extra" or "val").

    target_type: "instance", "semantic" or "color", a Pillow image; "polygon", what the JSON file
    holds; or a list of these, which gives a tuple.

    The folders leftImg8bit and gtFine or gtCoarse are in root, or the archives with them: these are
    given to registered users only, so nothing is downloaded.

    Attributes: images, targets, the files' paths; classes.
    """

    CityscapesClass = CityscapesClass
    classes = _classes()

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str = "train",
        mode: str = "fine",
        target_type: list[str] | str = "instance",
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        transforms: Transform | None = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        verify_str_arg(mode, "mode", ("fine", "coarse"))
        splits = ("train", "test", "val") if mode == "fine" else ("train", "train_extra", "val")
        known = "', '".join(splits)
        verify_str_arg(
            split,
            "split",
            splits,
            f"Unknown value '{split}' for argument split if mode is '{mode}'. Valid values are"
            f" {{'{known}'}}.",
        )
        self.target_type = target_type if isinstance(target_type, list) else [target_type]
        for kind in self.target_type:
            verify_str_arg(kind, "target_type", ("instance", "semantic", "polygon", "color"))
        self.split = split
        self.mode = "gtFine" if mode == "fine" else "gtCoarse"
        self.images_dir = os.path.join(str(self.root), "leftImg8bit", split)
        self.targets_dir = os.path.join(str(self.root), self.mode, split)
        if not self._check_exists():
            self._unpack()
        self.images: list[str] = []
        self.targets: list[list[str]] = []
        for city in sorted(os.listdir(self.images_dir)):
            for name in sorted(os.listdir(os.path.join(self.images_dir, city))):
                self.images.append(os.path.join(self.images_dir, city, name))
                start = f"{name.split('_leftImg8bit')[0]}_{self.mode}_"
                self.targets.append(
                    [
                        os.path.join(self.targets_dir, city, start + _ENDS[kind])
                        for kind in self.target_type
                    ]
                )

    def _check_exists(self) -> bool:
        return os.path.isdir(self.images_dir) and os.path.isdir(self.targets_dir)

    def _unpack(self) -> None:
        images = "trainextra" if self.split == "train_extra" else "trainvaltest"
        targets = "_trainvaltest" if self.mode == "gtFine" else ""
        names = (f"leftImg8bit_{images}.zip", f"{self.mode}{targets}.zip")
        archives = [os.path.join(str(self.root), name) for name in names]
        if not all(os.path.isfile(archive) for archive in archives):
            raise RuntimeError(
                "Dataset not found or incomplete. Please make sure all required folders for the"
                ' specified "split" and "mode" are inside the "root" directory'
            )
        for archive in archives:
            extract_archive(archive, self.root)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = PIL.open(self.images[index]).convert("RGB")
        found = tuple(_read(path) for path in self.targets[index])
        target = found if len(found) > 1 else found[0]
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def extra_repr(self) -> str:
        return f"Split: {self.split}\nMode: {self.mode}\nType: {self.target_type}"


def _read(path: str) -> Any:
    if not path.endswith(".json"):
        return PIL.open(path)
    with open(path) as file:
        return json.load(file)
