"""What is known of an image: a tensor (…, C, H, W) or a Pillow image.

Source: https://docs.pytorch.org/vision/0.28/transforms.html
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from typing import Any

from torchlab._core.dtype import dtype as Dtype
from torchlab._core.info import iinfo
from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor

PIL = lazy("PIL.Image", "pip install pillow")


class InterpolationMode(Enum):
    """How a transform finds values between pixels. BOX, HAMMING and LANCZOS are Pillow's only."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_PILLOW = {
    InterpolationMode.NEAREST: 0,
    InterpolationMode.BILINEAR: 2,
    InterpolationMode.BICUBIC: 3,
    InterpolationMode.NEAREST_EXACT: 0,
    InterpolationMode.BOX: 4,
    InterpolationMode.HAMMING: 5,
    InterpolationMode.LANCZOS: 1,
}
_FROM_PILLOW = {
    0: InterpolationMode.NEAREST,
    2: InterpolationMode.BILINEAR,
    3: InterpolationMode.BICUBIC,
    4: InterpolationMode.BOX,
    5: InterpolationMode.HAMMING,
    1: InterpolationMode.LANCZOS,
}


def interpolation_mode(given: Any) -> InterpolationMode:
    """An `InterpolationMode`, which may be given as Pillow's number."""
    if isinstance(given, int):
        given = _FROM_PILLOW.get(given, given)
    if not isinstance(given, InterpolationMode):
        raise TypeError(
            "Argument interpolation should be a InterpolationMode or a corresponding Pillow"
            f" integer constant, got {given!r}"
        )
    return given


def pillow_number(mode: InterpolationMode) -> int:
    return _PILLOW[mode]


def for_tensors(op: str, mode: InterpolationMode, known: Sequence[str]) -> str:
    """The mode's name; ValueError if `op` has it not for tensors."""
    if mode.value not in known:
        raise ValueError(
            f"{op}: interpolation mode '{mode.value}' is unsupported with Tensor input; use one of"
            f" {', '.join(known)}"
        )
    return mode.value


def is_picture(img: Any) -> bool:
    """Whether `img` is a Pillow image. Without Pillow nothing is one: it is not loaded for that."""
    return is_picture_class(type(img))


def is_picture_class(kind: type) -> bool:
    image = sys.modules.get("PIL.Image")
    return image is not None and issubclass(kind, image.Image)


def is_tensor(img: Any) -> bool:
    """Whether `img` is a tensor image; TypeError if it is no image at all.

    A tensor is looked for first, so that tensor images need no Pillow.
    """
    if isinstance(img, Tensor):
        if img.ndim < 2:
            raise TypeError(f"Tensor is not a torch image: its shape is {tuple(img.shape)}")
        return True
    if isinstance(img, PIL.Image):
        return False
    raise TypeError(f"Unexpected type {type(img)}; give a Tensor or a PIL Image")


def get_dimensions(img: Any) -> list[int]:
    """[channels, height, width]."""
    if is_tensor(img):
        return [1 if img.ndim == 2 else img.shape[-3], *img.shape[-2:]]
    return [len(img.getbands()), img.height, img.width]


def get_image_size(img: Any) -> list[int]:
    """[width, height]."""
    _, height, width = get_dimensions(img)
    return [width, height]


def get_image_num_channels(img: Any) -> int:
    """The number of channels."""
    return get_dimensions(img)[0]


def max_value(dtype: Dtype) -> int:
    """What stands for white: 1 for floating-point types and bool, else the type's largest value."""
    if dtype.is_floating_point or dtype.is_complex or str(dtype).endswith("bool"):
        return 1
    return int(iinfo(dtype).max)


def assert_channels(img: Tensor, permitted: Sequence[int]) -> None:
    found = get_dimensions(img)[0]
    if found not in permitted:
        raise TypeError(
            f"Input image tensor permitted channel values are {list(permitted)}, but found {found}"
            f" (shape {tuple(img.shape)})"
        )
