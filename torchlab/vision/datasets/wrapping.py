"""Data sets whose samples `transforms.v2` understands: boxes and masks as tv_tensors.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.wrap_dataset_for_transforms_v2.html
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
from torchlab.vision.datasets.caltech import Caltech101, Caltech256
from torchlab.vision.datasets.celeba import CelebA
from torchlab.vision.datasets.cifar import CIFAR10
from torchlab.vision.datasets.cityscapes import Cityscapes
from torchlab.vision.datasets.coco import CocoCaptions, CocoDetection
from torchlab.vision.datasets.folder import DatasetFolder
from torchlab.vision.datasets.gtsrb import GTSRB
from torchlab.vision.datasets.imagenette import Imagenette
from torchlab.vision.datasets.kitti import Kitti
from torchlab.vision.datasets.mnist import MNIST
from torchlab.vision.datasets.oxford_iiit_pet import OxfordIIITPet
from torchlab.vision.datasets.vision import VisionDataset
from torchlab.vision.datasets.voc import VOCDetection, VOCSegmentation
from torchlab.vision.transforms.functional import pil_to_tensor

tv_tensors = lazy("torchlab.vision.tv_tensors")
coco_mask = lazy("pycocotools.mask", needs="pip install pycocotools")

Keys = Collection[str] | str | None
Change = Callable[[int, Any, Any], tuple[Any, Any]]
"""(index, image, target) → (image, target)"""

_VOC = (
    "__background__", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat",
    "chair", "cow", "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep",
    "sofa", "train", "tvmonitor",
)  # fmt: skip


def _chosen(keys: Keys, known: set[str], usual: set[str]) -> set[str]:
    """Which keys of a target are given."""
    if keys is None:
        return usual
    if keys == "all":
        return known
    missing = sorted(set(keys) - known)
    if missing:
        raise ValueError(f"Target keys {missing} are not available")
    return set(keys)


def _mask(image: Any) -> Any:
    return tv_tensors.Mask(pil_to_tensor(image))


def _boxes(rows: list[Any], form: str, image: Any) -> Any:
    size = (image.height, image.width)
    made = tv_tensors.BoundingBoxes(rows, format=form, canvas_size=size)
    return made


_KITTI = (
    "Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc",
)  # fmt: skip


def _unchanged(dataset: Any, keys: Keys) -> Change:
    return lambda index, image, target: (image, target)


def _segmentation(dataset: Any, keys: Keys) -> Change:
    return lambda index, image, target: (image, _mask(target))


def _not_supported(dataset: Any, types: list[str]) -> None:
    """RuntimeError if the data set gives one of these as its target."""
    if any(kind in types for kind in dataset.target_type):
        names = ", ".join(f"'{kind}'" for kind in types)
        raise RuntimeError(
            f"{type(dataset).__name__} dataset with `target_type=[{names}, ...]` is currently not"
            " supported by this wrapper."
        )


def _caltech101(dataset: Any, keys: Keys) -> Change:
    _not_supported(dataset, ["annotation"])
    return _unchanged(dataset, keys)


def _by_kind(kinds: list[str], wraps: dict[str, Callable[[Any, Any], Any]]) -> Change:
    """Each part of the target by its kind: `wraps[kind](part, image)`; others stay."""

    def change(index: int, image: Any, target: Any) -> tuple[Any, Any]:
        if target is None:
            return image, target
        several = len(kinds) > 1
        found = tuple(
            wraps[kind](value, image) if kind in wraps else value
            for kind, value in zip(kinds, target if several else [target], strict=True)
        )
        return image, found if several else found[0]

    return change


def _pet(dataset: Any, keys: Keys) -> Change:
    return _by_kind(dataset._target_types, {"segmentation": lambda value, image: _mask(value)})


def _celeba(dataset: Any, keys: Keys) -> Change:
    _not_supported(dataset, ["attr", "landmarks"])

    def corners(box: Any, image: Any) -> Any:
        return _boxes(aten.cat([box[:2], box[:2] + box[2:]])[None], "XYXY", image)

    return _by_kind(dataset.target_type, {"bbox": corners})


def _instances(value: Any, image: Any) -> dict[str, Any]:
    """A mask and a label for each number: a thing's is that of its label * 1000 + which it is."""
    numbers = pil_to_tensor(value)
    known = aten.unique(numbers)
    masks = aten.stack([numbers == number for number in known])
    labels = [n // 1000 if n >= 1000 else n for n in known.tolist()]
    return {"masks": tv_tensors.Mask(masks), "labels": aten.tensor(labels, dtype=known.dtype)}


def _cityscapes(dataset: Any, keys: Keys) -> Change:
    _not_supported(dataset, ["polygon", "color"])
    wraps = {"instance": _instances, "semantic": lambda value, image: _mask(value)}
    return _by_kind(dataset.target_type, wraps)


def _kitti(dataset: Any, keys: Keys) -> Change:
    known = {
        "type", "truncated", "occluded", "alpha", "bbox", "dimensions", "location", "rotation_y",
        "boxes", "labels",
    }  # fmt: skip
    wanted = _chosen(keys, known, {"boxes", "labels"})
    number = {name: i for i, name in enumerate(_KITTI)} | {"DontCare": -1}

    def change(index: int, image: Any, target: Any) -> tuple[Any, Any]:
        if target is None:
            return image, target
        found = {key: [each[key] for each in target] for key in target[0]} if target else {}
        if "boxes" in wanted:
            found["boxes"] = _boxes(found.get("bbox", aten.zeros((0, 4))), "XYXY", image)
        if "labels" in wanted:
            labels = [number[name] for name in found.get("type", [])]
            found["labels"] = aten.tensor(labels, dtype=dt.int64)
        return image, {key: value for key, value in found.items() if key in wanted}

    return change


def _voc(dataset: Any, keys: Keys) -> Change:
    wanted = _chosen(keys, {"annotation", "boxes", "labels"}, {"boxes", "labels"})
    number = {name: i for i, name in enumerate(_VOC)}

    def change(index: int, image: Any, target: Any) -> tuple[Any, Any]:
        objects = target["annotation"]["object"]
        if "boxes" in wanted:
            corners = ("xmin", "ymin", "xmax", "ymax")
            rows = [[int(o["bndbox"][corner]) for corner in corners] for o in objects]
            target["boxes"] = _boxes(rows, "XYXY", image)
        if "labels" in wanted:
            target["labels"] = aten.tensor([number[o["name"]] for o in objects])
        return image, {key: value for key, value in target.items() if key in wanted}

    return change


def _coco_mask(segmentation: Any, size: tuple[int, int]) -> Any:
    """A mask (H, W) from COCO's polygons or run lengths."""
    if isinstance(segmentation, dict):
        packed = coco_mask.frPyObjects([segmentation], *size)[0]
    else:
        packed = coco_mask.merge(coco_mask.frPyObjects(segmentation, *size))
    return aten.from_numpy(np.ascontiguousarray(coco_mask.decode(packed)))


def _coco(dataset: Any, keys: Keys) -> Change:
    known = {
        "segmentation", "area", "iscrowd", "image_id", "bbox", "category_id", "boxes", "masks",
        "labels",
    }  # fmt: skip
    wanted = _chosen(keys, known, {"image_id", "boxes", "labels"})

    def change(index: int, image: Any, target: Any) -> tuple[Any, Any]:
        number = dataset.ids[index]
        if not target:
            return image, {"image_id": number}
        size = (image.height, image.width)
        found: dict[str, Any] = {key: [each.get(key) for each in target] for key in target[0]}
        found["image_id"] = number
        if "boxes" in wanted:
            rows = aten.tensor(found["bbox"], dtype=dt.float32)
            rows[:, 2:] += rows[:, :2]  # corner and size → two corners
            found["boxes"] = _boxes(rows, "XYXY", image)
        if "masks" in wanted:
            masks = [_coco_mask(s, size) for s in found["segmentation"]]
            found["masks"] = tv_tensors.Mask(aten.stack(masks))
        if "labels" in wanted:
            found["labels"] = aten.tensor(found["category_id"])
        return image, {key: value for key, value in found.items() if key in wanted}

    return change


_WRAPPERS: dict[type[VisionDataset], Callable[[Any, Keys], Change]] = {
    CIFAR10: _unchanged,
    Caltech101: _caltech101,
    Caltech256: _unchanged,
    CelebA: _celeba,
    Cityscapes: _cityscapes,
    CocoCaptions: _unchanged,
    CocoDetection: _coco,
    DatasetFolder: _unchanged,
    GTSRB: _unchanged,
    Imagenette: _unchanged,
    Kitti: _kitti,
    MNIST: _unchanged,
    OxfordIIITPet: _pet,
    VOCDetection: _voc,
    VOCSegmentation: _segmentation,
}
_WITH_KEYS = (CocoDetection, VOCDetection, Kitti)
_TRANSFORMS = ("transform", "target_transform", "transforms")


def _wrapper(dataset: VisionDataset, keys: Keys) -> Change:
    found = next((base for base in type(dataset).__mro__ if base in _WRAPPERS), None)
    if found is None:
        raise TypeError(
            f"No wrapper exists for dataset class {type(dataset).__name__}. Please wrap the output"
            " yourself."
        )
    if keys is not None:
        if keys != "all" and not isinstance(keys, Collection):
            raise ValueError(
                "`target_keys` can be None, 'all', or a collection of strings denoting the keys to"
                f" be returned, but got {keys}"
            )
        if found not in _WITH_KEYS:
            *names, last = (f"`{cls.__name__}`" for cls in _WITH_KEYS)
            known = f"{', '.join(names)}, and {last}"
            raise ValueError(
                f"`target_keys` is currently only supported for {known}, but got {found.__name__}."
            )
    return _WRAPPERS[found](dataset, keys)


class _Wrapped:
    """The samples of another data set, changed before its transforms see them."""

    transforms: Any

    def __init__(self, dataset: VisionDataset, target_keys: Keys) -> None:
        self._change = _wrapper(dataset, target_keys)
        self.__dict__.update(dataset.__dict__)
        self._dataset = dataset
        self._target_keys = target_keys
        for name in _TRANSFORMS:  # as torchvision does: they get what the wrapper makes
            setattr(dataset, name, None)

    def __getitem__(self, index: int) -> Any:
        sample = self._change(index, *self._dataset[index])
        return sample if self.transforms is None else self.transforms(*sample)

    def __len__(self) -> int:
        return len(self._dataset)

    def __reduce__(self) -> Any:
        state = {name: self.__dict__[name] for name in _TRANSFORMS}
        return wrap_dataset_for_transforms_v2, (self._dataset, self._target_keys), state


def wrap_dataset_for_transforms_v2(dataset: Any, target_keys: Keys = None) -> Any:
    """The data set with samples for `transforms.v2`: an object of a class below the data set's.

    Detection (CocoDetection, Kitti, VOCDetection) gives a dict with `boxes` (BoundingBoxes, two
    corners) and `labels`, COCO on demand `masks`, too (which needs pycocotools); segmentation masks
    become Masks; classification stays. target_keys: which entries of a dict are given; "all"; None:
    the usual ones. TypeError for data sets of which nothing is known.
    """
    if not isinstance(dataset, VisionDataset):
        raise TypeError(
            "This wrapper is meant for subclasses of `torchvision.datasets.VisionDataset`, but got"
            f" a '{type(dataset).__name__}' instead."
        )
    name = f"Wrapped{type(dataset).__name__}"
    return type(name, (_Wrapped, type(dataset)), {})(dataset, target_keys)


__all__ = ["wrap_dataset_for_transforms_v2"]
