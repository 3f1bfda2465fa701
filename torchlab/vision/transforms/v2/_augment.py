"""Transforms that take information away: erased parts, lossy compression, mixed samples.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#auto-augmentation
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.pytree import tree_flatten, tree_unflatten
from torchlab._core.tensor import Tensor
from torchlab.distributions import Beta
from torchlab.nn.functional import one_hot
from torchlab.vision.transforms import _values as v1
from torchlab.vision.transforms._containers import integer
from torchlab.vision.transforms._image import is_picture
from torchlab.vision.transforms._warps import check_sequence
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2._crops import warn_of_passing
from torchlab.vision.transforms.v2._samples import (
    has_any,
    labels_getter_of,
    query_chw,
    query_size,
)
from torchlab.vision.transforms.v2._transform import RandomApplyTransform, Transform
from torchlab.vision.transforms.v2.functional import is_pure_tensor
from torchlab.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video, wrap


class RandomErasing(RandomApplyTransform):
    """A rectangle of the image replaced, with probability `p`.

    scale: the rectangle's part of the image's area, from and to. ratio: its sides, from and to.
    value: a number, one for each channel, or "random" for normal noise.
    """

    get_params = staticmethod(v1.RandomErasing.get_params)

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | str | Sequence[float] = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p=p)
        if not isinstance(value, (numbers.Number, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        if not isinstance(scale, Sequence):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, Sequence):
            raise TypeError("Ratio should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        self.scale = scale
        self.ratio = ratio
        self.value: list[float] | None = None
        if isinstance(value, (tuple, list)):
            self.value = [float(v) for v in value]
        elif not isinstance(value, str):
            self.value = [float(value)]  # type: ignore[arg-type]
        self.inplace = inplace

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        warn_of_passing(self, inpt)
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size = query_chw(flat_inputs)
        if self.value is not None and len(self.value) not in (1, size[0]):
            raise ValueError(
                "If value is a sequence, it should have either a single value or"
                f" {size[0]} (number of input channels)"
            )
        drawn: tuple[Any, ...] | None
        drawn = v1.drawn_rectangle(size, self.scale, self.ratio, self.value)
        return dict(zip("ijhwv", drawn or (0, 0, size[1], size[2], None), strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if params["v"] is None:
            return inpt
        return self._call_kernel(F.erase, inpt, **params, inplace=self.inplace)


class JPEG(Transform):
    """`functional.jpeg`: what is left after compression of a quality from 1 to 100, which is drawn
    if `quality` is a pair (from, to)."""

    def __init__(self, quality: int | Sequence[int]) -> None:
        super().__init__()
        if isinstance(quality, int):
            quality = [quality, quality]
        else:
            check_sequence(quality, "quality", (2,))
        if not (1 <= quality[0] <= quality[1] <= 100 and all(isinstance(q, int) for q in quality)):
            raise ValueError(f"quality must be an integer from 1 to 100, got quality ={quality}")
        self.quality = quality

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"quality": integer(self.quality[0], self.quality[1] + 1)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.jpeg, inpt, quality=params["quality"])


class _Mixed(Transform):
    """Batches of images, each mixed with the one before, and their labels likewise.

    labels: (N) classes, which become (N, num_classes), or (N, num_classes) probabilities.
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        num_classes: int | None = None,
        labels_getter: Callable[[Any], Any] | str | None = "default",
    ) -> None:
        super().__init__()
        self.alpha = float(alpha)
        self._share = Beta(self.alpha, self.alpha)
        self.num_classes = num_classes
        self._labels_getter = labels_getter_of(labels_getter)

    def forward(self, *inputs: Any) -> Any:
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, form = tree_flatten(sample)
        name = type(self).__name__
        if has_any(flat, is_picture, BoundingBoxes, Mask, KeyPoints):
            raise ValueError(
                f"{name}() does not support PIL images, bounding boxes, keypoints and masks."
            )
        labels = self._labels_getter(sample)
        self._check_labels(labels)
        chosen = self._chosen(flat)
        place = next((i for i, inpt in enumerate(flat) if inpt is labels), None)
        if place is None:
            raise ValueError(f"{name}(): the labels that labels_getter found are not in the sample")
        chosen[place] = True
        taken = [
            inpt for inpt, takes in zip(flat, chosen, strict=True) if takes and inpt is not labels
        ]
        params = {"labels": labels, "batch_size": labels.shape[0], **self.make_params(taken)}
        changed = [
            self.transform(inpt, params) if takes else inpt
            for inpt, takes in zip(flat, chosen, strict=True)
        ]
        return tree_unflatten(changed, form)

    def _check_labels(self, labels: Any) -> None:
        if not isinstance(labels, Tensor):
            raise ValueError(f"The labels must be a tensor, but got {type(labels)} instead.")
        if labels.ndim not in (1, 2):
            raise ValueError(
                "labels should be index based with shape (batch_size,) or probability based with"
                f" shape (batch_size, num_classes), but got a tensor of shape {labels.shape}."
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("num_classes must be passed if the labels are index-based (1D)")
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[-1]):
            raise ValueError(
                "When passing 2D labels, the number of elements in last dimension must match"
                f" num_classes: {labels.shape[-1]} != {self.num_classes}. You can leave num_classes"
                " at None."
            )

    def _check_batch(self, inpt: Tensor, batch_size: int) -> None:
        wanted = 5 if isinstance(inpt, Video) else 4
        if inpt.ndim != wanted:
            raise ValueError(
                f"Expected a batched input with {wanted} dims, but got {inpt.ndim} dimensions"
                " instead."
            )
        if inpt.shape[0] != batch_size:
            raise ValueError(
                "The batch size of the image or video does not match the batch size of the labels:"
                f" {inpt.shape[0]} != {batch_size}."
            )

    def _mixed_labels(self, labels: Tensor, share: float) -> Tensor:
        """`share` of each label and the rest of the one before it."""
        if labels.ndim == 1:
            labels = one_hot(labels, num_classes=self.num_classes)
        if not labels.dtype.is_floating_point:
            labels = labels.float()
        return labels.roll(1, 0).mul_(1.0 - share).add_(labels.mul(share))

    def _mixed_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError

    def _label_share(self, params: dict[str, Any]) -> float:
        raise NotImplementedError

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if inpt is params["labels"]:
            return self._mixed_labels(inpt, self._label_share(params))
        if not (isinstance(inpt, (Image, Video)) or is_pure_tensor(inpt)):
            return inpt
        self._check_batch(inpt, params["batch_size"])
        return wrap(self._mixed_images(inpt.as_subclass(Tensor), params), like=inpt)


