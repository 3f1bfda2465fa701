"""Transforms that change the size: resizing and padding.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#resizing
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.vision.transforms._containers import chance, integer
from torchlab.vision.transforms._image import InterpolationMode
from torchlab.vision.transforms._warps import check_sequence
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2._arguments import (
    check_padding,
    check_padding_mode,
    fill_for,
    fills_of,
)
from torchlab.vision.transforms.v2._samples import query_size
from torchlab.vision.transforms.v2._transform import RandomApplyTransform, Transform

Interpolation = InterpolationMode | str | int


class Resize(Transform):
    """`functional.resize` to `size`: (height, width), or a number for the shorter side; None: the
    longer side becomes `max_size`, which otherwise is the longer side's limit."""

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: Interpolation = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if isinstance(size, int):
            size = [size]
        elif isinstance(size, Sequence) and len(size) in (1, 2):
            size = list(size)
        elif size is not None:
            raise ValueError(
                "size can be an integer, a sequence of one or two integers, or None, but got"
                f" {size} instead."
            )
        elif not isinstance(max_size, int):
            raise ValueError(
                f"max_size must be an integer when size is None, but got {max_size} instead."
            )
        self.size = size
        self.interpolation = interpolation
        self.max_size = max_size
        self.antialias = antialias

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resize,
            inpt,
            self.size,
            interpolation=self.interpolation,
            max_size=self.max_size,
            antialias=self.antialias,
        )


class _RandomSize(Transform):
    """`functional.resize` to a size that is drawn."""

    interpolation: Interpolation
    antialias: bool | None

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resize,
            inpt,
            size=params["size"],
            interpolation=self.interpolation,
            antialias=self.antialias,
        )


class RandomResize(_RandomSize):
    """Resized so that the shorter side is from `min_size` to below `max_size`."""

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size = min_size
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"size": [integer(self.min_size, self.max_size)]}


class RandomShortestSize(_RandomSize):
    """Resized so that the shorter side is one of `min_size`, unless the longer one would pass
    `max_size`."""

    def __init__(
        self,
        min_size: list[int] | tuple[int, ...] | int,
        max_size: int | None = None,
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        factor = self.min_size[integer(0, len(self.min_size))] / min(height, width)
        if self.max_size is not None:
            factor = min(factor, self.max_size / max(height, width))
        return {"size": (int(height * factor), int(width * factor))}


class ScaleJitter(_RandomSize):
    """Resized to fit into `target_size`, times a drawn factor: the large scale jitter of Ghiasi
    et al. 2020, arXiv:2012.07177."""

    def __init__(
        self,
        target_size: tuple[int, int],
        scale_range: tuple[float, float] = (0.1, 2.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.target_size = target_size
        self.scale_range = scale_range
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        low, high = self.scale_range
        # The factor is a float32 throughout.
        scale = low + aten.rand(1) * (high - low)
        factor = min(self.target_size[1] / height, self.target_size[0] / width) * scale
        return {"size": (int(height * factor), int(width * factor))}


class Pad(Transform):
    """`functional.pad`."""

    def __init__(
        self,
        padding: int | Sequence[int],
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        check_padding(padding)
        check_padding_mode(padding_mode)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill = fill
        self._fills = fills_of(fill)
        self.padding_mode = padding_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        fill = fill_for(self._fills, inpt)
        return self._call_kernel(
            F.pad, inpt, padding=self.padding, fill=fill, padding_mode=self.padding_mode
        )


class RandomZoomOut(RandomApplyTransform):
    """Padded, somewhere inside a canvas that is larger by a factor from `side_range` (from, to):
    the expansion of SSD (Liu et al. 2016, arXiv:1512.02325)."""

    def __init__(
        self, fill: Any = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5
    ) -> None:
        super().__init__(p=p)
        self.fill = fill
        self._fills = fills_of(fill)
        check_sequence(side_range, "side_range", (2,))
        self.side_range = side_range
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        low, high = self.side_range
        factor = low + chance() * (high - low)
        canvas_width, canvas_height = int(width * factor), int(height * factor)
        across, down = aten.rand(2)
        left = int((canvas_width - width) * across)
        top = int((canvas_height - height) * down)
        right, bottom = canvas_width - (left + width), canvas_height - (top + height)
        return {"padding": [left, top, right, bottom]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.pad, inpt, **params, fill=fill_for(self._fills, inpt))
