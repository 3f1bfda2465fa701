"""What is done to images before a model with trained weights sees them: the `transforms` of
`torchlab.vision.models.Weights`.

Source: https://docs.pytorch.org/vision/0.28/models.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab import nn
from torchlab._core.dtype import float32
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import functional as F
from torchlab.vision.transforms.functional import InterpolationMode

_KINDS = (
    "Accepts ``PIL.Image``, batched ``(B, C, H, W)`` and single ``(C, H, W)`` image"
    " ``torch.Tensor`` objects."
)


def _scaled(img: Any) -> Tensor:
    """A PIL image or a tensor as floats from 0 to 1, the channels first."""
    return F.convert_image_dtype(img if isinstance(img, Tensor) else F.pil_to_tensor(img), float32)


class _Preset(nn.Module):
    """Printed with the attributes that `_shown` names."""

    _shown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        rows = [f"\n    {name}={getattr(self, name)}" for name in self._shown]
        return f"{type(self).__name__}({''.join(rows)}" + ("\n)" if rows else ")")


class ObjectDetection(_Preset):
    """An image → floats (C, H, W) from 0 to 1."""

    def forward(self, img: Any) -> Tensor:
        return _scaled(img)

    def describe(self) -> str:
        """In words."""
        return f"{_KINDS} The images are rescaled to ``[0.0, 1.0]``."


class ImageClassification(_Preset):
    """An image → floats (C, crop_size, crop_size): its shorter side resized to `resize_size`, the
    centre cut out, scaled to 0 … 1 and normalized."""

    _shown = ("crop_size", "resize_size", "mean", "std", "interpolation")

    def __init__(
        self, *, crop_size: int, resize_size: int = 256,
        mean: Sequence[float] = (0.485, 0.456, 0.406), std: Sequence[float] = (0.229, 0.224, 0.225),
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.crop_size = [crop_size]
        self.resize_size = [resize_size]
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = interpolation
        self.antialias = antialias

    def forward(self, img: Any) -> Tensor:
        img = F.resize(
            img, self.resize_size, interpolation=self.interpolation, antialias=self.antialias
        )
        img = F.center_crop(img, self.crop_size)
        return F.normalize(_scaled(img), mean=self.mean, std=self.std)

    def describe(self) -> str:
        """In words."""
        return (
            f"{_KINDS} The images are resized to ``resize_size={self.resize_size}`` using"
            f" ``interpolation={self.interpolation}``, followed by a central crop of"
            f" ``crop_size={self.crop_size}``. Finally the values are first rescaled to"
            f" ``[0.0, 1.0]`` and then normalized using ``mean={self.mean}`` and"
            f" ``std={self.std}``."
        )


class VideoClassification(_Preset):
    """Frames (T, C, H, W), or a batch of such → floats (C, T, height, width), resized without
    antialiasing, cut and normalized."""

    _shown = ("crop_size", "resize_size", "mean", "std", "interpolation")

    def __init__(
        self, *, crop_size: tuple[int, int], resize_size: tuple[int] | tuple[int, int],
        mean: Sequence[float] = (0.43216, 0.394666, 0.37645),
        std: Sequence[float] = (0.22803, 0.22145, 0.216989),
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    ) -> None:  # fmt: skip
        super().__init__()
        self.crop_size = list(crop_size)
        self.resize_size = list(resize_size)
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = interpolation

    def forward(self, vid: Tensor) -> Tensor:
        batched = vid.ndim >= 5
        n, t, c, h, w = vid.shape if batched else (1, *vid.shape)
        frames = vid.view(-1, c, h, w)
        # the video models were trained before resizing was antialiased
        frames = F.resize(
            frames, self.resize_size, interpolation=self.interpolation, antialias=False
        )
        frames = _scaled(F.center_crop(frames, self.crop_size))
        frames = F.normalize(frames, mean=self.mean, std=self.std)
        made = frames.view(n, t, c, *self.crop_size).permute(0, 2, 1, 3, 4)
        return made if batched else made.squeeze(0)

    def describe(self) -> str:
        """In words."""
        return (
            "Accepts batched ``(B, T, C, H, W)`` and single ``(T, C, H, W)`` video frame"
            " ``torch.Tensor`` objects. The frames are resized to"
            f" ``resize_size={self.resize_size}`` using ``interpolation={self.interpolation}``,"
            f" followed by a central crop of ``crop_size={self.crop_size}``. Finally the values are"
            f" first rescaled to ``[0.0, 1.0]`` and then normalized using ``mean={self.mean}`` and"
            f" ``std={self.std}``. Finally the output dimensions are permuted to"
            " ``(..., C, T, H, W)`` tensors."
        )


class SemanticSegmentation(_Preset):
    """An image → floats (C, H, W), its shorter side resized to `resize_size`, normalized."""

    _shown = ("resize_size", "mean", "std", "interpolation")

    def __init__(
        self, *, resize_size: int | None, mean: Sequence[float] = (0.485, 0.456, 0.406),
        std: Sequence[float] = (0.229, 0.224, 0.225),
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.resize_size = None if resize_size is None else [resize_size]
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = interpolation
        self.antialias = antialias

    def forward(self, img: Any) -> Tensor:
        if isinstance(self.resize_size, list):
            img = F.resize(
                img, self.resize_size, interpolation=self.interpolation, antialias=self.antialias
            )
        return F.normalize(_scaled(img), mean=self.mean, std=self.std)

    def describe(self) -> str:
        """In words."""
        return (
            f"{_KINDS} The images are resized to ``resize_size={self.resize_size}`` using"
            f" ``interpolation={self.interpolation}``. Finally the values are first rescaled to"
            f" ``[0.0, 1.0]`` and then normalized using ``mean={self.mean}`` and"
            f" ``std={self.std}``."
        )


class OpticalFlow(_Preset):
    """Two images → floats from -1 to 1 each."""

    def forward(self, img1: Any, img2: Any) -> tuple[Tensor, Tensor]:
        half = [0.5, 0.5, 0.5]
        one, two = (F.normalize(_scaled(i), mean=half, std=half) for i in (img1, img2))
        return one.contiguous(), two.contiguous()

    def describe(self) -> str:
        """In words."""
        return f"{_KINDS} The images are rescaled to ``[-1.0, 1.0]``."


__all__ = [
    "ImageClassification", "ObjectDetection", "OpticalFlow", "SemanticSegmentation",
    "VideoClassification",
]  # fmt: skip
