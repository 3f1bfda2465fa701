"""Images, videos and masks.

Source: https://docs.pytorch.org/vision/0.28/tv_tensors.html
"""

from __future__ import annotations

from typing import Any, Self

from torchlab._core.dispatch.registry import aten
from torchlab.vision.transforms._convert import pil_to_tensor
from torchlab.vision.transforms._image import is_picture
from torchlab.vision.tv_tensors._tv_tensor import TVTensor


class Image(TVTensor):
    """An image (…, C, H, W), of what `as_tensor` takes or a Pillow image; (H, W) gets C = 1.

    ValueError for fewer dimensions.
    """

    def __new__(
        cls,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
    ) -> Self:
        if is_picture(data):
            data = pil_to_tensor(data)
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        if tensor.ndim < 2:
            raise ValueError(f"Tensor must be 2D or higher, got {tensor.ndim}D tensor.")
        if tensor.ndim == 2:
            tensor = aten.unsqueeze(tensor, 0)
        return tensor.as_subclass(cls)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._make_repr()


class Video(TVTensor):
    """A video (…, T, C, H, W), of what `as_tensor` takes. ValueError for fewer dimensions."""

    def __new__(
        cls,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
    ) -> Self:
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        if tensor.ndim < 4:
            raise ValueError(
                f"Video: give a tensor (..., T, C, H, W), got the shape {tuple(tensor.shape)}"
            )
        return tensor.as_subclass(cls)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._make_repr()


class Mask(TVTensor):
    """Masks (…, H, W) of segments or objects, of what `as_tensor` takes or a Pillow image."""

    def __new__(
        cls,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
    ) -> Self:
        if is_picture(data):
            data = pil_to_tensor(data)
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        return tensor.as_subclass(cls)
