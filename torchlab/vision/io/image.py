"""Images in files and their bytes, as tensors: JPEG, PNG, GIF and WebP, by way of Pillow.

Source: https://docs.pytorch.org/vision/0.28/io.html
"""

from __future__ import annotations

import enum
import io
import os
import warnings
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor

PIL = lazy("PIL.Image", needs="pip install pillow")
PILOps = lazy("PIL.ImageOps", needs="pip install pillow")
Path = str | os.PathLike[str]


class ImageReadMode(enum.Enum):
    """What an image is converted to while it is read; a string such as "RGB" does as well."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4
    RGBA = RGB_ALPHA


_GRAY = (9794, 19234, 3740)  # of red, green and blue in 32768 parts of gray, as libpng has it


def _mode(mode: ImageReadMode | str) -> ImageReadMode:
    return ImageReadMode[mode.upper()] if isinstance(mode, str) else mode


def read_file(path: Path) -> Tensor:
    """The file's bytes, a tensor (N) of uint8. RuntimeError if there is no such file."""
    try:
        return aten.from_numpy(np.fromfile(path, np.uint8))
    except OSError as e:
        raise RuntimeError(f"read_file: {e}") from e


def write_file(filename: Path, data: Tensor) -> None:
    """Write the bytes of a tensor (N) of uint8 into a file."""
    _check_bytes(data)
    with open(filename, "wb") as file:
        file.write(data.numpy().tobytes())


def _check_bytes(data: Tensor) -> None:
    if not isinstance(data, Tensor) or data.dtype is not dt.uint8 or data.dim() != 1:
        found: Any = type(data)
        if isinstance(data, Tensor):
            found = f"{data.dtype}, shape {tuple(data.shape)}"
        raise RuntimeError(f"Expected a non empty 1-dimensional tensor of dtype uint8, got {found}")
    if not data.numel():
        raise RuntimeError("Expected a non empty 1-dimensional tensor, got one without elements")


def _open(data: Tensor, kinds: tuple[str, ...]) -> Any:
    _check_bytes(data)
    try:
        return PIL.open(io.BytesIO(data.numpy().tobytes()), formats=kinds)
    except PIL.UnidentifiedImageError:
        raise RuntimeError(
            f"decode_image: the {data.numel()} bytes are no {' or '.join(kinds)} image"
        ) from None
    except OSError as e:
        raise RuntimeError(f"decode_image: the {kinds[0]} image is incomplete ({e})") from e


def _array(image: Any) -> np.ndarray[Any, Any]:
    """A Pillow image as (C, H, W)."""
    array = np.array(image)
    array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    return np.ascontiguousarray(array)


def _tensor(image: Any) -> Tensor:
    return aten.from_numpy(_array(image))


def _load(image: Any) -> None:
    try:
        image.load()
    except OSError as e:
        raise RuntimeError(f"decode_image: the {image.format} image is incomplete ({e})") from e


def _turned(image: Any, exif: bool) -> Any:
    _load(image)
    return PILOps.exif_transpose(image) if exif else image


def decode_jpeg(
    input: Tensor | list[Tensor],
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    device: Any = "cpu",
    apply_exif_orientation: bool = False,
) -> Any:
    """A JPEG image's bytes as a tensor (C, H, W) of uint8; a list gives a list. mode: UNCHANGED,
    GRAY or RGB. device: where the result is put."""
    if isinstance(input, list):
        if not input:
            raise ValueError("Input list must contain at least one element")
        return [decode_jpeg(x, mode, device, apply_exif_orientation) for x in input]
    mode = _mode(mode)
    image = _open(input, ("JPEG",))
    if mode is ImageReadMode.GRAY:
        image.draft("L", image.size)  # the luminance as it is in the file
    elif mode not in (ImageReadMode.UNCHANGED, ImageReadMode.RGB):
        raise RuntimeError("The provided mode is not supported for JPEG decoding on CPU")
    image = _turned(image, apply_exif_orientation)
    if mode is not ImageReadMode.UNCHANGED:
        image = image.convert("L" if mode is ImageReadMode.GRAY else "RGB")
    found = _array(image)
    return aten.from_numpy(255 - found if image.mode == "CMYK" else found).to(device)


