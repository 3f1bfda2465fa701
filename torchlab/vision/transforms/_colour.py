"""The colours of images.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#color
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _pil, _tensor_colour
from torchlab.vision.transforms._image import assert_channels, is_tensor


def _positive(name: str, factor: float) -> None:
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")


def _bytes(img: Tensor) -> Tensor:
    assert_channels(img, (1, 3))
    if img.dtype != dt.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    return img


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """0 is black, 1 the image itself."""
    if is_tensor(img):
        _positive("brightness_factor", brightness_factor)
        return _tensor_colour.brightness(img, brightness_factor)
    return _pil.enhance("Brightness", img, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """0 is the mean gray, 1 the image itself."""
    if is_tensor(img):
        _positive("contrast_factor", contrast_factor)
        return _tensor_colour.contrast(img, contrast_factor)
    return _pil.enhance("Contrast", img, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """0 is black and white, 1 the image itself."""
    if is_tensor(img):
        _positive("saturation_factor", saturation_factor)
        return _tensor_colour.saturation(img, saturation_factor)
    return _pil.enhance("Color", img, saturation_factor)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """0 is smoothed, 1 the image itself."""
    if is_tensor(img):
        _positive("sharpness_factor", sharpness_factor)
        return _tensor_colour.sharpness(img, sharpness_factor)
    return _pil.enhance("Sharpness", img, sharpness_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """The colours turned by a part of the circle, from -0.5 to 0.5."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return _tensor_colour.hue(img, hue_factor) if is_tensor(img) else _pil.hue(img, hue_factor)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """gain * image ** gamma, with the image from 0 to 1."""
    if is_tensor(img):
        assert_channels(img, (1, 3))
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    if is_tensor(img):
        return _tensor_colour.gamma(img, gamma, gain)
    return _pil.gamma(img, gamma, gain)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """The brightness, in 1 channel or three times the same."""
    if is_tensor(img):
        return _tensor_colour.gray(img, num_output_channels)
    return _pil.gray(img, num_output_channels)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """`rgb_to_grayscale` for Pillow images only; TypeError for tensors."""
    if is_tensor(img):
        raise TypeError("Input should be PIL Image; use rgb_to_grayscale for tensors")
    return _pil.gray(img, num_output_channels)


def invert(img: Any) -> Any:
    """White becomes black."""
    if is_tensor(img):
        assert_channels(img, (1, 3))
        return _tensor_colour.invert(img)
    return _pil.ImageOps.invert(img)


def posterize(img: Any, bits: int) -> Any:
    """The upper `bits` (0 to 8) of each byte."""
    if not 0 <= bits <= 8:
        raise ValueError(f"The number if bits should be between 0 and 8. Got {bits}")
    if is_tensor(img):
        return _tensor_colour.posterize(_bytes(img), bits)
    return _pil.ImageOps.posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    """The values from `threshold` on inverted."""
    if is_tensor(img):
        assert_channels(img, (1, 3))
        return _tensor_colour.solarize(img, threshold)
    return _pil.ImageOps.solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    """Each channel spread from black to white."""
    return _tensor_colour.autocontrast(img) if is_tensor(img) else _pil.ImageOps.autocontrast(img)


def equalize(img: Any) -> Any:
    """Each channel with all values alike frequent."""
    if is_tensor(img):
        return _tensor_colour.equalize(_bytes(img))
    return _pil.ImageOps.equalize(img)
