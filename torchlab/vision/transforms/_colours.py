"""Transforms of colours, most of them random.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#color
"""

from __future__ import annotations

import numbers
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import functional as F
from torchlab.vision.transforms._containers import Perhaps, chance, uniform


class ColorJitter(nn.Module):
    """Brightness, contrast, saturation and hue changed, in a random order.

    A number x means factors from max(0, 1 - x) to 1 + x (hue: -x to x), a pair from and to.
    """

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0
    ) -> None:
        super().__init__()
        high = float("inf")
        self.brightness = self._factors(brightness, "brightness", 1.0, (0.0, high))
        self.contrast = self._factors(contrast, "contrast", 1.0, (0.0, high))
        self.saturation = self._factors(saturation, "saturation", 1.0, (0.0, high))
        self.hue = self._factors(hue, "hue", 0.0, (-0.5, 0.5))

    @staticmethod
    def _factors(
        value: Any, name: str, middle: float, bound: tuple[float, float]
    ) -> tuple[float, float] | None:
        if isinstance(value, numbers.Number):
            if value < 0:  # type: ignore[operator]
                raise ValueError(f"If {name} is a single number, it must be non negative.")
            low, high = middle - value, middle + value  # type: ignore[operator]
            if name != "hue":
                low = max(low, 0.0)
        elif isinstance(value, (tuple, list)) and len(value) == 2:
            low, high = float(value[0]), float(value[1])
        else:
            raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
        if not bound[0] <= low <= high <= bound[1]:
            raise ValueError(f"{name} values should be between {bound}, but got {[low, high]}.")
        return None if low == high == middle else (low, high)

    @staticmethod
    def get_params(
        brightness: Any, contrast: Any, saturation: Any, hue: Any
    ) -> tuple[Tensor, float | None, float | None, float | None, float | None]:
        """(order, brightness, contrast, saturation, hue) of a draw."""
        order = aten.randperm(4)
        b, c, s, h = (
            None if r is None else float(uniform(*r))
            for r in (brightness, contrast, saturation, hue)
        )
        return order, b, c, s, h

    def forward(self, img: Any) -> Any:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for i in order.tolist():
            factor = factors[i]
            if factor is not None:
                img = changes[i](img, factor)
        return img

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast},"
            f" saturation={self.saturation}, hue={self.hue})"
        )


class Grayscale(nn.Module):
    """`functional.rgb_to_grayscale`."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class RandomGrayscale(Perhaps):
    """Black and white with probability `p`, in as many channels as before."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def forward(self, img: Any) -> Any:
        channels = F.get_dimensions(img)[0]  # refuses what is no image, whatever is drawn
        return F.rgb_to_grayscale(img, channels) if chance() < self.p else img


class RandomInvert(Perhaps):
    """`functional.invert` with probability `p`."""

    def _changed(self, img: Any) -> Any:
        return F.invert(img)


class RandomPosterize(Perhaps):
    """`functional.posterize` with probability `p`."""

    _told = ("bits",)

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def _changed(self, img: Any) -> Any:
        return F.posterize(img, self.bits)


class RandomSolarize(Perhaps):
    """`functional.solarize` with probability `p`."""

    _told = ("threshold",)

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def _changed(self, img: Any) -> Any:
        return F.solarize(img, self.threshold)


class RandomAdjustSharpness(Perhaps):
    """`functional.adjust_sharpness` with probability `p`."""

    _told = ("sharpness_factor",)

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def _changed(self, img: Any) -> Any:
        return F.adjust_sharpness(img, self.sharpness_factor)


class RandomAutocontrast(Perhaps):
    """`functional.autocontrast` with probability `p`."""

    def _changed(self, img: Any) -> Any:
        return F.autocontrast(img)


class RandomEqualize(Perhaps):
    """`functional.equalize` with probability `p`."""

    def _changed(self, img: Any) -> Any:
        return F.equalize(img)
