"""Augmentation from a list of changes: AutoAugment (Cubuk et al. 2018, arXiv:1805.09501),
RandAugment (Cubuk et al. 2019, arXiv:1909.13719) and TrivialAugment Wide (Müller and Hutter 2021,
arXiv:2103.10158).

Source: https://docs.pytorch.org/vision/0.28/transforms.html#auto-augmentation
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import functional as F
from torchlab.vision.transforms._containers import integer
from torchlab.vision.transforms._image import InterpolationMode, is_tensor
from torchlab.vision.transforms._policies import AutoAugmentPolicy, policies_of

_SHARES = {
    "Brightness": F.adjust_brightness,
    "Color": F.adjust_saturation,
    "Contrast": F.adjust_contrast,
    "Sharpness": F.adjust_sharpness,
}


def _apply(img: Any, name: str, size: float, mode: InterpolationMode, fill: Any) -> Any:
    """The change `name` of that size."""
    if name in ("ShearX", "ShearY"):
        # The shear moves the far edge by size times the side, and keeps the corner (0, 0).
        angle = math.degrees(math.atan(size))
        shear = [angle, 0.0] if name == "ShearX" else [0.0, angle]
        return F.affine(img, 0.0, [0, 0], 1.0, shear, mode, fill, [0, 0])
    if name in ("TranslateX", "TranslateY"):
        move = [int(size), 0] if name == "TranslateX" else [0, int(size)]
        return F.affine(img, 0.0, move, 1.0, [0.0, 0.0], mode, fill)
    if name == "Rotate":
        return F.rotate(img, size, mode, fill=fill)
    if name in _SHARES:
        return _SHARES[name](img, 1.0 + size)
    if name == "Posterize":
        return F.posterize(img, int(size))
    if name == "Solarize":
        return F.solarize(img, size)
    if name == "AutoContrast":
        return F.autocontrast(img)
    if name == "Equalize":
        return F.equalize(img)
    if name == "Invert":
        return F.invert(img)
    return img


def _sizes(
    bins: int, shear: float, moves: tuple[float, float], turn: float, share: float, lost_bits: int
) -> dict[str, tuple[Tensor | None, bool]]:
    """For each change the sizes it may have, from weak to strong, and whether a sign is drawn."""

    def up(to: float) -> Tensor:
        return aten.linspace(0.0, to, bins)

    bits = 8 - aten.round(aten.arange(bins) / ((bins - 1) / lost_bits)).int()
    return {
        "Identity": (None, False),
        "ShearX": (up(shear), True),
        "ShearY": (up(shear), True),
        "TranslateX": (up(moves[0]), True),
        "TranslateY": (up(moves[1]), True),
        "Rotate": (up(turn), True),
        "Brightness": (up(share), True),
        "Color": (up(share), True),
        "Contrast": (up(share), True),
        "Sharpness": (up(share), True),
        "Posterize": (bits, False),
        "Solarize": (aten.linspace(255.0, 0.0, bins), False),
        "AutoContrast": (None, False),
        "Equalize": (None, False),
        "Invert": (None, False),
    }


def _fill_for(img: Any, fill: Any) -> Any:
    if fill is None or not is_tensor(img):
        return fill
    if isinstance(fill, (int, float)):
        return [float(fill)] * F.get_dimensions(img)[0]
    return [float(f) for f in fill]


class AutoAugment(nn.Module):
    """One of the 25 pairs of changes that a search found for the data set `policy`, drawn alike.

    For Pillow images and uint8 tensors.
    """

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: list[float] | None = None,
    ) -> None:
        super().__init__()
        self.policy = policy
        self.interpolation = interpolation
        self.fill = fill
        self.policies = policies_of(policy)

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, Tensor, Tensor]:
        """(pair, a number from 0 to 1 for each change, a sign (0 or 1) for each) of a draw."""
        return integer(0, transform_num), aten.rand((2,)), aten.randint(0, 2, (2,))

    def forward(self, img: Any) -> Any:
        fill = _fill_for(img, self.fill)
        _, height, width = F.get_dimensions(img)
        known = _sizes(10, 0.3, (150.0 / 331.0 * width, 150.0 / 331.0 * height), 30.0, 0.9, 4)
        pair, chances, signs = self.get_params(len(self.policies))
        drawn = zip(self.policies[pair], chances.tolist(), signs.tolist(), strict=True)
        for (name, probability, strength), chance, sign in drawn:
            # The draw is a float32, and so is what it is compared with.
            if chance > float(np.float32(probability)):
                continue
            sizes, signed = known[name]
            size = 0.0 if sizes is None or strength is None else float(sizes[strength].item())
            if signed and sign == 0:
                size = -size
            img = _apply(img, name, size, self.interpolation, fill)
        return img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(policy={self.policy}, fill={self.fill})"


class RandAugment(nn.Module):
    """`num_ops` changes drawn alike, all of strength `magnitude` of `num_magnitude_bins`.

    For Pillow images and uint8 tensors.
    """

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: list[float] | None = None,
    ) -> None:
        super().__init__()
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins
        self.interpolation = interpolation
        self.fill = fill

    def forward(self, img: Any) -> Any:
        fill = _fill_for(img, self.fill)
        _, height, width = F.get_dimensions(img)
        bins = self.num_magnitude_bins
        moves = (150.0 / 331.0 * width, 150.0 / 331.0 * height)
        known = _sizes(bins, 0.3, moves, 30.0, 0.9, 4)
        del known["Invert"]
        for _ in range(self.num_ops):
            name = list(known)[integer(0, len(known))]
            sizes, signed = known[name]
            size = 0.0 if sizes is None else float(sizes[self.magnitude].item())
            if signed and integer(0, 2):
                size = -size
            img = _apply(img, name, size, self.interpolation, fill)
        return img

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_ops={self.num_ops}, magnitude={self.magnitude}"
            f", num_magnitude_bins={self.num_magnitude_bins}, interpolation={self.interpolation}"
            f", fill={self.fill})"
        )


class TrivialAugmentWide(nn.Module):
    """One change, of a strength drawn alike. For Pillow images and uint8 tensors."""

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: list[float] | None = None,
    ) -> None:
        super().__init__()
        self.num_magnitude_bins = num_magnitude_bins
        self.interpolation = interpolation
        self.fill = fill

    def forward(self, img: Any) -> Any:
        fill = _fill_for(img, self.fill)
        known = _sizes(self.num_magnitude_bins, 0.99, (32.0, 32.0), 135.0, 0.99, 6)
        del known["Invert"]
        name = list(known)[integer(0, len(known))]
        sizes, signed = known[name]
        size = 0.0 if sizes is None else float(sizes[integer(0, len(sizes))].item())
        if signed and integer(0, 2):
            size = -size
        return _apply(img, name, size, self.interpolation, fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_magnitude_bins={self.num_magnitude_bins}"
            f", interpolation={self.interpolation}, fill={self.fill})"
        )
