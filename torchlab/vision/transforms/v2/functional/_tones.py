"""Tones changed by a rule: fewer, inverted, spread.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#color
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _colour, _image, _tensor_colour
from torchlab.vision.transforms._convert import rescaled
from torchlab.vision.transforms.v2.functional._channels import one_or_three
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.tv_tensors import Image, Video


def _numbers(image: Any, op: str) -> int:
    """The bits of a value without its sign; TypeError for bool."""
    if image.dtype == dt.bool_:
        raise TypeError(f"{op}: needs an integer or floating-point type, got {image.dtype}")
    return _image.max_value(image.dtype).bit_length()


def posterize(inpt: Any, bits: int) -> Any:
    """The upper `bits` of each value."""
    return run(posterize, inpt, bits)


@kernel(posterize, Tensor, Image)
def posterize_image(image: Any, bits: int) -> Any:
    wide = image.is_floating_point()
    most = 8 if wide else _numbers(image, "posterize")
    if not (isinstance(bits, int) and 0 <= bits <= 8):
        raise TypeError(f"bits must be a positive integer in the range [0, 8], got {bits} instead.")
    if bits >= most and not wide:
        return image
    return _tensor_colour.posterize(image, bits)


@kernel(posterize, Video)
def posterize_video(video: Any, bits: int) -> Any:
    return posterize_image(video, bits)


kernel(posterize, Picture)(_colour.posterize)


def solarize(inpt: Any, threshold: float) -> Any:
    """The values from `threshold` on inverted."""
    return run(solarize, inpt, threshold)


@kernel(solarize, Tensor, Image)
def solarize_image(image: Any, threshold: float) -> Any:
    _numbers(image, "solarize")
    return _tensor_colour.solarize(image, threshold)


@kernel(solarize, Video)
def solarize_video(video: Any, threshold: float) -> Any:
    return solarize_image(video, threshold)


kernel(solarize, Picture)(_colour.solarize)


def autocontrast(inpt: Any) -> Any:
    """Each channel spread from black to white."""
    return run(autocontrast, inpt)


@kernel(autocontrast, Tensor, Image)
def autocontrast_image(image: Any) -> Any:
    return _tensor_colour.autocontrast(one_or_three(image), fused=True)


@kernel(autocontrast, Video)
def autocontrast_video(video: Any) -> Any:
    return autocontrast_image(video)


kernel(autocontrast, Picture)(_colour.autocontrast)


def equalize(inpt: Any) -> Any:
    """Each channel with all values alike frequent."""
    return run(equalize, inpt)


@kernel(equalize, Tensor, Image)
def equalize_image(image: Any) -> Any:
    _numbers(image, "equalize")
    out = _tensor_colour.equalize(rescaled(image, dt.uint8))
    return rescaled(out, image.dtype, fused=True)


@kernel(equalize, Video)
def equalize_video(video: Any) -> Any:
    return equalize_image(video)


kernel(equalize, Picture)(_colour.equalize)


def invert(inpt: Any) -> Any:
    """White becomes black."""
    return run(invert, inpt)


@kernel(invert, Tensor, Image)
def invert_image(image: Any) -> Any:
    _numbers(image, "invert")
    return _tensor_colour.invert(image)


@kernel(invert, Video)
def invert_video(video: Any) -> Any:
    return invert_image(video)


kernel(invert, Picture)(_colour.invert)
