"""Transforms between kinds of images, and of the values of tensors.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#conversion
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

from torchlab import nn
from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import functional as F
from torchlab.vision.transforms._containers import chance, integer, uniform


class ToTensor:
    """`functional.to_tensor`."""

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """`functional.pil_to_tensor`."""

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """`functional.to_pil_image`."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(nn.Module):
    """`functional.convert_image_dtype`."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return F.convert_image_dtype(image, self.dtype)


class Normalize(nn.Module):
    """`functional.normalize`: (x - mean) / std for each channel."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


def check_whitening(transformation_matrix: Tensor, mean_vector: Tensor) -> None:
    side = transformation_matrix.shape[0]
    if tuple(transformation_matrix.shape) != (side, side):
        raise ValueError(
            "transformation_matrix should be square. Got"
            f" {tuple(transformation_matrix.shape)} rectangular matrix."
        )
    if mean_vector.shape[0] != side:
        raise ValueError(
            f"mean_vector should have the same length {mean_vector.shape[0]} as any one of the"
            f" dimensions of the transformation_matrix {tuple(transformation_matrix.shape)}"
        )
    if transformation_matrix.device != mean_vector.device:
        raise ValueError(
            "Input tensors should be on the same device. Got"
            f" {transformation_matrix.device} and {mean_vector.device}"
        )


def whitened(tensor: Tensor, transformation_matrix: Tensor, mean_vector: Tensor) -> Tensor:
    """(x - mean_vector) times the (D, D) matrix for images (…, C, H, W) of D values."""
    count = math.prod(tensor.shape[-3:])
    if count != transformation_matrix.shape[0]:
        raise ValueError(
            "Input tensor and transformation matrix have incompatible shape."
            f" {tuple(tensor.shape[-3:])} has {count} values,"
            f" the matrix {tuple(transformation_matrix.shape)}"
        )
    if tensor.device != mean_vector.device:
        raise ValueError(
            "Input tensor should be on the same device as transformation matrix and mean vector."
            f" Got {tensor.device} vs {mean_vector.device}"
        )
    flat = aten.reshape(tensor, (-1, count)) - mean_vector
    return aten.reshape(aten.mm(flat, transformation_matrix.to(flat.dtype)), tensor.shape)


class LinearTransformation(nn.Module):
    """(x - mean_vector) times a (D, D) matrix, for tensors of D values: whitening."""

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        check_whitening(transformation_matrix, mean_vector)
        self.transformation_matrix = transformation_matrix
        self.mean_vector = mean_vector

    def forward(self, tensor: Tensor) -> Tensor:
        return whitened(tensor, self.transformation_matrix, self.mean_vector)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(transformation_matrix={self.transformation_matrix.tolist()},"
            f" mean_vector={self.mean_vector.tolist()})"
        )


class RandomErasing(nn.Module):
    """A rectangle of the tensor image replaced, with probability `p`.

    scale: the rectangle's part of the image's area, from and to. ratio: its sides, from and to.
    value: a number, one for each channel, or "random" for normal noise.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(value, (numbers.Number, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        if not isinstance(scale, Sequence):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, Sequence):
            raise TypeError("Ratio should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if p < 0 or p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.p = p
        self.scale = scale
        self.ratio = ratio
        self.value = value
        self.inplace = inplace

    @staticmethod
    def get_params(
        img: Tensor,
        scale: Sequence[float],
        ratio: Sequence[float],
        value: list[float] | None = None,
    ) -> tuple[int, int, int, int, Tensor]:
        """(top, left, height, width, value) of a draw; the whole image where none of 10 fits."""
        channels, height, width = img.shape[-3:]
        drawn = drawn_rectangle((channels, height, width), scale, ratio, value)
        return (0, 0, height, width, img) if drawn is None else drawn

    def forward(self, img: Tensor) -> Tensor:
        if chance() >= self.p:
            return img
        value: list[float] | None
        if isinstance(self.value, numbers.Number):
            value = [self.value]  # type: ignore[list-item]
        else:
            value = None if isinstance(self.value, str) else list(self.value)
        if value is not None and len(value) not in (1, img.shape[-3]):
            raise ValueError(
                "If value is a sequence, it should have either a single value or"
                f" {img.shape[-3]} (number of input channels)"
            )
        x, y, h, w, v = self.get_params(img, self.scale, self.ratio, value)
        return F.erase(img, x, y, h, w, v, self.inplace)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p={self.p}, scale={self.scale}, ratio={self.ratio},"
            f" value={self.value}, inplace={self.inplace})"
        )


def drawn_rectangle(
    size: tuple[int, int, int],
    scale: Sequence[float],
    ratio: Sequence[float],
    value: list[float] | None,
) -> tuple[int, int, int, int, Tensor] | None:
    """(top, left, height, width, values) of a draw of `RandomErasing` in an image of that size
    (channels, height, width); None where none of 10 fits."""
    channels, height, width = size
    log_ratio = aten.log(aten.tensor(list(ratio)))
    for _ in range(10):
        area = height * width * uniform(*scale)
        aspect = aten.exp(aten.empty((1,)).uniform_(log_ratio[0], log_ratio[1])).item()
        h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if h >= height or w >= width:
            continue
        if value is None:
            v = aten.empty((channels, h, w), dtype=dt.float32).normal_()
        else:
            v = aten.reshape(aten.tensor(value), (-1, 1, 1))
        return integer(0, height - h + 1), integer(0, width - w + 1), h, w, v
    return None
