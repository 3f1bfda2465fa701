"""Size, place and shape of images.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#geometry
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _pil, _tensor_grid
from torchlab.vision.transforms._convert import pil_to_tensor, to_pil_image
from torchlab.vision.transforms._image import (
    InterpolationMode,
    for_tensors,
    get_dimensions,
    interpolation_mode,
    is_tensor,
    pillow_number,
)

_RESIZES = ("nearest", "nearest-exact", "bilinear", "bicubic")
_SAMPLES = ("nearest", "bilinear")
_PADS = ("constant", "edge", "reflect", "symmetric")


def edges(height: int, width: int, size: Any, longest: int | None) -> tuple[int, int]:
    """(height, width) after a resize to `size`: one number means the shorter edge, None that the
    longer edge becomes `longest`."""
    if size is None:
        if longest is None:
            raise ValueError("max_size must be an integer when size is None.")
        short, long = min(height, width), max(height, width)
        new = int(longest * short / long)
        return (longest, new) if width <= height else (new, longest)
    if not isinstance(size, int) and len(size) == 2:
        return int(size[0]), int(size[1])
    short, long = min(height, width), max(height, width)
    new_short = size if isinstance(size, int) else int(size[0])
    new_long = int(new_short * long / short)
    if longest is not None:
        if longest <= new_short:
            raise ValueError(
                f"max_size = {longest} must be strictly greater than the requested size for the"
                f" smaller edge size = {size}"
            )
        if new_long > longest:
            new_short, new_long = int(longest * new_short / new_long), longest
    return (new_long, new_short) if width <= height else (new_short, new_long)


def resize(
    img: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """The image in another size.

    size: [height, width], or a number (also [number]) for the shorter edge.
    max_size: the longer edge is cut down to it.
    antialias: for tensors with bilinear and bicubic: the average over what shrinks to one pixel.
        Pillow does it always.
    """
    mode = interpolation_mode(interpolation)
    if isinstance(size, (list, tuple)):
        if len(size) not in (1, 2):
            raise ValueError(f"Size must be an int or a 1 or 2 element tuple/list, not {size}")
        if max_size is not None and len(size) != 1:
            raise ValueError(
                "max_size should only be passed if size specifies the length of the smaller edge"
            )
    elif size is None:
        raise ValueError("resize: size must be an int or a sequence, got None")
    elif not isinstance(size, int):
        raise TypeError(f"Size should be int or sequence. Got {type(size)}")
    tensor = is_tensor(img)
    _, height, width = get_dimensions(img)
    new = edges(height, width, size, max_size)
    if new == (height, width):
        return img
    if not tensor:
        if antialias is False:
            warnings.warn(
                "Anti-alias option is always applied for PIL Image input. Argument antialias is"
                " ignored.",
                stacklevel=2,
            )
        return img.resize(new[::-1], pillow_number(mode))
    return _tensor_grid.resize(img, new, for_tensors("resize", mode, _RESIZES), bool(antialias))


def sides(padding: Any) -> tuple[int, int, int, int]:
    """(left, top, right, bottom)."""
    if isinstance(padding, int):
        return (padding,) * 4
    if len(padding) == 1:
        return (padding[0],) * 4
    if len(padding) == 2:
        return (*padding, *padding)
    if len(padding) == 4:
        return tuple(padding)
    raise ValueError(
        f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple"
    )


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """The image with a border.

    padding: one number; [left and right, top and bottom]; or [left, top, right, bottom]. Negative
        numbers cut.
    padding_mode: "constant" (`fill`), "edge", "reflect" (the edge once) or "symmetric" (twice).
    """
    tensor = is_tensor(img)
    if not isinstance(padding, (int, list, tuple)):
        raise TypeError(f"Got inappropriate padding arg: {padding!r}")
    if not isinstance(padding_mode, str):
        raise TypeError("Got inappropriate padding_mode arg")
    if padding_mode not in _PADS:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    left, top, right, bottom = border = sides(padding)
    if not tensor:
        return _pil.pad(img, border, fill, padding_mode)
    height, width = img.shape[-2:]
    if padding_mode == "constant":
        if fill is not None and not isinstance(fill, (int, float)):
            raise TypeError(f"pad: a tensor image takes one number as fill, got {fill}")
        return aten.constant_pad_nd(img, (left, right, top, bottom), fill or 0)
    if padding_mode == "reflect" and (max(left, right) >= width or max(top, bottom) >= height):
        raise RuntimeError(
            f"pad: reflection needs a padding below the image's size {(height, width)}, got"
            f" {border}"
        )
    if padding_mode == "symmetric" and (max(left, right) > width or max(top, bottom) > height):
        raise IndexError(
            f"pad: the mirror image is not larger than the image {(height, width)}, got {border}"
        )
    # The border is a choice of rows and columns, exact for every type.
    rows = _line(height, top, bottom, padding_mode)
    columns = _line(width, left, right, padding_mode)
    out = aten.index_select(img, -2, aten.from_numpy(rows).to(img.device))
    return aten.index_select(out, -1, aten.from_numpy(columns).to(img.device))


def _line(size: int, before: int, after: int, mode: str) -> np.ndarray[Any, Any]:
    at = np.arange(size)[max(-before, 0) : size - max(-after, 0)]
    return np.pad(at, (max(before, 0), max(after, 0)), mode=mode)  # type: ignore[call-overload]


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """The rectangle of that upper left corner and size; zeros outside the image."""
    if not is_tensor(img):
        return img.crop((left, top, left + width, top + height))
    _, h, w = get_dimensions(img)
    bottom, right = top + height, left + width
    inner = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if left >= 0 and top >= 0 and right <= w and bottom <= h:
        return inner
    at_left, at_top = max(min(right, 0) - left, 0), max(min(bottom, 0) - top, 0)
    return aten.constant_pad_nd(
        inner,
        (at_left, width - at_left - inner.shape[-1], at_top, height - at_top - inner.shape[-2]),
        0,
    )


def pair(size: Any) -> tuple[int, int]:
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    if isinstance(size, (list, tuple)) and len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return size[0], size[1]


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle of the image; zeros around an image that is smaller."""
    ch, cw = pair(output_size)
    _, h, w = get_dimensions(img)
    if cw > w or ch > h:
        border = [max(cw - w, 0) // 2, max(ch - h, 0) // 2]
        border += [(cw - w + 1) // 2 if cw > w else 0, (ch - h + 1) // 2 if ch > h else 0]
        img = pad(img, border, fill=0)
        _, h, w = get_dimensions(img)
        if cw == w and ch == h:
            return img
    return crop(img, *middle((h, w), (ch, cw)), ch, cw)


def middle(size: tuple[int, int], part: tuple[int, int]) -> tuple[int, int]:
    """The upper left corner (y, x) of a part in the middle."""
    return round((size[0] - part[0]) / 2.0), round((size[1] - part[1]) / 2.0)


def resized_crop(
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """`crop`, then `resize`."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def hflip(img: Any) -> Any:
    """Left and right exchanged."""
    return aten.flip(img, (-1,)) if is_tensor(img) else img.transpose(0)


def vflip(img: Any) -> Any:
    """Top and bottom exchanged."""
    return aten.flip(img, (-2,)) if is_tensor(img) else img.transpose(1)


def five_crop(img: Any, size: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The corners (top left, top right, bottom left, bottom right) and the middle."""
    ch, cw = pair(size)
    _, h, w = get_dimensions(img)
    if cw > w or ch > h:
        raise ValueError(f"Requested crop size {(ch, cw)} is bigger than input size {(h, w)}")
    corners = ((0, 0), (0, w - cw), (h - ch, 0), (h - ch, w - cw))
    a, b, c, d = (crop(img, top, left, ch, cw) for top, left in corners)
    return a, b, c, d, center_crop(img, (ch, cw))


def ten_crop(img: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    """`five_crop` of the image and of the flipped image."""
    flipped = vflip(img) if vertical_flip else hflip(img)
    return five_crop(img, size) + five_crop(flipped, size)


def rotate(
    img: Any,
    angle: float,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Any = None,
) -> Any:
    """The image turned by `angle` degrees, counter-clockwise.

    center: (x, y), by default the middle. expand: a result that holds all corners.
    """
    mode = interpolation_mode(interpolation)
    return rotate_in_mode(img, angle, mode, expand, center, fill)


def rotate_in_mode(
    img: Any,
    angle: float,
    mode: InterpolationMode,
    expand: bool,
    center: Sequence[float] | None,
    fill: Any,
    fused: bool = False,
) -> Any:
    """`rotate`; `fused`: see `inverse_affine_matrix`."""
    if not isinstance(angle, (int, float)):
        raise TypeError("Argument angle should be int or float")
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError("Argument center should be a sequence")
    if not is_tensor(img):
        return img.rotate(
            angle, pillow_number(mode), expand, center, fillcolor=_pil.fill_of(img, fill)
        )
    name = for_tensors("rotate", mode, _SAMPLES)
    _, height, width = get_dimensions(img)
    at = [0.0, 0.0] if center is None else [center[0] - width * 0.5, center[1] - height * 0.5]
    # Image rows go down, so the sense of the turn is the opposite.
    still = (0.0, 0.0)
    matrix = _tensor_grid.inverse_affine_matrix(at, -angle, still, 1.0, still, fused=fused)
    size = _tensor_grid.turned_size(matrix, width, height) if expand else (height, width)
    grid = _tensor_grid.affine_grid(matrix, img, size)
    return _tensor_grid.sample(img, grid, name, fill, fused)


def _shears(shear: Any) -> tuple[float, float]:
    if isinstance(shear, numbers.Number):
        return float(shear), 0.0  # type: ignore[arg-type]
    if not isinstance(shear, (list, tuple)):
        raise TypeError("Shear should be either a single value or a sequence of two values")
    if len(shear) == 1:
        return shear[0], shear[0]
    if len(shear) != 2:
        raise ValueError(f"Shear should be a sequence containing two values. Got {shear}")
    return shear[0], shear[1]


def affine_arguments(
    angle: Any, translate: Any, scale: float, shear: Any, center: Any
) -> tuple[float, float]:
    """Checks them; the two shears."""
    if not isinstance(angle, (int, float)):
        raise TypeError("Argument angle should be int or float")
    if not isinstance(translate, (list, tuple)):
        raise TypeError("Argument translate should be a sequence")
    if len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    shears = _shears(shear)
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError("Argument center should be a sequence")
    return shears


def affine(
    img: Any,
    angle: float,
    translate: Sequence[int],
    scale: float,
    shear: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: Sequence[float] | None = None,
) -> Any:
    """The image scaled, sheared (x, y) and turned clockwise around `center` (by default the
    middle), then moved by `translate` (x, y) pixels. Angles in degrees."""
    mode = interpolation_mode(interpolation)
    return affine_in_mode(img, angle, translate, scale, shear, mode, fill, center)


def affine_in_mode(
    img: Any,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Any,
    mode: InterpolationMode,
    fill: Any,
    center: Sequence[float] | None,
    fused: bool = False,
) -> Any:
    """`affine`; `fused`: see `inverse_affine_matrix`."""
    shears = affine_arguments(angle, translate, scale, shear, center)
    tensor = is_tensor(img)
    _, height, width = get_dimensions(img)
    if not tensor:
        at = [width * 0.5, height * 0.5] if center is None else center
        matrix = _tensor_grid.inverse_affine_matrix(
            at, angle, translate, scale, shears, fused=fused
        )
        return _pil.transform(img, _pil.AFFINE, matrix, mode, fill)
    name = for_tensors("affine", mode, _SAMPLES)
    at = [0.0, 0.0] if center is None else [center[0] - width * 0.5, center[1] - height * 0.5]
    matrix = _tensor_grid.inverse_affine_matrix(at, angle, translate, scale, shears, fused=fused)
    grid = _tensor_grid.affine_grid(matrix, img, (height, width))
    return _tensor_grid.sample(img, grid, name, fill, fused)


def perspective(
    img: Any,
    startpoints: Sequence[Sequence[int]],
    endpoints: Sequence[Sequence[int]],
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
) -> Any:
    """The image under the projection that takes 4 points (x, y) to 4 others."""
    back = _tensor_grid.perspective_coefficients(startpoints, endpoints)
    return project(img, back, interpolation, fill)


def project(
    img: Any, back: Sequence[float], interpolation: Any, fill: Any, fused: bool = False
) -> Any:
    """The image under the projection whose way back has these 8 numbers."""
    mode = interpolation_mode(interpolation)
    if not is_tensor(img):
        return _pil.transform(img, _pil.PERSPECTIVE, back, mode, fill)
    name = for_tensors("perspective", mode, _SAMPLES)
    return _tensor_grid.sample(img, _tensor_grid.perspective_grid(back, img), name, fill, fused)


def projection(start: Any, end: Any, coefficients: Sequence[float] | None) -> Sequence[float]:
    """The 8 numbers of the way back, which are given or follow from four points and where they
    come to lie."""
    if coefficients is not None:
        if start is not None and end is not None:
            raise ValueError(
                "The startpoints/endpoints and the coefficients shouldn't be defined concurrently."
            )
        if len(coefficients) != 8:
            raise ValueError("Argument coefficients should have 8 float values")
        return coefficients
    if start is None or end is None:
        raise ValueError(
            "Either the startpoints/endpoints or the coefficients must have non `None` values."
        )
    return _tensor_grid.perspective_coefficients(start, end)


def elastic_transform(
    img: Any,
    displacement: Tensor,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
) -> Any:
    """The image with each pixel taken from a place that is moved by `displacement` (1, H, W, 2),
    in halves of the image's sides."""
    mode = interpolation_mode(interpolation)
    tensor = is_tensor(img)
    _, height, width = get_dimensions(img)
    check_displacement(displacement, (height, width))
    name = for_tensors("elastic_transform", mode, (*_SAMPLES, "bicubic"))
    out = displace(img if tensor else pil_to_tensor(img), displacement, name, fill)
    return out if tensor else to_pil_image(out, mode=img.mode)


def displace(
    img: Tensor, displacement: Tensor, mode: str, fill: Any, fused: bool = False
) -> Tensor:
    kind = _tensor_grid.grid_type(img)
    height, width = img.shape[-2:]
    grid = _tensor_grid.identity_grid(height, width, kind).to(displacement.device)
    return _tensor_grid.sample(img, grid + displacement.to(kind), mode, fill, fused)


def check_displacement(displacement: Any, size: tuple[int, int]) -> None:
    if not isinstance(displacement, Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    if tuple(displacement.shape) != (1, *size, 2):
        raise ValueError(
            f"Argument displacement shape should be {(1, *size, 2)}, but given"
            f" {tuple(displacement.shape)}"
        )


def _two(values: Any, name: str, kind: type) -> list[Any]:
    if isinstance(values, (int, kind)):
        return [values, values]
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{name} should be a number or a sequence. Got {type(values)}")
    if len(values) == 1:
        return [values[0], values[0]]
    if len(values) != 2:
        raise ValueError(f"If {name} is a sequence its length should be 2. Got {len(values)}")
    return list(values)


def gaussian_blur(img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """The image with a bell curve drawn over each pixel.

    kernel_size, sigma: numbers, or (x, y), in pixels; sizes odd. sigma: by default
        0.15 * kernel_size + 0.35.
    """
    sizes, sigmas = blur_arguments(kernel_size, sigma)
    if is_tensor(img):
        return _tensor_grid.gaussian_blur(img, sizes, sigmas)
    out = _tensor_grid.gaussian_blur(pil_to_tensor(img), sizes, sigmas)
    return to_pil_image(out, mode=img.mode)


def blur_arguments(kernel_size: Any, sigma: Any) -> tuple[list[int], list[float]]:
    """Both as (x, y)."""
    sizes = _two(kernel_size, "kernel_size", int)
    for size in sizes:
        if size % 2 == 0 or size < 0:
            raise ValueError(
                f"kernel_size should have odd and positive integers. Got {kernel_size}"
            )
    if sigma is None:
        sigma = [size * 0.15 + 0.35 for size in sizes]
    sigmas = [float(s) for s in _two(sigma, "sigma", float)]
    if any(s <= 0.0 or math.isnan(s) for s in sigmas):
        raise ValueError(f"sigma should have positive values. Got {sigma}")
    return sizes, sigmas
