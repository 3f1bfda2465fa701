"""What is in a sample: which of its parts are images, boxes, points, labels, and their sizes.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#developer-tools
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.vision.transforms._image import is_picture
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2.functional import is_pure_tensor
from torchlab.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

Check = type | Callable[[Any], bool]


def check_type(obj: Any, types_or_checks: tuple[Check, ...]) -> bool:
    """Whether `obj` is of one of the types or passes one of the checks."""
    return any(
        isinstance(obj, check) if isinstance(check, type) else check(obj)
        for check in types_or_checks
    )


def has_any(flat_inputs: list[Any], *types_or_checks: Check) -> bool:
    """Whether a part of the sample is of one of the types or passes one of the checks."""
    return any(check_type(inpt, types_or_checks) for inpt in flat_inputs)


def has_all(flat_inputs: list[Any], *types_or_checks: Check) -> bool:
    """Whether each of the types and checks fits a part of the sample."""
    return all(has_any(flat_inputs, check) for check in types_or_checks)


def get_bounding_boxes(flat_inputs: list[Any]) -> BoundingBoxes:
    """The sample's first boxes. ValueError if there are none."""
    for inpt in flat_inputs:
        if isinstance(inpt, BoundingBoxes):
            return inpt
    raise ValueError("No bounding boxes were found in the sample")


def get_keypoints(flat_inputs: list[Any]) -> KeyPoints:
    """The sample's first points. ValueError if there are none."""
    for inpt in flat_inputs:
        if isinstance(inpt, KeyPoints):
            return inpt
    raise ValueError("No keypoints were found in the sample")


def _the_one(sizes: set[tuple[int, ...]], names: str, missing: str) -> tuple[int, ...]:
    if not sizes:
        raise TypeError(f"No {missing} was found in the sample")
    if len(sizes) > 1:
        shown = ", ".join(f"'{size}'" for size in sorted(sizes))
        raise ValueError(f"Found multiple {names} dimensions in the sample: {shown}")
    return sizes.pop()


def query_chw(flat_inputs: list[Any]) -> tuple[int, int, int]:
    """(channels, height, width) that all images and videos have.

    TypeError if there are none, ValueError if they differ.
    """
    kinds = (is_pure_tensor, Image, is_picture, Video)
    sizes = {tuple(F.get_dimensions(x)) for x in flat_inputs if check_type(x, kinds)}
    channels, height, width = _the_one(sizes, "CxHxW", "image or video")
    return channels, height, width


def query_size(flat_inputs: list[Any]) -> tuple[int, int]:
    """(height, width) that all images, videos, masks, boxes and points have.

    TypeError if there are none, ValueError if they differ.
    """
    kinds = (is_pure_tensor, Image, is_picture, Video, Mask, BoundingBoxes, KeyPoints)
    sizes = {tuple(F.get_size(x)) for x in flat_inputs if check_type(x, kinds)}
    height, width = _the_one(sizes, "HxW", "image, video, mask, bounding box of keypoint")
    return height, width


LabelsGetter = Callable[[Any], Any]


def labels_getter_of(given: Any) -> LabelsGetter:
    """The function that finds the labels in a transform's arguments. ValueError for another type.

    given: "default", None (there are no labels) or such a function.
    """
    if isinstance(given, str) and given == "default":
        return _usual_labels
    if given is None:
        return _no_labels
    if callable(given):
        return given
    raise ValueError(
        f"labels_getter should either be 'default', a callable, or None, but got {given}."
    )


def _no_labels(inputs: Any) -> None:
    """Named, so that transforms can be pickled."""


def _usual_labels(inputs: Any) -> Any:
    """The tensor that is the second argument, or in the dictionary among the first two arguments
    what is under a key like "labels"."""
    if isinstance(inputs, (tuple, list)):
        if len(inputs) < 2:
            raise ValueError(f"no labels: a sample of {len(inputs)} parts has no second one")
        inputs = inputs[1]
    if is_pure_tensor(inputs):
        return inputs
    if not isinstance(inputs, Mapping):
        raise ValueError(
            "When using the default labels_getter, the input passed to forward must be a dictionary"
            f" or a two-tuple whose second item is a dictionary or a tensor, but got {inputs}"
            " instead."
        )
    names = [name for name in inputs if isinstance(name, str)]
    found = [name for name in names if name.lower() == "labels"]
    found = found or [name for name in names if "label" in name.lower()]
    if not found:
        raise ValueError(
            "Could not infer where the labels are in the sample. Try passing a callable as the"
            " labels_getter parameter, or None if there are no labels in the sample by design."
        )
    return inputs[found[0]]


def label_tensors(labels: Any) -> Sequence[Tensor]:
    """What a labels getter found, one or several, as tensors. ValueError for what is none."""
    if labels is None:
        return ()
    found = (labels,) if isinstance(labels, Tensor) else labels
    for label in found if isinstance(found, (tuple, list)) else (found,):
        if not isinstance(label, Tensor):
            raise ValueError(
                "The labels in the input to forward() must be a tensor or None, got"
                f" {type(label)} instead."
            )
    return tuple(found)
