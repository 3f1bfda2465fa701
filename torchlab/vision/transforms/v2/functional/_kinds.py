"""Between Pillow images, arrays, tensors and TVTensors.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#conversion
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _convert
from torchlab.vision.transforms._convert import pil_to_tensor, to_pil_image
from torchlab.vision.transforms._image import is_picture
from torchlab.vision.tv_tensors import Image

__all__ = ["pil_to_tensor", "to_image", "to_pil_image", "to_tensor"]


def to_image(inpt: Any) -> Image:
    """A tensor, an array (H, W[, C]) or a Pillow image as an `Image`, values unscaled.

    TypeError for another type.
    """
    if isinstance(inpt, np.ndarray):
        # One dimension is a row.
        array = np.atleast_3d(inpt)
        return Image(aten.permute(aten.from_numpy(array), (2, 0, 1)).contiguous())
    if is_picture(inpt):
        return Image(pil_to_tensor(inpt))
    if isinstance(inpt, Tensor):
        return Image(inpt.as_subclass(Tensor))
    raise TypeError(
        "Input can either be a pure Tensor, a numpy array, or a PIL image, but got"
        f" {type(inpt)} instead."
    )


def to_tensor(inpt: Any) -> Tensor:
    """A Pillow image or an array as a tensor from 0 to 1: `to_image`, then `to_dtype`."""
    warnings.warn(
        "The function `to_tensor(...)` is deprecated and will be removed in a future release."
        " Instead, please use `to_image(...)` followed by"
        " `to_dtype(..., dtype=torch.float32, scale=True)`.",
        stacklevel=2,
    )
    return _convert.to_tensor(inpt)
