"""What the data sets have in common.

Source: https://docs.pytorch.org/vision/0.28/datasets.html#base-classes-for-custom-datasets
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from torchlab.utils.data import Dataset

Transform = Callable[..., Any]


class StandardTransform:
    """One transform for the image, another for its target."""

    def __init__(
        self, transform: Transform | None = None, target_transform: Transform | None = None
    ) -> None:
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self) -> str:
        lines = ["StandardTransform"]
        parts = (("Transform: ", self.transform), ("Target transform: ", self.target_transform))
        for head, t in parts:
            if t is not None:
                first, *rest = repr(t).splitlines()
                lines += [head + first, *(" " * len(head) + line for line in rest)]
        return "\n".join(lines)


class VisionDataset(Dataset):
    """A data set with a folder and transforms; subclasses give `__getitem__` and `__len__`.

    transforms: for image and target together; or transform and target_transform, for each alone.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        transforms: Transform | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
    ) -> None:
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        apart = transform is not None or target_transform is not None
        if transforms is not None and apart:
            raise ValueError(
                "Only transforms or transform/target_transform can be passed as argument"
            )
        self.transform = transform
        self.target_transform = target_transform
        self.transforms = StandardTransform(transform, target_transform) if apart else transforms

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def _changed(self, image: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if self.transforms is not None:
            body.append(repr(self.transforms))
        return "\n".join([f"Dataset {type(self).__name__}", *("    " + line for line in body)])
