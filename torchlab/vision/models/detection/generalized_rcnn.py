"""A detector in two stages: backbone, proposals, heads (arXiv:1506.01497).

Source: https://docs.pytorch.org/vision/0.28/models/faster_rcnn.html
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torchlab import nn
from torchlab._core.tensor import Tensor

Target = dict[str, Tensor]


def _check_boxes(boxes: Any) -> None:
    if not isinstance(boxes, Tensor):
        raise AssertionError(f"Expected target boxes to be of type Tensor, got {type(boxes)}.")
    if boxes.ndim != 2 or boxes.shape[-1] != 4:
        raise AssertionError(
            f"Expected target boxes to be a tensor of shape [N, 4], got {list(boxes.shape)}."
        )


def _check_positive(targets: list[Target]) -> None:
    for i, target in enumerate(targets):
        boxes = target["boxes"]
        bad: Any = (boxes[:, 2:] <= boxes[:, :2]).any(1)
        if bad.any():
            first = boxes[bad][0].tolist()
            raise AssertionError(
                "All bounding boxes should have positive height and width. Found invalid box"
                f" {first} for target at index {i}."
            )


class GeneralizedRCNN(nn.Module):
    """Images, a list of (C, H, W), → in training a dict of losses, else of each image a dict of
    "boxes" (N, 4), "labels" (N,), "scores" (N,) and what else the heads give.

    AssertionError in training without targets or with boxes that are none.
    """

    def __init__(
        self, backbone: nn.Module, rpn: nn.Module, roi_heads: nn.Module, transform: nn.Module
    ) -> None:
        super().__init__()
        self.transform = transform
        self.backbone = backbone
        self.rpn = rpn
        self.roi_heads = roi_heads

    def forward(self, images: list[Tensor], targets: list[Target] | None = None) -> Any:
        if self.training:
            if targets is None:
                raise AssertionError("targets should not be none when in training mode")
            for target in targets:
                _check_boxes(target["boxes"])
        sizes = []
        for image in images:
            size = tuple(image.shape[-2:])
            if len(size) != 2:
                raise AssertionError(
                    "expecting the last two dimensions of the Tensor to be H and W instead got"
                    f" {image.shape[-2:]}"
                )
            sizes.append(size)
        transform: Any = self.transform
        batch, targets = transform(images, targets)
        if targets is not None:
            _check_positive(targets)
        features = self.backbone(batch.tensors)
        if isinstance(features, Tensor):
            features = OrderedDict([("0", features)])
        proposals, losses = self.rpn(batch, features, targets)
        found, more = self.roi_heads(features, proposals, batch.image_sizes, targets)
        found = transform.postprocess(found, batch.image_sizes, sizes)
        return {**more, **losses} if self.training else found


__all__ = ["GeneralizedRCNN"]