class MixUp(_Mixed):
    """Images and labels of a batch as weighted sums: mixup (Zhang et al. 2017, arXiv:1710.09412),
    the weights drawn from Beta(alpha, alpha).

    labels: (N) classes, which become (N, num_classes), or (N, num_classes) probabilities.
    labels_getter: "default" finds them as the second argument or under a key like "labels" of a
    dictionary; or a function of the sample.
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"lam": float(self._share.sample())}

    def _label_share(self, params: dict[str, Any]) -> float:
        return float(params["lam"])

    def _mixed_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        lam = params["lam"]
        return images.roll(1, 0).mul_(1.0 - lam).add_(images.mul(lam))


class CutMix(_Mixed):
    """A rectangle of each image of a batch taken from the image before, the labels weighted by the
    areas: CutMix (Yun et al. 2019, arXiv:1905.04899), the area drawn from Beta(alpha, alpha).

    labels, labels_getter: as in `MixUp`.
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        lam = float(self._share.sample())
        height, width = query_size(flat_inputs)
        x, y = integer(0, width), integer(0, height)
        half = 0.5 * math.sqrt(1.0 - lam)
        w, h = int(half * width), int(half * height)
        left, right = max(x - w, 0), min(x + w, width)
        top, bottom = max(y - h, 0), min(y + h, height)
        area = (right - left) * (bottom - top)
        return {
            "box": (left, top, right, bottom),
            "lam_adjusted": float(1.0 - area / (width * height)),
        }

    def _label_share(self, params: dict[str, Any]) -> float:
        return float(params["lam_adjusted"])

    def _mixed_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        left, top, right, bottom = params["box"]
        output = aten.clone(images)
        output[..., top:bottom, left:right] = images.roll(1, 0)[..., top:bottom, left:right]
        return output
