"""The channels of images: gray and back, in another order.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#color
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _colour, _tensor_colour
from torchlab.vision.transforms._convert import pil_to_tensor, to_pil_image
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.tv_tensors import Image, Video


def one_or_three(image: Any) -> Any:
    """The image itself; TypeError if it has not 1 or 3 channels."""
    if image.shape[-3] not in (1, 3):
        raise TypeError(
            f"Input image tensor permitted channel values are 1 or 3, but found {image.shape[-3]}"
            f" (shape {tuple(image.shape)})"
        )
    return image


def _check_gray(num_output_channels: int) -> None:
    if num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels must be 1 or 3, got {num_output_channels}.")


def rgb_to_grayscale(inpt: Any, num_output_channels: int = 1) -> Any:
    """The brightness, in 1 channel or three times the same; ValueError for another number."""
    return run(rgb_to_grayscale, inpt, num_output_channels=num_output_channels)


def to_grayscale(inpt: Any, num_output_channels: int = 1) -> Any:
    """`rgb_to_grayscale`."""
    return rgb_to_grayscale(inpt, num_output_channels=num_output_channels)


@kernel(rgb_to_grayscale, Tensor, Image)
def rgb_to_grayscale_image(image: Any, num_output_channels: int = 1) -> Any:
    _check_gray(num_output_channels)
    if image.shape[-3] != 1:
        image = _tensor_colour.luma(image, fused=True).to(image.dtype)
    return grayscale_to_rgb_image(image) if num_output_channels == 3 else aten.clone(image)


@kernel(rgb_to_grayscale, Picture)
def _rgb_to_grayscale_picture(image: Any, num_output_channels: int = 1) -> Any:
    _check_gray(num_output_channels)
    return _colour.rgb_to_grayscale(image, num_output_channels)


def grayscale_to_rgb(inpt: Any) -> Any:
    """A gray image three times over; a coloured one as it is."""
    return run(grayscale_to_rgb, inpt)


@kernel(grayscale_to_rgb, Tensor, Image)
def grayscale_to_rgb_image(image: Any) -> Any:
    if image.shape[-3] >= 3:
        # With or without opacity: it has its colours.
        return image
    if image.shape[-3] != 1:
        raise ValueError(
            f"grayscale_to_rgb: needs 1, 3 or 4 channels, got {image.shape[-3]} (shape"
            f" {tuple(image.shape)})"
        )
    return image.expand(*image.shape[:-3], 3, *image.shape[-2:])


@kernel(grayscale_to_rgb, Picture)
def _grayscale_to_rgb_picture(image: Any) -> Any:
    return image.convert("RGB")


def permute_channels(inpt: Any, permutation: list[int]) -> Any:
    """The channels in another order: the result's channel i is the channel permutation[i].

    ValueError if there are not as many numbers as channels.
    """
    return run(permute_channels, inpt, permutation=permutation)


@kernel(permute_channels, Tensor, Image)
def permute_channels_image(image: Any, permutation: list[int]) -> Any:
    channels = image.shape[-3]
    if len(permutation) != channels:
        raise ValueError(
            "Length of permutation does not match number of channels:"
            f" {len(permutation)} != {channels}"
        )
    return image[..., permutation, :, :]


@kernel(permute_channels, Picture)
def _permute_channels_picture(image: Any, permutation: list[int]) -> Any:
    return to_pil_image(permute_channels_image(pil_to_tensor(image), permutation))


@kernel(permute_channels, Video)
def permute_channels_video(video: Any, permutation: list[int]) -> Any:
    return permute_channels_image(video, permutation)
