"""Augmentation from a list of changes: AutoAugment (Cubuk et al. 2018, arXiv:1805.09501),
RandAugment (Cubuk et al. 2019, arXiv:1909.13719), TrivialAugment Wide (Müller and Hutter 2021,
arXiv:2103.10158) and AugMix (Hendrycks et al. 2019, arXiv:1912.02781).

Source: https://docs.pytorch.org/vision/0.28/transforms.html#auto-augmentation
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.pytree import tree_flatten, tree_unflatten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import autoaugment as v1
from torchlab.vision.transforms._changes import changed, mixed_sizes, mixing_shares, sizes_of
from torchlab.vision.transforms._containers import chance, integer
from torchlab.vision.transforms._image import is_picture, max_value
from torchlab.vision.transforms._policies import AutoAugmentPolicy, policies_of
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2._arguments import fill_for, fills_of
from torchlab.vision.transforms.v2._resizes import Interpolation
from torchlab.vision.transforms.v2._samples import check_type
from torchlab.vision.transforms.v2._transform import Transform
from torchlab.vision.transforms.v2.functional import is_pure_tensor
from torchlab.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video, wrap

Sizes = dict[str, tuple[Tensor | None, bool]]


class _Automatic(Transform):
    """One image or video of the sample changed; the rest of it are labels."""

    def __init__(self, *, interpolation: Interpolation = "nearest", fill: Any = None) -> None:
        super().__init__()
        self.interpolation = interpolation
        self.fill = fill
        self._fills = fills_of(fill)

    def forward(self, *inputs: Any) -> Any:
        flat, form = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        self.check_inputs(flat)
        found = []
        for i, takes in enumerate(self._chosen(flat)):
            if isinstance(flat[i], (BoundingBoxes, KeyPoints, Mask)):
                raise TypeError(
                    f"Inputs of type {type(flat[i]).__name__} are not supported by"
                    f" {type(self).__name__}()"
                )
            if takes and check_type(flat[i], (is_pure_tensor, Image, is_picture, Video)):
                found.append(i)
        if not found:
            raise TypeError("Found no image in the sample.")
        if len(found) > 1:
            raise TypeError(
                "Auto augment transformations are only properly defined for a single image or"
                f" video, but found {len(found)}."
            )
        flat[found[0]] = self._augmented(flat[found[0]])
        return tree_unflatten(flat, form)

    def _augmented(self, image: Any) -> Any:
        raise NotImplementedError

    def _one_change(self, image: Any, name: str, size: float) -> Any:
        """The image after the change `name` of that size."""
        if name == "Solarize":
            size *= 255.0 if is_picture(image) else max_value(image.dtype)
        fill = fill_for(self._fills, image)
        return changed(F, image, name, size, self.interpolation, fill)


def _relative(known: Sizes) -> Sizes:
    """With thresholds as parts of the image's largest value."""
    steps = known["Posterize"][0]
    assert steps is not None
    known["Solarize"] = (aten.linspace(1.0, 0.0, len(steps)), False)
    return known


def _signed(size: float, signed: bool) -> float:
    return -size if signed and chance() <= 0.5 else size


class AutoAugment(_Automatic):
    """One of the 25 pairs of changes that a search found for the data set `policy`, drawn alike."""

    get_params = staticmethod(v1.AutoAugment.get_params)

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Interpolation = "nearest",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self.policy = policy
        self._policies = policies_of(policy)

    def _augmented(self, image: Any) -> Any:
        height, width = F.get_size(image)
        moves = (150.0 / 331.0 * width, 150.0 / 331.0 * height)
        known = _relative(sizes_of(10, 0.3, moves, 30.0, 0.9, 4))
        for name, probability, strength in self._policies[integer(0, len(self._policies))]:
            # The draw is a float32, and so is what it is compared with.
            if not aten.rand(()) <= probability:
                continue
            sizes, signed = known[name]
            size = 0.0 if sizes is None or strength is None else float(sizes[strength])
            image = self._one_change(image, name, _signed(size, signed))
        return image


class RandAugment(_Automatic):
    """`num_ops` changes drawn alike, all of strength `magnitude` of `num_magnitude_bins`."""

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = "nearest",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins

    def _augmented(self, image: Any) -> Any:
        height, width = F.get_size(image)
        moves = (150.0 / 331.0 * width, 150.0 / 331.0 * height)
        known = _relative(sizes_of(self.num_magnitude_bins, 0.3, moves, 30.0, 0.9, 4))
        del known["Invert"]
        for _ in range(self.num_ops):
            name = list(known)[integer(0, len(known))]
            sizes, signed = known[name]
            size = 0.0 if sizes is None else float(sizes[self.magnitude])
            image = self._one_change(image, name, _signed(size, signed))
        return image


class TrivialAugmentWide(_Automatic):
    """One change, of a strength drawn alike."""

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = "nearest",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self.num_magnitude_bins = num_magnitude_bins

    def _augmented(self, image: Any) -> Any:
        known = _relative(sizes_of(self.num_magnitude_bins, 0.99, (32.0, 32.0), 135.0, 0.99, 6))
        del known["Invert"]
        name = list(known)[integer(0, len(known))]
        sizes, signed = known[name]
        size = 0.0 if sizes is None else float(sizes[integer(0, len(sizes))])
        return self._one_change(image, name, _signed(size, signed))


class AugMix(_Automatic):
    """The image mixed with `mixture_width` changed ones, each from a chain of changes.

    severity: the changes' largest strength, from 1 to 10. chain_depth: changes in a chain; 1 to 3
    are drawn where it is not positive. alpha: of the Dirichlet distribution that the shares of the
    chains, and of the image itself, are drawn from. all_ops: with the changes that the paper keeps
    apart because ImageNet-C has them too.
    """

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Interpolation = "bilinear",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        if not 1 <= severity <= 10:
            raise ValueError(f"The severity must be between [1, 10]. Got {severity} instead.")
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops

    def _chained(self, image: Any, known: Sizes) -> Any:
        """The image after a chain of changes."""
        for _ in range(self.chain_depth if self.chain_depth > 0 else integer(1, 4)):
            name = list(known)[integer(0, len(known))]
            sizes, signed = known[name]
            size = 0.0 if sizes is None else float(sizes[integer(0, self.severity)])
            image = self._one_change(image, name, _signed(size, signed))
        return image

    def _augmented(self, image: Any) -> Any:
        height, width = F.get_size(image)
        known = _relative(mixed_sizes(height, width, self.all_ops))
        plain = F.pil_to_tensor(image) if is_picture(image) else image.as_subclass(Tensor)
        # A video is one: all its frames get the same shares.
        whole = 5 if isinstance(image, Video) else 4
        batch = aten.reshape(plain, (1,) * max(whole - plain.ndim, 0) + tuple(plain.shape))
        own, shares = mixing_shares(batch, self.mixture_width, self.alpha)
        mix = own * batch
        for k in range(self.mixture_width):
            mix.add_(shares[k] * self._chained(batch, known))
        mix = aten.reshape(mix, plain.shape).to(plain.dtype)
        return F.to_pil_image(mix) if is_picture(image) else wrap(mix, like=image)
