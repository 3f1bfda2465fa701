"""The fields of samples in tar files: what is made of their bytes, by their extension.

Source: https://github.com/webdataset/webdataset#the-webdataset-format
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy

image = lazy("PIL.Image", "pip install pillow")
serialization = lazy("torchlab.serialization")

__all__ = ["DECODERS", "decoded"]


def _text(data: bytes) -> str:
    return data.decode()


def _class(data: bytes) -> int:
    return int(data)


def _array(data: bytes) -> np.ndarray:
    return np.load(io.BytesIO(data), allow_pickle=False)


def _saved(data: bytes) -> Any:
    return serialization.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def _picture(data: bytes) -> Any:
    with image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as picture:
        pixels = np.array(picture.convert("RGB"))
    return aten.as_tensor(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


DECODERS: dict[str, Callable[[bytes], Any]] = {
    "txt": _text,
    "text": _text,
    "json": json.loads,
    "cls": _class,
    "npy": _array,
    "pth": _saved,
    "pt": _saved,
    "jpg": _picture,
    "jpeg": _picture,
    "png": _picture,
}
"""By the last part of the extension: text, JSON, a class's number, a NumPy array (no objects), what
`torch.save` wrote (loaded with weights_only=True: no code runs), a picture as a uint8 tensor
(3, height, width)."""


def decoded(
    sample: dict[str, Any], decoders: Mapping[str, Callable[[bytes], Any]]
) -> dict[str, Any]:
    """The sample with its fields decoded; those of other extensions stay bytes. ValueError, which
    says which field of which sample, for one that cannot be decoded."""
    made = {}
    for extension, data in sample.items():
        decode = decoders.get(extension.rpartition(".")[2])
        if extension.startswith("__") or decode is None:
            made[extension] = data
            continue
        try:
            made[extension] = decode(data)
        except ImportError:
            raise
        except Exception as e:
            raise ValueError(
                f"{sample['__url__']}: the field {extension!r} of the sample"
                f" {sample['__key__']!r} cannot be decoded: {type(e).__name__}: {e}"
            ) from e
    return made
