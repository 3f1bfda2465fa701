"""Transforms of boxes and points alone.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#miscellaneous
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.pytree import tree_flatten, tree_unflatten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2._samples import (
    get_bounding_boxes,
    get_keypoints,
    label_tensors,
    labels_getter_of,
)
from torchlab.vision.transforms.v2._transform import Transform
from torchlab.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, KeyPoints, Mask, wrap


class ConvertBoundingBoxFormat(Transform):
    """`functional.convert_bounding_box_format`."""

    _transformed_types = (BoundingBoxes,)

    def __init__(self, format: str | BoundingBoxFormat) -> None:
        super().__init__()
        self.format = format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(Transform):
    """`functional.clamp_bounding_boxes`."""

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class ClampKeyPoints(Transform):
    """`functional.clamp_keypoints`."""

    _transformed_types = (KeyPoints,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_keypoints(inpt)


class SetClampingMode(Transform):
    """Says how the boxes are cut by later transforms: "soft", "hard" or None."""

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None) -> None:
        super().__init__()
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(f"clamping_mode must be soft, hard or None, got {clamping_mode}")
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        output = inpt.clone()
        output.clamping_mode = self.clamping_mode
        return output


class _Sanitize(Transform):
    """Takes bad objects out of the sample, everywhere."""

    _find_labels: Callable[[Any], Any]

    def _valid(self, flat_inputs: list[Any]) -> Tensor:
        """Which of the N objects are good: (N) bool."""
        raise NotImplementedError

    def _is_object(self, inpt: Any, count: int) -> bool:
        """Whether `inpt` holds something for each of the `count` objects."""
        raise NotImplementedError

    def forward(self, *inputs: Any) -> Any:
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, form = tree_flatten(sample)
        labels = label_tensors(self._find_labels(sample))
        valid = self._valid(flat)
        count = valid.shape[0]
        for label in labels:
            if label.shape[0] != count:
                raise ValueError(
                    f"{type(self).__name__}(): there must be as many labels as objects. Found"
                    f" labels with shape {tuple(label.shape)} for {count} objects."
                )
        params = {"valid": valid, "labels": labels}
        return tree_unflatten([self.transform(inpt, params) for inpt in flat], form)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        valid = params["valid"]
        is_label = any(inpt is label for label in params["labels"])
        if not (is_label or self._is_object(inpt, valid.shape[0])):
            return inpt
        return wrap(inpt.as_subclass(Tensor)[valid], like=inpt)


class SanitizeBoundingBoxes(_Sanitize):
    """Removes boxes that are narrower than `min_size`, smaller than `min_area` or reach beyond
    their image, with their labels and masks.

    labels_getter: "default" (the tensor under a key like "labels" of the dictionary), None (there
    are no labels), or a function from the sample to a tensor or several. Masks (N, H, W) of N boxes
    need not be named.
    """

    def __init__(
        self,
        min_size: float = 1.0,
        min_area: float = 1.0,
        labels_getter: Callable[[Any], Any] | str | None = "default",
    ) -> None:
        super().__init__()
        if min_size < 1:
            raise ValueError(f"min_size must be >= 1, got {min_size}.")
        if min_area < 1:
            raise ValueError(f"min_area must be >= 1, got {min_area}.")
        self.min_size = min_size
        self.min_area = min_area
        self.labels_getter = labels_getter
        self._find_labels = labels_getter_of(labels_getter)

    def _valid(self, flat_inputs: list[Any]) -> Tensor:
        boxes = get_bounding_boxes(flat_inputs)
        return F.sanitize_bounding_boxes(boxes, min_size=self.min_size, min_area=self.min_area)[1]

    def _is_object(self, inpt: Any, count: int) -> bool:
        if isinstance(inpt, Mask):
            return inpt.ndim == 3 and inpt.shape[0] == count
        return isinstance(inpt, BoundingBoxes)


class SanitizeKeyPoints(_Sanitize):
    """Removes points, or groups of points (N, …, 2), outside of their image, with their labels.

    labels_getter: None (there are no labels), "default" (the tensor under a key like "labels" of
    the dictionary), or a function from the sample to a tensor or several.
    """

    def __init__(self, labels_getter: Callable[[Any], Any] | str | None = None) -> None:
        super().__init__()
        self.labels_getter = labels_getter
        self._find_labels = labels_getter_of(labels_getter)

    def _valid(self, flat_inputs: list[Any]) -> Tensor:
        return F.sanitize_keypoints(get_keypoints(flat_inputs))[1]

    def _is_object(self, inpt: Any, count: int) -> bool:
        return isinstance(inpt, KeyPoints)
