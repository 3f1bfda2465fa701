"""The names of the classes, which are facts of the data sets: a file each, a name a line, in the
order of the models' outputs. "N/A" stands for numbers that the data set left out.

    from torchlab.vision.models._meta import _IMAGENET_CATEGORIES

Sources: https://image-net.org (ILSVRC 2012), https://cocodataset.org,
http://host.robots.ox.ac.uk/pascal/VOC, Kinetics-400 (arXiv:1705.06950).
"""

from __future__ import annotations

import functools
import pathlib

_LISTS = {
    "_IMAGENET_CATEGORIES": "imagenet",
    "_COCO_CATEGORIES": "coco",
    "_COCO_PERSON_CATEGORIES": "coco_person",
    "_COCO_PERSON_KEYPOINT_NAMES": "coco_person_keypoints",
    "_VOC_CATEGORIES": "voc",
    "_KINETICS400_CATEGORIES": "kinetics400",
}


@functools.cache
def names(of: str) -> list[str]:
    """The names in the file `of`.txt: one list, which all weights share."""
    return pathlib.Path(__file__).with_name(f"{of}.txt").read_text(encoding="utf-8").splitlines()


def __getattr__(name: str) -> list[str]:
    if name not in _LISTS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return names(_LISTS[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *_LISTS})