def decode_png(
    input: Tensor,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """A PNG image's bytes as a tensor (C, H, W): uint8, or uint16 for 16-bit images in gray.

    RuntimeError for 16-bit images in colour, of which Pillow reads only the upper bytes.
    """
    mode = _mode(mode)
    image = _open(input, ("PNG",))
    if len(input) > 24 and int(input[24]) == 16 and not image.mode.startswith("I"):
        raise RuntimeError(
            "decode_png: a 16-bit image in colour; torchlab reads PNG with Pillow, which keeps only"
            " 8 bits of it. Convert it to 8 bits"
        )
    image = _turned(image, apply_exif_orientation)
    if image.mode.startswith("I"):
        return aten.from_numpy(_as(np.array(image).astype(np.uint16)[None], mode))
    if image.mode == "1":
        image = image.convert("L")
    if image.mode == "P" and mode is not ImageReadMode.UNCHANGED:
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    return aten.from_numpy(_as(_array(image), mode))


def _as(pixels: np.ndarray[Any, Any], mode: ImageReadMode) -> np.ndarray[Any, Any]:
    """Pixels (C, H, W) with the channels of a mode."""
    if mode is ImageReadMode.UNCHANGED:
        return pixels
    colour, alpha = (pixels, None) if len(pixels) in (1, 3) else (pixels[:-1], pixels[-1:])
    if mode in (ImageReadMode.GRAY, ImageReadMode.GRAY_ALPHA):
        if len(colour) == 3:
            weights = np.array(_GRAY)[:, None, None]
            colour = ((colour * weights).sum(0, keepdims=True) >> 15).astype(pixels.dtype)
    elif len(colour) == 1:
        colour = colour.repeat(3, axis=0)
    if mode in (ImageReadMode.GRAY, ImageReadMode.RGB):
        return colour
    if alpha is None:
        alpha = np.full_like(colour[:1], np.iinfo(pixels.dtype).max)
    return np.concatenate((colour, alpha))


def decode_gif(input: Tensor) -> Tensor:
    """A GIF image's bytes as a tensor (3, H, W) of uint8; (N, 3, H, W) if it has N frames."""
    image = _open(input, ("GIF",))
    frames = []
    for i in range(getattr(image, "n_frames", 1)):
        image.seek(i)
        frames.append(_tensor(image.convert("RGB")))
    return frames[0] if len(frames) == 1 else aten.stack(frames)


def decode_webp(input: Tensor, mode: ImageReadMode | str = ImageReadMode.UNCHANGED) -> Tensor:
    """A WebP image's bytes as a tensor (C, H, W) of uint8; RGB, or RGBA if it has alpha. mode:
    UNCHANGED, RGB or RGB_ALPHA."""
    mode = _mode(mode)
    image = _open(input, ("WEBP",))
    _load(image)
    if mode in (ImageReadMode.GRAY, ImageReadMode.GRAY_ALPHA):
        warnings.warn(
            "Webp does not support grayscale conversions. The returned tensor will be in the"
            " colorspace of the original image.",
            stacklevel=2,
        )
        mode = ImageReadMode.UNCHANGED
    return aten.from_numpy(_as(_array(image), mode))


_DECODERS: dict[bytes, Any] = {b"\xff\xd8\xff": decode_jpeg, b"\x89PNG": decode_png}


def decode_image(
    input: Tensor | Path,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """The image in a file, or of its bytes in a tensor (N) of uint8, as a tensor (C, H, W).

    JPEG, PNG, GIF and WebP. mode: what it is converted to. apply_exif_orientation: turn it as its
    EXIF data says (JPEG and PNG). RuntimeError for what is no such image.
    """
    data = input if isinstance(input, Tensor) else read_file(input)
    _check_bytes(data)
    head = bytes(data[:16].tolist())
    for start, decode in _DECODERS.items():
        if head.startswith(start):
            found: Tensor = decode(data, mode, apply_exif_orientation=apply_exif_orientation)
            return found
    if head.startswith((b"GIF87a", b"GIF89a")):
        return decode_gif(data)
    if head.startswith(b"RIFF") and head[8:15] == b"WEBPVP8":
        return decode_webp(data, mode)
    raise RuntimeError(
        "Unsupported image file. Only jpeg, png, webp and gif are currently supported. It begins"
        f" with {head[:8]!r}"
    )


def read_image(
    path: Path,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """`decode_image` of a file: the older name."""
    return decode_image(read_file(path), mode, apply_exif_orientation)


def _pixels(input: Tensor, what: str) -> Any:
    if not isinstance(input, Tensor) or input.dtype is not dt.uint8:
        raise RuntimeError(f"encode_{what}: Input tensor dtype should be uint8")
    if input.dim() != 3:
        raise RuntimeError(f"encode_{what}: Input data should be a 3-dimensional tensor")
    if input.shape[0] not in (1, 3):
        raise RuntimeError(
            f"encode_{what}: The number of channels should be 1 or 3, got: {input.shape[0]}"
        )
    array = input.numpy()
    return PIL.fromarray(array[0] if len(array) == 1 else array.transpose(1, 2, 0).copy())


def _bytes(image: Any, **options: Any) -> Tensor:
    file = io.BytesIO()
    image.save(file, **options)
    return aten.from_numpy(np.frombuffer(file.getvalue(), np.uint8).copy())


def encode_jpeg(input: Tensor | list[Tensor], quality: int = 75) -> Any:
    """The bytes (N) of a JPEG image of a tensor (1 or 3, H, W) of uint8; a list gives a list.
    quality: 1 to 100."""
    if not 1 <= quality <= 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    if isinstance(input, list):
        if not input:
            raise ValueError("encode_jpeg requires at least one input tensor when a list is passed")
        return [encode_jpeg(x, quality) for x in input]
    return _bytes(_pixels(input, "jpeg"), format="JPEG", quality=quality)


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """The bytes (N) of a PNG image of a tensor (1 or 3, H, W) of uint8. compression_level: 0 to
    9."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return _bytes(_pixels(input, "png"), format="PNG", compress_level=compression_level)


def write_jpeg(input: Tensor, filename: Path, quality: int = 75) -> None:
    """`encode_jpeg` into a file."""
    write_file(filename, encode_jpeg(input, quality))


def write_png(input: Tensor, filename: Path, compression_level: int = 6) -> None:
    """`encode_png` into a file."""
    write_file(filename, encode_png(input, compression_level))


__all__ = [
    "ImageReadMode",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "read_file",
    "read_image",
    "write_file",
    "write_jpeg",
    "write_png",
]
