"""Transforms of colours, most of them random.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#color
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.vision.transforms import _colours as v1
from torchlab.vision.transforms._containers import chance, uniform
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2._samples import query_chw
from torchlab.vision.transforms.v2._transform import RandomApplyTransform, Transform


class Grayscale(Transform):
    """`functional.rgb_to_grayscale`."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.rgb_to_grayscale, inpt, num_output_channels=self.num_output_channels
        )


class RandomGrayscale(RandomApplyTransform):
    """Black and white with probability `p`, in as many channels as before."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=p)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"num_input_channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.rgb_to_grayscale, inpt, num_output_channels=params["num_input_channels"]
        )


class RGB(Transform):
    """`functional.grayscale_to_rgb`: three channels where there was one."""

    def __init__(self) -> None:
        super().__init__()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.grayscale_to_rgb, inpt)


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed, in a random order.

    A number x means factors from max(0, 1 - x) to 1 + x (hue: -x to x), a pair from and to.
    """

    get_params = staticmethod(v1.ColorJitter.get_params)

    def __init__(
        self,
        brightness: float | Sequence[float] | None = None,
        contrast: float | Sequence[float] | None = None,
        saturation: float | Sequence[float] | None = None,
        hue: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.brightness = self._factors(brightness, "brightness")
        self.contrast = self._factors(contrast, "contrast")
        self.saturation = self._factors(saturation, "saturation")
        self.hue = self._factors(hue, "hue", 0.0, (-0.5, 0.5))

    @staticmethod
    def _factors(
        value: Any,
        name: str,
        middle: float = 1.0,
        bound: tuple[float, float] = (0, math.inf),
    ) -> tuple[float, float] | None:
        if value is None:
            return None
        if isinstance(value, (int, float)):
            if value < 0:
                raise ValueError(f"If {name} is a single number, it must be non negative.")
            low, high = middle - float(value), middle + float(value)
            low = low if name == "hue" else max(low, 0.0)
        elif isinstance(value, Sequence) and len(value) == 2:
            low, high = float(value[0]), float(value[1])
        else:
            raise TypeError(
                f"{name}={value} should be a single number or a sequence with length 2."
            )
        if not bound[0] <= low <= high <= bound[1]:
            raise ValueError(
                f"{name} values should be between {bound} and increasing, but got {[low, high]}."
            )
        return None if low == high == middle else (low, high)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        order, b, c, s, h = self.get_params(
            self.brightness, self.contrast, self.saturation, self.hue
        )
        return {
            "fn_idx": order,
            "brightness_factor": b,
            "contrast_factor": c,
            "saturation_factor": s,
            "hue_factor": h,
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for i in params["fn_idx"].tolist():
            name, change = _CHANGES[i]
            factor = params[f"{name}_factor"]
            if factor is not None:
                inpt = self._call_kernel(change, inpt, factor)
        return inpt


_CHANGES = (
    ("brightness", F.adjust_brightness),
    ("contrast", F.adjust_contrast),
    ("saturation", F.adjust_saturation),
    ("hue", F.adjust_hue),
)


class RandomChannelPermutation(Transform):
    """The channels in an order that is drawn."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"permutation": aten.randperm(query_chw(flat_inputs)[0])}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.permute_channels, inpt, params["permutation"])


class RandomPhotometricDistort(Transform):
    """Brightness, contrast, saturation, hue and the channels' order changed, each with
    probability `p`: the distortion of SSD (Liu et al. 2016, arXiv:1512.02325).

    Each pair gives the factors, from and to. Contrast comes before or after saturation and hue.
    """

    def __init__(
        self,
        brightness: tuple[float, float] = (0.875, 1.125),
        contrast: tuple[float, float] = (0.5, 1.5),
        saturation: tuple[float, float] = (0.5, 1.5),
        hue: tuple[float, float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__()
        self.brightness = brightness
        self.contrast = contrast
        self.hue = hue
        self.saturation = saturation
        self.p = p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels = query_chw(flat_inputs)[0]
        params: dict[str, Any] = {
            f"{name}_factor": uniform(*getattr(self, name)) if chance() < self.p else None
            for name, _ in _CHANGES
        }
        params["contrast_before"] = chance() < 0.5
        permutes = chance() < self.p
        params["channel_permutation"] = aten.randperm(channels) if permutes else None
        return params

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        first, contrast, saturation, hue = _CHANGES
        middle = (saturation, hue)
        order = (contrast, *middle) if params["contrast_before"] else (*middle, contrast)
        for name, change in (first, *order):
            factor = params[f"{name}_factor"]
            if factor is not None:
                inpt = self._call_kernel(change, inpt, factor)
        if params["channel_permutation"] is not None:
            inpt = self._call_kernel(F.permute_channels, inpt, params["channel_permutation"])
        return inpt


class RandomEqualize(RandomApplyTransform):
    """`functional.equalize` with probability `p`."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.equalize, inpt)


class RandomInvert(RandomApplyTransform):
    """`functional.invert` with probability `p`."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.invert, inpt)


class RandomAutocontrast(RandomApplyTransform):
    """`functional.autocontrast` with probability `p`."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.autocontrast, inpt)


class RandomPosterize(RandomApplyTransform):
    """`functional.posterize` with probability `p`."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.bits = bits

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.posterize, inpt, bits=self.bits)


class RandomSolarize(RandomApplyTransform):
    """`functional.solarize` with probability `p`."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.threshold = threshold

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.solarize, inpt, threshold=self.threshold)


class RandomAdjustSharpness(RandomApplyTransform):
    """`functional.adjust_sharpness` with probability `p`."""

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.adjust_sharpness, inpt, sharpness_factor=self.sharpness_factor)
