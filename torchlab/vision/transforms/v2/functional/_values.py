"""The values of images: noise, smoothing, scale and type.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#v2-api-reference-recommended
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _convert, _geometry, _tensor_grid
from torchlab.vision.transforms._convert import pil_to_tensor, to_pil_image
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video


def normalize(inpt: Any, mean: list[float], std: list[float], inplace: bool = False) -> Any:
    """(values - mean) / std for each channel of a floating-point image or video."""
    return run(normalize, inpt, mean=mean, std=std, inplace=inplace)


@kernel(normalize, Tensor, Image)
def normalize_image(image: Any, mean: list[float], std: list[float], inplace: bool = False) -> Any:
    if inplace:
        return _convert.normalize(image, mean, std, inplace)
    # Out of place one channel may become several.
    shift, scale = _convert.normalizers(image, mean, std)
    return (image - shift) / scale


@kernel(normalize, Video)
def normalize_video(video: Any, mean: list[float], std: list[float], inplace: bool = False) -> Any:
    return normalize_image(video, mean, std, inplace)


def gaussian_blur(inpt: Any, kernel_size: list[int], sigma: list[float] | None = None) -> Any:
    """The image with a bell curve drawn over each pixel.

    kernel_size, sigma: numbers, or (x, y), in pixels; sizes odd. sigma: by default
        0.15 * kernel_size + 0.35.
    """
    return run(gaussian_blur, inpt, kernel_size=kernel_size, sigma=sigma)


@kernel(gaussian_blur, Tensor, Image)
def gaussian_blur_image(
    image: Any, kernel_size: list[int], sigma: list[float] | None = None
) -> Any:
    for name, given in (("kernel_size", kernel_size), ("sigma", sigma)):
        if isinstance(given, (list, tuple)) and len(given) != 2:
            raise ValueError(f"If {name} is a sequence its length should be 2. Got {len(given)}")
    sizes, sigmas = _geometry.blur_arguments(kernel_size, sigma)
    if image.numel() == 0:
        return image
    return _tensor_grid.gaussian_blur(image, sizes, sigmas, fused=True)


@kernel(gaussian_blur, Picture)
def _gaussian_blur_picture(
    image: Any, kernel_size: list[int], sigma: list[float] | None = None
) -> Any:
    out = gaussian_blur_image(pil_to_tensor(image), kernel_size, sigma)
    return to_pil_image(out, mode=image.mode)


@kernel(gaussian_blur, Video)
def gaussian_blur_video(
    video: Any, kernel_size: list[int], sigma: list[float] | None = None
) -> Any:
    return gaussian_blur_image(video, kernel_size, sigma)


def gaussian_noise(inpt: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Any:
    """Normal noise added. clip: the sum is kept from 0 to 1 (bytes: 0 to 255).

    For bytes mean and sigma are in units of 255. ValueError for other integers and for Pillow
    images.
    """
    return run(gaussian_noise, inpt, mean=mean, sigma=sigma, clip=clip)


@kernel(gaussian_noise, Tensor, Image)
def gaussian_noise_image(
    image: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True
) -> Any:
    if sigma < 0:
        raise ValueError(f"sigma shouldn't be negative. Got {sigma}")
    if image.dtype == dt.uint8:
        noise = mean * 255 + aten.randn_like(image, dtype=dt.float32) * sigma * 255
        # Whole steps of noise. Without `clip` the sum wraps round.
        total = image.to(dt.int32) + noise.to(dt.int32)
        return (aten.clamp(total, 0, 255) if clip else total).to(dt.uint8)
    if not image.is_floating_point():
        raise ValueError(
            f"Input tensor is expected to be in uint8 or float dtype, got {image.dtype}"
        )
    total = image + (mean + aten.randn_like(image) * sigma)
    return aten.clamp(total, 0, 1) if clip else total


@kernel(gaussian_noise, Video)
def gaussian_noise_video(
    video: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True
) -> Any:
    return gaussian_noise_image(video, mean=mean, sigma=sigma, clip=clip)


@kernel(gaussian_noise, Picture)
def _gaussian_noise_picture(
    image: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True
) -> Any:
    raise ValueError("gaussian_noise: not for PIL images; give it `to_image` of them")


def to_dtype(inpt: Any, dtype: Any = dt.float32, scale: bool = False) -> Any:
    """The values in another type; `scale`: from one type's range to the other's, for images and
    videos."""
    return run(to_dtype, inpt, dtype=dtype, scale=scale)


def _tells_no_range(old: Any, new: Any) -> bool:
    """Whether one is bool and the other an integer."""
    return dt.bool_ in (old, new) and not (old.is_floating_point or new.is_floating_point)


@kernel(to_dtype, Tensor, Image)
def to_dtype_image(image: Any, dtype: Any = dt.float32, scale: bool = False) -> Any:
    if image.dtype == dtype:
        return image
    if scale and _tells_no_range(image.dtype, dtype):
        raise TypeError(f"to_dtype: no scale between {image.dtype} and {dtype}")
    return _convert.rescaled(image, dtype, fused=True) if scale else image.to(dtype)


@kernel(to_dtype, Video)
def to_dtype_video(video: Any, dtype: Any = dt.float32, scale: bool = False) -> Any:
    return to_dtype_image(video, dtype, scale)


@kernel(to_dtype, BoundingBoxes, KeyPoints, Mask)
def _to_dtype_others(inpt: Any, dtype: Any = dt.float32, scale: bool = False) -> Any:
    # Their values are places and labels, which have no range.
    return inpt.to(dtype)


def convert_image_dtype(image: Any, dtype: Any = dt.float32) -> Any:
    """`to_dtype_image` with `scale=True`: that of tensors, whatever the type."""
    return to_dtype_image(image, dtype, scale=True)
