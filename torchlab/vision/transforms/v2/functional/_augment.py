"""Parts of images removed, and images as JPEG would leave them.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#v2-api-reference-recommended
"""

from __future__ import annotations

import io
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms._convert import pil_to_tensor, to_pil_image
from torchlab.vision.transforms._image import PIL
from torchlab.vision.transforms.v2.functional._registry import Picture, kernel, run
from torchlab.vision.tv_tensors import Image, Video


def erase(inpt: Any, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Any:
    """`v` in the h x w rectangle whose upper left corner is (i, j)."""
    return run(erase, inpt, i=i, j=j, h=h, w=w, v=v, inplace=inplace)


@kernel(erase, Tensor, Image)
def erase_image(
    image: Any, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False
) -> Any:
    out = image if inplace else aten.clone(image)
    out[..., i : i + h, j : j + w] = v
    return out


@kernel(erase, Picture)
def _erase_picture(
    image: Any, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False
) -> Any:
    return to_pil_image(erase_image(pil_to_tensor(image), i, j, h, w, v), mode=image.mode)


@kernel(erase, Video)
def erase_video(
    video: Any, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False
) -> Any:
    return erase_image(video, i, j, h, w, v, inplace)


def jpeg(image: Any, quality: int) -> Any:
    """The image after it was stored as JPEG with `quality` from 1 to 100 and read again.

    Pillow stores and reads it, with libjpeg-turbo as it is built: single values may differ from
    another build's by a few steps. Tensors: uint8, 1 or 3 channels.
    """
    return run(jpeg, image, quality=quality)


@kernel(jpeg, Tensor, Image)
def jpeg_image(image: Any, quality: int) -> Any:
    if image.dtype != dt.uint8 or image.ndim < 3 or image.shape[-3] not in (1, 3):
        raise RuntimeError(
            "jpeg: needs uint8 images (..., C, H, W) of 1 or 3 channels, got"
            f" {tuple(image.shape)} of {image.dtype}"
        )
    if not 1 <= quality <= 100:
        raise RuntimeError(f"jpeg: quality should be from 1 to 100, got {quality}")
    if image.numel() == 0:
        return image
    flat = aten.reshape(image, (-1, *image.shape[-3:]))
    stored = [pil_to_tensor(_jpeg_picture(to_pil_image(one), quality)) for one in flat]
    return aten.reshape(aten.stack(stored), image.shape).to(image.device)


@kernel(jpeg, Video)
def jpeg_video(video: Any, quality: int) -> Any:
    return jpeg_image(video, quality)


@kernel(jpeg, Picture)
def _jpeg_picture(image: Any, quality: int) -> Any:
    memory = io.BytesIO()
    image.save(memory, format="JPEG", quality=quality)
    memory.seek(0)
    return PIL.open(memory)
