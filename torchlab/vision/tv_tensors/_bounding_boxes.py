"""Boxes around objects, upright and turned.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.tv_tensors.BoundingBoxes.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Self

from torchlab._core.dispatch.registry import aten
from torchlab._core.pytree import tree_leaves
from torchlab._core.tensor import Tensor
from torchlab.vision.tv_tensors._tv_tensor import TVTensor


class BoundingBoxFormat(Enum):
    """What the numbers of a box are.

    XYXY: left, top, right, bottom. XYWH: left, top, width, height. CXCYWH: the middle, width,
    height. XYWHR: XYWH of a box that is then turned about its corner by r degrees. CXCYWHR: CXCYWH
    of a box that is then turned about its middle. XYXYXYXY: the four corners of a turned box, from
    the upper left one clockwise.
    """

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"
    XYWHR = "XYWHR"
    CXCYWHR = "CXCYWHR"
    XYXYXYXY = "XYXYXYXY"


_ROTATED = frozenset({"XYWHR", "CXCYWHR", "XYXYXYXY"})


def is_rotated_bounding_format(format: BoundingBoxFormat | str) -> bool:
    """Whether boxes of this format are turned. ValueError for another type."""
    if not isinstance(format, (BoundingBoxFormat, str)):
        raise ValueError(f"format should be str or BoundingBoxFormat, got {type(format)}")
    return (format.value if isinstance(format, BoundingBoxFormat) else format) in _ROTATED


class BoundingBoxes(TVTensor):
    """Boxes (N, K), K = 4, 5 or 8 by the format, of what `as_tensor` takes.

    canvas_size: (height, width) of the image. clamping_mode: what transforms do with boxes that
    reach beyond it, "soft", "hard" or None (turned boxes alone tell soft from hard).
    """

    format: BoundingBoxFormat
    canvas_size: tuple[int, int]
    clamping_mode: str | None

    @classmethod
    def _wrap(
        cls,
        tensor: Tensor,
        *,
        format: BoundingBoxFormat | str,
        canvas_size: tuple[int, int],
        clamping_mode: str | None = "soft",
        check_dims: bool = True,
    ) -> Self:
        if check_dims:
            if tensor.ndim == 1:
                tensor = aten.unsqueeze(tensor, 0)
            elif tensor.ndim != 2:
                raise ValueError(f"Expected a 1D or 2D tensor, got {tensor.ndim}D")
        if clamping_mode not in (None, "hard", "soft"):
            raise ValueError(f"clamping_mode must be None, hard or soft, got {clamping_mode}.")
        if isinstance(format, str):
            format = BoundingBoxFormat[format.upper()]
        boxes = tensor.as_subclass(cls)
        boxes.format = format
        boxes.canvas_size = canvas_size
        boxes.clamping_mode = clamping_mode
        return boxes

    def __new__(
        cls,
        data: Any,
        *,
        format: BoundingBoxFormat | str,
        canvas_size: tuple[int, int],
        clamping_mode: str | None = "soft",
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
    ) -> Self:
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        kind = BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
        if (
            isinstance(kind, BoundingBoxFormat)
            and is_rotated_bounding_format(kind)
            and not tensor.is_floating_point()
        ):
            raise ValueError(
                f"Rotated bounding boxes should be floating point tensors, got {tensor.dtype}."
            )
        return cls._wrap(tensor, format=kind, canvas_size=canvas_size, clamping_mode=clamping_mode)

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Self:
        """`tensor` as boxes with the metadata of `like`; `kwargs` replace parts of it."""
        return cls._wrap(
            tensor,
            format=kwargs.get("format", like.format),
            canvas_size=kwargs.get("canvas_size", like.canvas_size),
            clamping_mode=kwargs.get("clamping_mode", like.clamping_mode),
        )

    @classmethod
    def _wrap_output(
        cls, output: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        # The first boxes among the arguments say what the result's numbers are.
        given = tree_leaves((args, kwargs or {}))
        like = next((leaf for leaf in given if isinstance(leaf, BoundingBoxes)), None)
        return cls._with_metadata(output, like)

    @classmethod
    def _with_metadata(cls, output: Any, like: Any) -> Any:
        if isinstance(output, (tuple, list)):
            return type(output)([cls._with_metadata(part, like) for part in output])
        # `.data` comes in the type already, but without its metadata.
        if like is None or not isinstance(output, Tensor) or hasattr(output, "format"):
            return output
        return cls._wrap(
            output,
            format=like.format,
            canvas_size=like.canvas_size,
            clamping_mode=like.clamping_mode,
            check_dims=False,
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._make_repr(
            format=self.format, canvas_size=self.canvas_size, clamping_mode=self.clamping_mode
        )
