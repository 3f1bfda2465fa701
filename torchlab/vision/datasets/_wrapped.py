"""Data sets whose samples the transforms of version 2 understand.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.datasets.wrap_dataset_for_transforms_v2.html
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torchlab.vision.datasets.cifar import CIFAR10
from torchlab.vision.datasets.folder import DatasetFolder
from torchlab.vision.datasets.mnist import MNIST
from torchlab.vision.datasets.vision import VisionDataset

_IMAGES_AND_CLASSES = (CIFAR10, DatasetFolder, MNIST)


class _Wrapped(VisionDataset):
    """Stands for a data set, whose class is a base of this one's too."""

    def __init__(self, dataset: VisionDataset) -> None:
        self._dataset = dataset
        # The transforms get what the wrapper makes of a sample, so they move to here.
        names = ("transform", "target_transform", "transforms")
        for name in names:
            setattr(self, name, getattr(dataset, name))
        for name in names:
            setattr(dataset, name, None)

    def __getattr__(self, name: str) -> Any:
        if name == "_dataset":  # a copy in the making has none yet
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __getitem__(self, index: int) -> Any:
        sample = self._dataset[index]
        return sample if self.transforms is None else self.transforms(*sample)

    def __len__(self) -> int:
        return len(self._dataset)

    def __reduce__(self) -> tuple[Any, ...]:
        state = {k: v for k, v in vars(self).items() if k != "_dataset"}
        return wrap_dataset_for_transforms_v2, (self._dataset,), state


def _class_for(kind: type) -> type[_Wrapped]:
    return type(f"Wrapped{kind.__name__}", (_Wrapped, kind), {})


def wrap_dataset_for_transforms_v2(dataset: Any, target_keys: Collection[str] | None = None) -> Any:
    """`dataset` with samples for `transforms.v2`.

    Pillow images and class numbers, all that the data sets here give, are understood already and
    stay as they are. TypeError for other data sets. ValueError for `target_keys`, which choose
    among the parts of a target that is a dictionary.
    """
    if not (
        target_keys is None
        or target_keys == "all"
        or (isinstance(target_keys, Collection) and all(isinstance(k, str) for k in target_keys))
    ):
        raise ValueError(
            "`target_keys` can be None, 'all', or a collection of strings denoting the keys to be"
            f" returned, but got {target_keys}"
        )
    kind = type(dataset)
    if not isinstance(dataset, VisionDataset):
        raise TypeError(
            "This wrapper is meant for subclasses of `torchvision.datasets.VisionDataset`, but got"
            f" a '{kind.__name__}' instead."
        )
    if not isinstance(dataset, _IMAGES_AND_CLASSES):
        raise TypeError(
            f"No wrapper exists for dataset class {kind.__name__}. Please wrap the output yourself."
        )
    if target_keys is not None:
        raise ValueError(f"`target_keys`: the targets of {kind.__name__} are no dictionaries.")
    return _class_for(kind)(dataset)
