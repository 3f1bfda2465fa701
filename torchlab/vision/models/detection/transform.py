"""Images on their way into a detector, and its boxes and masks on their way out.

Source: https://docs.pytorch.org/vision/0.28/models.html#object-detection
"""

from __future__ import annotations

import math
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import float32
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models.detection.image_list import ImageList
from torchlab.vision.models.detection.masks import paste_masks_in_image

Target = dict[str, Tensor]


def _ratios(like: Tensor, original_size: Any, new_size: Any) -> tuple[Tensor, Tensor]:
    """New over original height and width, divided in float32."""
    new, old = (
        aten.tensor(list(s), dtype=float32, device=like.device) for s in (new_size, original_size)
    )
    ratio = new / old
    return ratio[0], ratio[1]


def resize_boxes(boxes: Tensor, original_size: Any, new_size: Any) -> Tensor:
    """Boxes (N, 4) of an image of `original_size` (height, width) in one of `new_size`."""
    h, w = _ratios(boxes, original_size, new_size)
    a, b, c, d = aten.unbind(boxes, 1)
    return aten.stack((a * w, b * h, c * w, d * h), 1)


def resize_keypoints(keypoints: Tensor, original_size: Any, new_size: Any) -> Tensor:
    """Keypoints (…, 3) of (x, y, visible) in an image of another size."""
    h, w = _ratios(keypoints, original_size, new_size)
    x, y, seen = aten.unbind(keypoints, -1)
    return aten.stack((x * w, y * h, seen), -1)


class GeneralizedRCNNTransform(nn.Module):
    """Images (C, H, W) in [0, 1] normalized, resized and padded to one batch; targets with them.

    The smaller side becomes `min_size` (of several one at random in training, the last otherwise)
    unless the larger would exceed `max_size`; or all become `fixed_size` (width, height). The
    batch's sides are multiples of `size_divisible`.
    """

    def __init__(
        self, min_size: Any, max_size: int, image_mean: list[float], image_std: list[float],
        size_divisible: int = 32, fixed_size: tuple[int, int] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.min_size = min_size if isinstance(min_size, (list, tuple)) else (min_size,)
        self.max_size = max_size
        self.image_mean = image_mean
        self.image_std = image_std
        self.size_divisible = size_divisible
        self.fixed_size = fixed_size
        self._skip_resize = kwargs.pop("_skip_resize", False)

    def forward(
        self, images: list[Tensor], targets: list[Target] | None = None
    ) -> tuple[ImageList, list[Target] | None]:
        images = list(images)
        made = None if targets is None else [dict(t) for t in targets]
        for i, image in enumerate(images):
            if image.ndim != 3:
                raise ValueError(
                    "images is expected to be a list of 3d tensors of shape [C, H, W], got"
                    f" {image.shape}"
                )
            image, target = self.resize(self.normalize(image), made[i] if made else None)
            images[i] = image
            if made is not None and target is not None:
                made[i] = target
        sizes = [(int(i.shape[-2]), int(i.shape[-1])) for i in images]
        return ImageList(self.batch_images(images, self.size_divisible), sizes), made

    def normalize(self, image: Tensor) -> Tensor:
        """Less the mean, over the deviation, of each channel. TypeError if not floating."""
        if not image.is_floating_point():
            raise TypeError(
                "Expected input images to be of floating type (in range [0, 1]), but found type"
                f" {image.dtype} instead"
            )
        mean, std = (
            aten.reshape(aten.tensor(v, dtype=image.dtype, device=image.device), (-1, 1, 1))
            for v in (self.image_mean, self.image_std)
        )
        return (image - mean) / std

    def torch_choice(self, k: Any) -> int:
        """One of `k`, drawn from the tensors' generator so that the seed decides."""
        return k[int(aten.empty((1,)).uniform_(0.0, float(len(k))).item())]

    def resize(self, image: Tensor, target: Target | None = None) -> tuple[Tensor, Target | None]:
        """The image and its target at the size for the model. `target` itself is changed."""
        h, w = image.shape[-2:]
        if self.training:
            if self._skip_resize:
                return image, target
            side = float(self.torch_choice(self.min_size))
        else:
            side = float(self.min_size[-1])
        facts: dict[str, Any]
        if self.fixed_size is not None:
            facts = {"size": [self.fixed_size[1], self.fixed_size[0]]}
        else:
            scale = min(side / min(h, w), float(self.max_size) / max(h, w))
            facts = {"scale_factor": scale, "recompute_scale_factor": True}
        image = F.interpolate(image[None], mode="bilinear", align_corners=False, **facts)[0]
        if target is None:
            return image, target
        if "masks" in target:
            masks = aten.unsqueeze(target["masks"], 1).float()
            target["masks"] = F.interpolate(masks, **facts)[:, 0].byte()
        new = tuple(image.shape[-2:])
        target["boxes"] = resize_boxes(target["boxes"], (h, w), new)
        if "keypoints" in target:
            target["keypoints"] = resize_keypoints(target["keypoints"], (h, w), new)
        return image, target

    def batch_images(self, images: list[Tensor], size_divisible: int = 32) -> Tensor:
        """The images in the upper left of one batch of zeros."""
        c, h, w = (max(i.shape[d] for i in images) for d in range(3))
        h, w = (math.ceil(n / size_divisible) * size_divisible for n in (h, w))
        batch = aten.zeros((len(images), c, h, w), dtype=images[0].dtype, device=images[0].device)
        for i, image in enumerate(images):
            batch[i, : image.shape[0], : image.shape[1], : image.shape[2]].copy_(image)
        return batch

    def postprocess(
        self, result: list[Target], image_shapes: Any, original_image_sizes: Any
    ) -> list[Target]:
        """Detections in the coordinates of the images as they were given; not in training."""
        if self.training:
            return result
        for found, size, original in zip(result, image_shapes, original_image_sizes, strict=True):
            found["boxes"] = resize_boxes(found["boxes"], size, original)
            if "masks" in found:
                found["masks"] = paste_masks_in_image(found["masks"], found["boxes"], original)
            if "keypoints" in found:
                found["keypoints"] = resize_keypoints(found["keypoints"], size, original)
        return result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n    Normalize(mean={self.image_mean}, std={self.image_std})"
            f"\n    Resize(min_size={self.min_size}, max_size={self.max_size}, mode='bilinear')\n)"
        )


__all__ = ["GeneralizedRCNNTransform", "resize_boxes", "resize_keypoints"]
