"""Transforms that cut out parts.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#cropping
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.ops.boxes import box_iou
from torchlab.vision.transforms import _crops as v1
from torchlab.vision.transforms._containers import integer
from torchlab.vision.transforms._geometry import sides
from torchlab.vision.transforms._image import is_picture
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2._arguments import check_padding, fill_for, fills_of
from torchlab.vision.transforms.v2._resizes import Interpolation
from torchlab.vision.transforms.v2._samples import (
    get_bounding_boxes,
    has_all,
    has_any,
    query_size,
)
from torchlab.vision.transforms.v2._transform import Transform
from torchlab.vision.transforms.v2.functional import is_pure_tensor
from torchlab.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    KeyPoints,
    Mask,
    wrap,
)


class CenterCrop(Transform):
    """`functional.center_crop`."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = v1.both_sides(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.center_crop, inpt, output_size=self.size)


class _ManyCrops(Transform):
    """Several crops from each image; boxes and masks cannot be many at once."""

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        warn_of_passing(self, inpt)
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, BoundingBoxes, Mask):
            raise TypeError(
                f"BoundingBoxes'es and Mask's are not supported by {type(self).__name__}()"
            )


def warn_of_passing(owner: Transform, inpt: Any) -> None:
    """Warn that boxes, points or masks stay as they are while their image changes."""
    if isinstance(inpt, (BoundingBoxes, KeyPoints, Mask)):
        warnings.warn(
            f"{type(owner).__name__}() is currently passing through inputs of type"
            f" tv_tensors.{type(inpt).__name__}. This will likely change in the future.",
            stacklevel=4,
        )


