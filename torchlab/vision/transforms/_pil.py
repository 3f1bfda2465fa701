"""Pillow images: padding, maps of the plane, and colours where Pillow's own call is not enough.

Source: https://docs.pytorch.org/vision/0.28/transforms.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core.lazy import lazy
from torchlab.vision.transforms._image import PIL, InterpolationMode, pillow_number

ImageOps = lazy("PIL.ImageOps", "pip install pillow")
ImageEnhance = lazy("PIL.ImageEnhance", "pip install pillow")

AFFINE, PERSPECTIVE = 0, 2


def fill_of(img: Any, fill: Any) -> Any:
    """A colour for all bands of the image; ValueError for another number of values."""
    bands = len(img.getbands())
    if fill is None:
        fill = 0
    if isinstance(fill, (int, float)):
        fill = (fill,) * bands if bands > 1 else fill
    elif isinstance(fill, (list, tuple)):
        if len(fill) == 1:
            fill = tuple(fill) * bands
        elif len(fill) != bands:
            raise ValueError(
                "The number of elements in 'fill' does not match the number of channels of the"
                f" image ({len(fill)} != {bands})"
            )
        fill = tuple(fill)
    if img.mode != "F":
        fill = tuple(int(f) for f in fill) if isinstance(fill, tuple) else int(fill)
    return fill[0] if isinstance(fill, tuple) and bands == 1 else fill


def pad(img: Any, sides: Sequence[int], fill: Any, mode: str) -> Any:
    """`sides`: left, top, right, bottom."""
    left, top, right, bottom = sides
    palette = img.getpalette() if img.mode == "P" else None
    if mode == "constant":
        out = ImageOps.expand(img, border=tuple(sides), fill=fill_of(img, fill))
    else:
        cut = (-min(left, 0), -min(top, 0), img.width + min(right, 0), img.height + min(bottom, 0))
        array = np.asarray(img.crop(cut) if min(sides) < 0 else img)
        widths = [(max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))]
        widths += [(0, 0)] * (array.ndim - 2)
        out = PIL.fromarray(np.pad(array, widths, mode=mode))  # type: ignore[call-overload]
    if palette is not None:
        if out.mode != "P":
            out = PIL.frombytes("P", out.size, np.asarray(out).tobytes())
        out.putpalette(palette)
    return out


def transform(
    img: Any, kind: int, numbers: Sequence[float], mode: InterpolationMode, fill: Any
) -> Any:
    return img.transform(
        img.size, kind, tuple(numbers), pillow_number(mode), fillcolor=fill_of(img, fill)
    )


def enhance(name: str, img: Any, factor: float) -> Any:
    return getattr(ImageEnhance, name)(img).enhance(factor)


def hue(img: Any, factor: float) -> Any:
    if img.mode in ("L", "1", "I", "F"):
        return img
    h, s, v = img.convert("HSV").split()
    # Bytes: a whole turn of the circle is 256, and the sum wraps.
    turned = (np.asarray(h).astype(np.int32) + int(factor * 255)).astype(np.uint8)
    h = PIL.frombytes("L", h.size, turned.tobytes())
    return PIL.merge("HSV", (h, s, v)).convert(img.mode)


def gamma(img: Any, power: float, gain: float) -> Any:
    table = [int((255 + 1 - 1e-3) * gain * pow(v / 255.0, power)) for v in range(256)]
    return img.convert("RGB").point(table * 3).convert(img.mode)


def gray(img: Any, num_output_channels: int) -> Any:
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    luma = img.convert("L")
    return luma if num_output_channels == 1 else PIL.merge("RGB", (luma,) * 3)
