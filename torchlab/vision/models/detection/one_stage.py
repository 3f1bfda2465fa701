"""Detectors in one stage: a head says of every anchor what it is and where.

Source: https://docs.pytorch.org/vision/0.28/models.html#object-detection
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models.detection.anchor_utils import AnchorGenerator
from torchlab.vision.models.detection.generalized_rcnn import _check_positive
from torchlab.vision.models.detection.image_list import ImageList
from torchlab.vision.ops import boxes as box_ops

Target = dict[str, Tensor]


def _check_targets(targets: list[Target] | None) -> None:
    if targets is None:
        raise AssertionError("targets should not be none when in training mode")
    for target in targets:
        boxes: Any = target["boxes"]
        if not isinstance(boxes, Tensor):
            raise AssertionError("Expected target boxes to be of type Tensor.")
        if boxes.ndim != 2 or boxes.shape[-1] != 4:
            raise AssertionError("Expected target boxes to be a tensor of shape [N, 4].")


def check_pyramid(backbone: Any, anchor_generator: Any, but: str) -> None:
    """ValueError or TypeError for parts that a detector on a pyramid cannot use."""
    if not hasattr(backbone, "out_channels"):
        raise ValueError(
            "backbone should contain an attribute out_channels specifying the number of output"
            " channels (assumed to be the same for all the levels)"
        )
    if not isinstance(anchor_generator, (AnchorGenerator, type(None))):
        raise TypeError(
            f"anchor_generator should be of type AnchorGenerator or None{but}"
            f" {type(anchor_generator)}"
        )


class OneStageDetector(nn.Module):
    """Images, a list of (C, H, W), → in training a dict of losses, else of each image a dict of
    "boxes" (N, 4), "scores" (N,) and "labels" (N,).

    AssertionError in training without targets or with boxes that are none.
    """

    backbone: Any
    head: Any
    anchor_generator: Any
    transform: Any

    def _losses(
        self, targets: list[Target], outputs: Any, anchors: list[Tensor], maps: list[Tensor]
    ) -> dict[str, Tensor]:
        raise NotImplementedError(f"{type(self).__name__} has no losses")

    def _detect(
        self, outputs: Any, anchors: list[Tensor], batch: ImageList, maps: list[Tensor]
    ) -> list[Target]:
        raise NotImplementedError(f"{type(self).__name__} detects nothing")

    def forward(self, images: list[Tensor], targets: list[Target] | None = None) -> Any:
        if self.training:
            _check_targets(targets)
        sizes = []
        for image in images:
            size = tuple(image.shape[-2:])
            if len(size) != 2:
                raise AssertionError(
                    "expecting the last two dimensions of the Tensor to be H and W instead got"
                    f" {image.shape[-2:]}"
                )
            sizes.append(size)
        batch, targets = self.transform(images, targets)
        if targets is not None:
            _check_positive(targets)
        features = self.backbone(batch.tensors)
        if isinstance(features, Tensor):
            features = OrderedDict([("0", features)])
        maps = list(features.values())
        outputs = self.head(maps)
        anchors = self.anchor_generator(batch, maps)
        if self.training:
            return self._losses(targets or [], outputs, anchors, maps)
        found = self._detect(outputs, anchors, batch, maps)
        return self.transform.postprocess(found, batch.image_sizes, sizes)


def flattened(layer: Tensor, columns: int) -> Tensor:
    """(N, A · columns, H, W) → (N, H · W · A, columns), the order of the anchors."""
    n, _, h, w = layer.shape
    split = aten.reshape(layer, (n, -1, columns, h, w))
    return aten.reshape(aten.permute(split, (0, 3, 4, 1, 2)), (n, -1, columns))


def per_level(
    outputs: dict[str, Tensor], anchors: list[Tensor], maps: list[Tensor]
) -> tuple[dict[str, list[Tensor]], list[list[Tensor]]]:
    """Of each output, its parts (N, anchors, …) of each map; of each image, the maps' anchors."""
    pixels = [m.shape[2] * m.shape[3] for m in maps]
    each = outputs["cls_logits"].shape[1] // sum(pixels)
    counts = [n * each for n in pixels]
    parts = {k: list(aten.split(v, counts, 1)) for k, v in outputs.items()}
    return parts, [list(aten.split(a, counts)) for a in anchors]


def best_of_levels(
    scores: list[Tensor], decode: Callable[[int, Tensor], Tensor], size: tuple[int, int],
    score_thresh: float, topk: int, nms_thresh: float, most: int,
) -> Target:  # fmt: skip
    """The detections in one image from the scores (anchors, classes) of each map: of a map the
    `topk` above `score_thresh`, less those that overlap a better one of their class by more than
    `nms_thresh`; at most `most`. `decode(map, numbers)` gives anchors' boxes."""
    found: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    for level, score in enumerate(scores):
        classes = score.shape[-1]
        score = aten.flatten(score)
        at = aten.where(score > score_thresh)[0]
        score, order = aten.topk(score[at], min(topk, at.shape[0]))
        at = at[order]
        boxes = decode(level, aten.div(at, classes, rounding_mode="floor"))
        boxes = box_ops.clip_boxes_to_image(boxes, size)
        for out, values in zip(found, (boxes, score, at % classes), strict=True):
            out.append(values)
    boxes, score, label = (aten.cat(part, 0) for part in found)
    keep = box_ops.batched_nms(boxes, score, label, nms_thresh)[:most]
    return {"boxes": boxes[keep], "scores": score[keep], "labels": label[keep]}


class PyramidDetector(OneStageDetector):
    """One that scores the anchors of every map of a pyramid.

    score_thresh, topk_candidates, nms_thresh, detections_per_img: see `best_of_levels`.
    """

    score_thresh: float
    topk_candidates: int
    nms_thresh: float
    detections_per_img: int

    def _scores(self, outputs: dict[str, list[Tensor]], i: int) -> list[Tensor]:
        """Of image `i` the scores (anchors, classes) of each map."""
        raise NotImplementedError(f"{type(self).__name__} has no scores")

    def _boxes(self, codes: Tensor, anchors: Tensor) -> Tensor:
        """The boxes (N, 4) that a head's codes say, from their anchors."""
        raise NotImplementedError(f"{type(self).__name__} has no boxes")

    def postprocess_detections(
        self, head_outputs: dict[str, list[Tensor]], anchors: list[list[Tensor]],
        image_shapes: list[tuple[int, int]],
    ) -> list[Target]:  # fmt: skip
        """Each image's detections from the outputs of each map."""
        found = []
        for i, size in enumerate(image_shapes):

            def decode(level: int, at: Tensor, i: int = i) -> Tensor:
                codes = head_outputs["bbox_regression"][level][i]
                return self._boxes(codes[at], anchors[i][level][at])

            found.append(
                best_of_levels(
                    self._scores(head_outputs, i), decode, size, self.score_thresh,
                    self.topk_candidates, self.nms_thresh, self.detections_per_img,
                )
            )  # fmt: skip
        return found

    def _detect(
        self, outputs: Any, anchors: list[Tensor], batch: ImageList, maps: list[Tensor]
    ) -> list[Target]:
        return self.postprocess_detections(*per_level(outputs, anchors, maps), batch.image_sizes)


__all__ = ["OneStageDetector", "PyramidDetector"]