class FiveCrop(_ManyCrops):
    """`functional.five_crop`: each image becomes a tuple of five."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = v1.both_sides(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.five_crop, inpt, self.size)


class TenCrop(_ManyCrops):
    """`functional.ten_crop`: each image becomes a tuple of ten."""

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = v1.both_sides(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.ten_crop, inpt, self.size, vertical_flip=self.vertical_flip)


class RandomCrop(Transform):
    """A rectangle of `size` from anywhere in the image, after `padding` if that is given.

    pad_if_needed: an image that is too small is padded.
    """

    get_params = staticmethod(v1.RandomCrop.get_params)

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = v1.both_sides(size)
        if padding is not None:
            check_padding(padding)
            left, top, right, bottom = sides(padding)
            padding = [left, right, top, bottom]
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self._fills = fills_of(fill)
        self.padding_mode = padding_mode

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        left, right, top, bottom = self.padding or (0, 0, 0, 0)
        crop_height, crop_width = self.size
        if self.pad_if_needed:
            lacking = max(crop_height - (top + height + bottom), 0)
            top, bottom = top + lacking, bottom + lacking
            lacking = max(crop_width - (left + width + right), 0)
            left, right = left + lacking, right + lacking
        height, width = top + height + bottom, left + width + right
        if height < crop_height or width < crop_width:
            raise ValueError(
                f"Required crop size {(crop_height, crop_width)} is larger than"
                f" {'padded ' if self.padding is not None else ''}input image size"
                f" {(height, width)}."
            )
        # Nothing is drawn where there is no choice.
        down = integer(0, height - crop_height + 1) if height > crop_height else 0
        across = integer(0, width - crop_width + 1) if width > crop_width else 0
        return {
            "needs_crop": height > crop_height or width > crop_width,
            "top": down,
            "left": across,
            "height": crop_height,
            "width": crop_width,
            "needs_pad": any((left, top, right, bottom)),
            "padding": [left, top, right, bottom],
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if params["needs_pad"]:
            fill = fill_for(self._fills, inpt)
            inpt = self._call_kernel(
                F.pad, inpt, padding=params["padding"], fill=fill, padding_mode=self.padding_mode
            )
        if params["needs_crop"]:
            box = {name: params[name] for name in ("top", "left", "height", "width")}
            inpt = self._call_kernel(F.crop, inpt, **box)
        return inpt


class RandomResizedCrop(Transform):
    """A rectangle from anywhere, resized to `size`: the crop of Inception's training.

    scale: its part of the image's area, from and to. ratio: width / height, from and to.
    """

    get_params = staticmethod(v1.RandomResizedCrop.get_params)

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = v1.both_sides(size)
        for name, given in (("Scale", scale), ("Ratio", ratio)):
            if not isinstance(given, Sequence) or len(given) != 2:
                raise TypeError(f"{name} should be a sequence of two floats.")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        self.scale = scale
        self.ratio = ratio
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        drawn = v1.drawn_part(query_size(flat_inputs), self.scale, self.ratio)
        return dict(zip(("top", "left", "height", "width"), drawn, strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resized_crop,
            inpt,
            **params,
            size=self.size,
            interpolation=self.interpolation,
            antialias=self.antialias,
        )


class RandomIoUCrop(Transform):
    """A rectangle that overlaps with an object: the crop of SSD (Liu et al. 2016,
    arXiv:1512.02325, section 2.2).

    The least overlap (intersection over union) is drawn from `sampler_options`; 1 or more means the
    whole image. Then up to `trials` rectangles are drawn, with sides from `min_scale` to
    `max_scale` of the image's and width / height from `min_aspect_ratio` to `max_aspect_ratio`.
    Boxes whose middle is outside become empty: let `SanitizeBoundingBoxes` follow.
    """

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: list[float] | None = None,
        trials: int = 40,
    ) -> None:
        super().__init__()
        self.min_scale = min_scale
        self.max_scale = max_scale
        self.min_aspect_ratio = min_aspect_ratio
        self.max_aspect_ratio = max_aspect_ratio
        default = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
        self.options = default if sampler_options is None else sampler_options
        self.trials = trials

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if not (
            has_all(flat_inputs, BoundingBoxes)
            and has_any(flat_inputs, is_picture, Image, is_pure_tensor)
        ):
            raise TypeError(
                f"{type(self).__name__}() requires input sample to contain tensor or PIL images and"
                " bounding boxes. Sample can also contain masks."
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size = query_size(flat_inputs)
        boxes = get_bounding_boxes(flat_inputs)
        while True:
            overlap = self.options[integer(0, len(self.options))]
            if overlap >= 1.0:
                return {}
            corners = F.convert_bounding_box_format(
                boxes.as_subclass(Tensor), boxes.format, BoundingBoxFormat.XYXY
            )
            for _ in range(self.trials):
                params = self._drawn(size, corners, overlap)
                if params is not None:
                    return params

    def _drawn(self, size: tuple[int, int], boxes: Tensor, overlap: float) -> dict[str, Any] | None:
        """A draw, or None if it does not fit."""
        height, width = size
        scales = self.min_scale + (self.max_scale - self.min_scale) * aten.rand(2)
        w, h = int(width * scales[0]), int(height * scales[1])
        if w == 0 or h == 0 or not self.min_aspect_ratio <= w / h <= self.max_aspect_ratio:
            return None
        place = aten.rand(2)
        left, top = int((width - w) * place[0]), int((height - h) * place[1])
        x, y = 0.5 * (boxes[..., 0] + boxes[..., 2]), 0.5 * (boxes[..., 1] + boxes[..., 3])
        inside = aten.stack((left < x, x < left + w, top < y, y < top + h)).all(0)
        if not inside.any():
            return None
        part = aten.tensor([[left, top, left + w, top + h]], dtype=boxes.dtype, device=boxes.device)
        if box_iou(boxes[inside], part).max() < overlap:
            return None
        return {"top": top, "left": left, "height": h, "width": w, "is_within_crop_area": inside}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not params:
            return inpt
        box = {name: params[name] for name in ("top", "left", "height", "width")}
        output = self._call_kernel(F.crop, inpt, **box)
        if isinstance(output, BoundingBoxes):
            plain = aten.clone(output.as_subclass(Tensor))
            plain[~params["is_within_crop_area"]] = 0
            output = wrap(plain, like=output)
        return output
