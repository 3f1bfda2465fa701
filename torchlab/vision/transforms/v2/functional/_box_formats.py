"""Boxes from one format into another; for turned ones see Note [Turned boxes] in
`torchlab.vision.ops.turned_boxes`.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.tv_tensors.BoundingBoxFormat.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.ops import turned_boxes
from torchlab.vision.transforms.v2.functional._registry import is_pure_tensor
from torchlab.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    is_rotated_bounding_format,
    wrap,
)

XYXY, XYWH, CXCYWH = BoundingBoxFormat.XYXY, BoundingBoxFormat.XYWH, BoundingBoxFormat.CXCYWH
XYWHR, CXCYWHR = BoundingBoxFormat.XYWHR, BoundingBoxFormat.CXCYWHR
XYXYXYXY = BoundingBoxFormat.XYXYXYXY


def _xywh_to_xyxy(b: Tensor) -> Tensor:
    return aten.cat((b[..., :2], b[..., :2] + b[..., 2:]), -1)


def _xyxy_to_xywh(b: Tensor) -> Tensor:
    return aten.cat((b[..., :2], b[..., 2:] - b[..., :2]), -1)


def _cxcywh_to_xyxy(b: Tensor) -> Tensor:
    half = b[..., 2:] * 0.5
    return aten.cat((b[..., :2] - half, b[..., :2] + half), -1).to(b.dtype)


def _xyxy_to_cxcywh(b: Tensor) -> Tensor:
    total = b[..., :2] + b[..., 2:]
    middle = total * 0.5 if b.is_floating_point() else aten.div(total, 2, rounding_mode="floor")
    return aten.cat((middle, b[..., 2:] - b[..., :2]), -1)


def named_format(format: BoundingBoxFormat | str) -> BoundingBoxFormat:
    return BoundingBoxFormat[format.upper()] if isinstance(format, str) else format


_STEPS: dict[tuple[BoundingBoxFormat, BoundingBoxFormat], tuple[Callable[[Tensor], Tensor], ...]]
_STEPS = {
    (XYWH, XYXY): (_xywh_to_xyxy,),
    (XYXY, XYWH): (_xyxy_to_xywh,),
    (XYWH, CXCYWH): (_xywh_to_xyxy, _xyxy_to_cxcywh),
    (CXCYWH, XYWH): (_cxcywh_to_xyxy, _xyxy_to_xywh),
    (CXCYWH, XYXY): (_cxcywh_to_xyxy,),
    (XYXY, CXCYWH): (_xyxy_to_cxcywh,),
    **{(named_format(a), named_format(b)): way for (a, b), way in turned_boxes.STEPS.items()},
}


def convert(boxes: Tensor, old: BoundingBoxFormat, new: BoundingBoxFormat) -> Tensor:
    """The boxes (…, K) in the format `new`.

    Whole numbers stay whole: corners are cut towards zero, middles towards the upper left.
    """
    if old == new:
        return boxes
    turned = is_rotated_bounding_format(old)
    if turned != is_rotated_bounding_format(new):
        raise ValueError("Cannot convert between rotated and unrotated bounding boxes.")
    if turned and not boxes.is_floating_point():
        raise RuntimeError(
            f"convert_bounding_box_format: turned boxes need a floating-point type, got"
            f" {boxes.dtype}"
        )
    for step in _STEPS[old, new]:
        boxes = step(boxes)
    return boxes


def convert_bounding_box_format(
    inpt: Any,
    old_format: BoundingBoxFormat | str | None = None,
    new_format: BoundingBoxFormat | str | None = None,
    inplace: bool = False,
) -> Any:
    """Boxes in another format, of the same type.

    old_format: for plain tensors only, `BoundingBoxes` know it. Whole numbers stay whole.
    ValueError between upright and turned boxes.
    """
    if new_format is None:
        raise TypeError("convert_bounding_box_format() missing 1 required argument: 'new_format'")
    new = named_format(new_format)
    if is_pure_tensor(inpt):
        if old_format is None:
            raise ValueError("For pure tensor inputs, `old_format` has to be passed.")
        return _converted(inpt, named_format(old_format), new, inplace)
    if isinstance(inpt, BoundingBoxes):
        if old_format is not None:
            raise ValueError("For bounding box tv_tensor inputs, `old_format` must not be passed.")
        out = _converted(inpt.as_subclass(Tensor), inpt.format, new, inplace)
        return wrap(out, like=inpt, format=new)
    raise TypeError(
        "Input can either be a plain tensor or a bounding box tv_tensor, but got"
        f" {type(inpt)} instead."
    )


def _converted(
    boxes: Tensor, old: BoundingBoxFormat, new: BoundingBoxFormat, inplace: bool
) -> Tensor:
    out = convert(boxes, old, new)
    if inplace and out.shape == boxes.shape:
        return boxes.copy_(out)
    return aten.clone(out) if out is boxes and not inplace else out
