"""Transforms between kinds of images.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#conversion
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _convert
from torchlab.vision.transforms._image import is_picture
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2._transform import Transform
from torchlab.vision.transforms.v2.functional import is_pure_tensor
from torchlab.vision.tv_tensors import Image, TVTensor


class PILToTensor(Transform):
    """Pillow images as plain tensors, values unscaled."""

    _transformed_types = (is_picture,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.pil_to_tensor(inpt)


class ToImage(Transform):
    """Plain tensors, arrays (H, W[, C]) and Pillow images as `Image`s, values unscaled."""

    _transformed_types = (is_pure_tensor, is_picture, np.ndarray)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_image(inpt)


class ToPILImage(Transform):
    """Tensors (C, H, W) and arrays (H, W, C) as Pillow images of that mode."""

    _transformed_types = (is_pure_tensor, Image, np.ndarray)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_pil_image(inpt, mode=self.mode)


class ToPureTensor(Transform):
    """TVTensors as plain tensors."""

    _transformed_types = (TVTensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt.as_subclass(Tensor)


class ToTensor(Transform):
    """`Compose([ToImage(), ToDtype(float32, scale=True)])` replaces this."""

    _transformed_types = (is_picture, np.ndarray)

    def __init__(self) -> None:
        warnings.warn(
            "The transform `ToTensor()` is deprecated and will be removed in a future release."
            " Instead, please use"
            " `v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])`."
            " Output is equivalent up to float precision.",
            stacklevel=2,
        )
        super().__init__()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return _convert.to_tensor(inpt)
