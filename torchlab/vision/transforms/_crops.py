"""Transforms of size and place: resizing, padding, cutting, flipping.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#geometry
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab.vision.transforms import functional as F
from torchlab.vision.transforms._containers import Perhaps, integer, uniform
from torchlab.vision.transforms._image import InterpolationMode, interpolation_mode


def both_sides(size: Any) -> Any:
    """(height, width), which may be given as one number."""
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    if isinstance(size, Sequence) and len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return size


class Resize(nn.Module):
    """`functional.resize`."""

    def __init__(
        self,
        size: Any,
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, (int, Sequence)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size = size
        self.max_size = max_size
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias

    def forward(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation.value},"
            f" max_size={self.max_size}, antialias={self.antialias})"
        )


class CenterCrop(nn.Module):
    """`functional.center_crop`."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = both_sides(size)

    def forward(self, img: Any) -> Any:
        return F.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(nn.Module):
    """`functional.pad`."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        if not isinstance(padding, (numbers.Number, tuple, list)):
            raise TypeError("Got inappropriate padding arg")
        if not isinstance(fill, (numbers.Number, str, tuple, list)):
            raise TypeError("Got inappropriate fill arg")
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
        if isinstance(padding, (tuple, list)) and len(padding) not in (1, 2, 4):
            raise ValueError(
                f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)}"
                " element tuple"
            )
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(padding={self.padding}, fill={self.fill},"
            f" padding_mode={self.padding_mode})"
        )


class RandomCrop(nn.Module):
    """A rectangle of `size` from anywhere in the image, after `padding` if that is given.

    pad_if_needed: an image that is too small is padded.
    """

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = tuple(both_sides(size))
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a draw."""
        _, h, w = F.get_dimensions(img)
        th, tw = output_size
        if h < th or w < tw:
            raise ValueError(
                f"Required crop size {(th, tw)} is larger than input image size {(h, w)}"
            )
        if w == tw and h == th:
            return 0, 0, h, w
        return integer(0, h - th + 1), integer(0, w - tw + 1), th, tw

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            width = F.get_dimensions(img)[2]
            if width < self.size[1]:
                img = F.pad(img, [self.size[1] - width, 0], self.fill, self.padding_mode)
            height = F.get_dimensions(img)[1]
            if height < self.size[0]:
                img = F.pad(img, [0, self.size[0] - height], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomHorizontalFlip(Perhaps):
    """`functional.hflip` with probability `p`."""

    def _changed(self, img: Any) -> Any:
        return F.hflip(img)


class RandomVerticalFlip(Perhaps):
    """`functional.vflip` with probability `p`."""

    def _changed(self, img: Any) -> Any:
        return F.vflip(img)


class RandomResizedCrop(nn.Module):
    """A rectangle from anywhere, resized to `size`: the crop of Inception's training.

    scale: its part of the image's area, from and to. ratio: width / height, from and to.
    """

    def __init__(
        self,
        size: Any,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = both_sides(size)
        if not isinstance(scale, Sequence):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, Sequence):
            raise TypeError("Ratio should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    @staticmethod
    def get_params(
        img: Any, scale: Sequence[float], ratio: Sequence[float]
    ) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a draw; the largest middle where none of 10 fits."""
        _, height, width = F.get_dimensions(img)
        return drawn_part((height, width), scale, ratio)

    def forward(self, img: Any) -> Any:
        box = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *box, self.size, self.interpolation, antialias=self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}"
            f", scale={tuple(round(s, 4) for s in self.scale)}"
            f", ratio={tuple(round(r, 4) for r in self.ratio)}"
            f", interpolation={self.interpolation.value}, antialias={self.antialias})"
        )


def drawn_part(
    size: tuple[int, int], scale: Sequence[float], ratio: Sequence[float]
) -> tuple[int, int, int, int]:
    """(top, left, height, width) of a draw of `RandomResizedCrop` in an image of that size."""
    height, width = size
    log_ratio = aten.log(aten.tensor(list(ratio)))
    for _ in range(10):
        area = height * width * uniform(*scale)
        aspect = aten.exp(aten.empty((1,)).uniform_(log_ratio[0], log_ratio[1])).item()
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return integer(0, height - h + 1), integer(0, width - w + 1), h, w
    w, h = width, height
    if width / height < min(ratio):
        h = round(width / min(ratio))
    elif width / height > max(ratio):
        w = round(height * max(ratio))
    return (height - h) // 2, (width - w) // 2, h, w


class FiveCrop(nn.Module):
    """`functional.five_crop`."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = both_sides(size)

    def forward(self, img: Any) -> Any:
        return F.five_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class TenCrop(nn.Module):
    """`functional.ten_crop`."""

    def __init__(self, size: Any, vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = both_sides(size)
        self.vertical_flip = vertical_flip

    def forward(self, img: Any) -> Any:
        return F.ten_crop(img, self.size, self.vertical_flip)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, vertical_flip={self.vertical_flip})"
