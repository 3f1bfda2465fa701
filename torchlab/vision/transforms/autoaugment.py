"""Augmentation from a list of changes: AutoAugment (Cubuk et al. 2018, arXiv:1805.09501),
RandAugment (Cubuk et al. 2019, arXiv:1909.13719), TrivialAugment Wide (Müller and Hutter 2021,
arXiv:2103.10158) and AugMix (Hendrycks et al. 2019, arXiv:1912.02781).

Source: https://docs.pytorch.org/vision/0.28/transforms.html#auto-augmentation
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab import nn
from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import functional as F
from torchlab.vision.transforms._changes import changed, mixed_sizes, mixing_shares, sizes_of
from torchlab.vision.transforms._containers import integer
from torchlab.vision.transforms._image import InterpolationMode, is_tensor
from torchlab.vision.transforms._policies import AutoAugmentPolicy, policies_of

__all__ = ["AugMix", "AutoAugment", "AutoAugmentPolicy", "RandAugment", "TrivialAugmentWide"]


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
        known = sizes_of(10, 0.3, (150.0 / 331.0 * width, 150.0 / 331.0 * height), 30.0, 0.9, 4)
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
            img = changed(F, img, name, size, self.interpolation, fill)
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
        known = sizes_of(bins, 0.3, moves, 30.0, 0.9, 4)
        del known["Invert"]
        for _ in range(self.num_ops):
            name = list(known)[integer(0, len(known))]
            sizes, signed = known[name]
            size = 0.0 if sizes is None else float(sizes[self.magnitude].item())
            if signed and integer(0, 2):
                size = -size
            img = changed(F, img, name, size, self.interpolation, fill)
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
        known = sizes_of(self.num_magnitude_bins, 0.99, (32.0, 32.0), 135.0, 0.99, 6)
        del known["Invert"]
        name = list(known)[integer(0, len(known))]
        sizes, signed = known[name]
        size = 0.0 if sizes is None else float(sizes[integer(0, len(sizes))].item())
        if signed and integer(0, 2):
            size = -size
        return changed(F, img, name, size, self.interpolation, fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_magnitude_bins={self.num_magnitude_bins}"
            f", interpolation={self.interpolation}, fill={self.fill})"
        )


class AugMix(nn.Module):
    """The image mixed with `mixture_width` changed ones, each from a chain of changes.

    severity: the changes' largest strength, from 1 to 10. chain_depth: changes in a chain; 1 to 3
    are drawn where it is not positive. alpha: of the Dirichlet distribution that the shares of the
    chains, and of the image itself, are drawn from. all_ops: with the changes that the paper keeps
    apart because ImageNet-C has them too. For Pillow images and uint8 tensors.
    """

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        fill: list[float] | None = None,
    ) -> None:
        super().__init__()
        if not 1 <= severity <= 10:
            raise ValueError(f"The severity must be between [1, 10]. Got {severity} instead.")
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops
        self.interpolation = interpolation
        self.fill = fill

    def _changed(self, image: Tensor, known: dict[str, Any], fill: Any) -> Tensor:
        """`image` after a chain of changes."""
        for _ in range(self.chain_depth if self.chain_depth > 0 else integer(1, 4)):
            name = list(known)[integer(0, len(known))]
            sizes, signed = known[name]
            size = 0.0 if sizes is None else float(sizes[integer(0, self.severity)].item())
            if signed and integer(0, 2):
                size = -size
            image = changed(F, image, name, size, self.interpolation, fill)
        return image

    def forward(self, orig_img: Any) -> Any:
        F.get_dimensions(orig_img)  # which refuses what is no image
        image = orig_img if is_tensor(orig_img) else F.pil_to_tensor(orig_img)
        fill = _fill_for(orig_img, self.fill)
        _, height, width = F.get_dimensions(image)
        known = mixed_sizes(height, width, self.all_ops)
        batch = aten.reshape(image, (1,) * max(4 - image.ndim, 0) + tuple(image.shape))
        own, shares = mixing_shares(batch, self.mixture_width, self.alpha)
        mix = own * batch
        for k in range(self.mixture_width):
            mix.add_(shares[k] * self._changed(batch, known, fill))
        mix = aten.reshape(mix, image.shape).to(dt.uint8)
        return mix if is_tensor(orig_img) else F.to_pil_image(mix)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(severity={self.severity}, mixture_width={self.mixture_width}"
            f", chain_depth={self.chain_depth}, alpha={self.alpha}, all_ops={self.all_ops}"
            f", interpolation={self.interpolation}, fill={self.fill})"
        )
