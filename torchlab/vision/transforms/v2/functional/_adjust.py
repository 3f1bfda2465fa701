"""Brightness, contrast, saturation, sharpness, hue and gamma.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#color
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _colour, _tensor_colour
from torchlab.vision.transforms.v2.functional._channels import one_or_three
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.tv_tensors import Image, Video


def _checked(image: Any, factor: float) -> Any:
    """ValueError for a factor below 0, TypeError for an image without 1 or 3 channels."""
    if factor < 0:
        raise ValueError(f"The factor ({factor}) is not non-negative.")
    return one_or_three(image)


def adjust_brightness(inpt: Any, brightness_factor: float) -> Any:
    """0 is black, 1 the image itself. ValueError below 0."""
    return run(adjust_brightness, inpt, brightness_factor)


@kernel(adjust_brightness, Tensor, Image)
def adjust_brightness_image(image: Any, brightness_factor: float) -> Any:
    return _tensor_colour.brightness(_checked(image, brightness_factor), brightness_factor)


@kernel(adjust_brightness, Video)
def adjust_brightness_video(video: Any, brightness_factor: float) -> Any:
    return adjust_brightness_image(video, brightness_factor)


kernel(adjust_brightness, Picture)(_colour.adjust_brightness)


def adjust_contrast(inpt: Any, contrast_factor: float) -> Any:
    """0 is the mean gray, 1 the image itself. ValueError below 0."""
    return run(adjust_contrast, inpt, contrast_factor)


@kernel(adjust_contrast, Tensor, Image)
def adjust_contrast_image(image: Any, contrast_factor: float) -> Any:
    return _tensor_colour.contrast(_checked(image, contrast_factor), contrast_factor, fused=True)


@kernel(adjust_contrast, Video)
def adjust_contrast_video(video: Any, contrast_factor: float) -> Any:
    return adjust_contrast_image(video, contrast_factor)


kernel(adjust_contrast, Picture)(_colour.adjust_contrast)


def adjust_saturation(inpt: Any, saturation_factor: float) -> Any:
    """0 is black and white, 1 the image itself. ValueError below 0."""
    return run(adjust_saturation, inpt, saturation_factor)


@kernel(adjust_saturation, Tensor, Image)
def adjust_saturation_image(image: Any, saturation_factor: float) -> Any:
    image = _checked(image, saturation_factor)
    return _tensor_colour.saturation(image, saturation_factor, fused=True)


@kernel(adjust_saturation, Video)
def adjust_saturation_video(video: Any, saturation_factor: float) -> Any:
    return adjust_saturation_image(video, saturation_factor)


kernel(adjust_saturation, Picture)(_colour.adjust_saturation)


def adjust_sharpness(inpt: Any, sharpness_factor: float) -> Any:
    """0 is smoothed, 1 the image itself. ValueError below 0."""
    return run(adjust_sharpness, inpt, sharpness_factor)


@kernel(adjust_sharpness, Tensor, Image)
def adjust_sharpness_image(image: Any, sharpness_factor: float) -> Any:
    image = _checked(image, sharpness_factor)
    return _tensor_colour.sharpness(image, sharpness_factor, fused=True)


@kernel(adjust_sharpness, Video)
def adjust_sharpness_video(video: Any, sharpness_factor: float) -> Any:
    return adjust_sharpness_image(video, sharpness_factor)


kernel(adjust_sharpness, Picture)(_colour.adjust_sharpness)


def adjust_hue(inpt: Any, hue_factor: float) -> Any:
    """The colours turned by a part of the circle, from -0.5 to 0.5; else ValueError."""
    return run(adjust_hue, inpt, hue_factor)


@kernel(adjust_hue, Tensor, Image)
def adjust_hue_image(image: Any, hue_factor: float) -> Any:
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return _tensor_colour.hue(_checked(image, 0), hue_factor, fused=True)


@kernel(adjust_hue, Video)
def adjust_hue_video(video: Any, hue_factor: float) -> Any:
    return adjust_hue_image(video, hue_factor)


kernel(adjust_hue, Picture)(_colour.adjust_hue)


def adjust_gamma(inpt: Any, gamma: float, gain: float = 1) -> Any:
    """gain * image ** gamma, with the image from 0 to 1. ValueError below 0."""
    return run(adjust_gamma, inpt, gamma, gain)


@kernel(adjust_gamma, Tensor, Image)
def adjust_gamma_image(image: Any, gamma: float, gain: float = 1.0) -> Any:
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    return _tensor_colour.gamma(image, gamma, gain, fused=True)


@kernel(adjust_gamma, Video)
def adjust_gamma_video(video: Any, gamma: float, gain: float = 1) -> Any:
    return adjust_gamma_image(video, gamma, gain)


kernel(adjust_gamma, Picture)(_colour.adjust_gamma)
