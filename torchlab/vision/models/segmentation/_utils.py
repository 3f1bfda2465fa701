"""What the models have in common: a backbone, a head, and the way back to the image's size.

Source: https://docs.pytorch.org/vision/0.28/models.html#semantic-segmentation
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchlab import nn
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import (
    IntermediateLayerGetter,
    _ovewrite_value_param,
    handle_legacy_interface,
)
from torchlab.vision.models._weights import loaded
from torchlab.vision.models.mobilenetv3 import MobileNetV3
from torchlab.vision.models.resnet import ResNet


def resized(x: Tensor, size: Any) -> Tensor:
    """Maps (N, C, h, w) at another height and width, bilinear."""
    return F.interpolate(x, size=size, mode="bilinear", align_corners=False)


class _SimpleSegmentationModel(nn.Module):
    """(N, 3, H, W) → {"out": logits (N, classes, H, W)}, with `aux_classifier` also "aux".

    `backbone` gives {"out": map, "aux": map}.
    """

    __constants__ = ["aux_classifier"]

    def __init__(
        self, backbone: nn.Module, classifier: nn.Module, aux_classifier: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = classifier
        self.aux_classifier = aux_classifier

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        maps = self.backbone(x)
        heads = {"out": self.classifier, "aux": self.aux_classifier}
        size = x.shape[-2:]
        return OrderedDict(
            (name, resized(head(maps[name]), size))
            for name, head in heads.items()
            if head is not None
        )


def resnet_stages(backbone: ResNet, aux: bool | None) -> IntermediateLayerGetter:
    """The last stage as "out", with `aux` the one before as "aux"."""
    stages = {"layer4": "out"}
    if aux:
        stages["layer3"] = "aux"
    return IntermediateLayerGetter(backbone, stages)


def mobilenet_stages(backbone: MobileNetV3) -> tuple[Any, list[int]]:
    """The features, and the places in them where a stage ends: the first layer, the blocks that
    stride, the last layer."""
    features: Any = backbone.features
    strided = [i for i, block in enumerate(features) if getattr(block, "_is_cn", False)]
    return features, [0, *strided, len(features) - 1]


DILATED = {"replace_stride_with_dilation": [False, True, True]}
"""Of a ResNet: an eighth of the size, not a thirty-second."""


def builder(
    name: str, make: Callable[..., nn.Module], weights: type[WeightsEnum], body: Any,
    weights_body: type[WeightsEnum], doc: str, **facts: Any,
) -> Any:  # fmt: skip
    """Make and register a function that builds `make(body(**facts), classes, aux)`."""
    enum = weights

    def build(
        *, weights: Any = None, progress: bool = True, num_classes: int | None = None,
        aux_loss: bool | None = None, weights_backbone: Any = weights_body.IMAGENET1K_V1,  # type: ignore[attr-defined]  # every classifier has it
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        chosen = enum.verify(weights)
        weights_backbone = weights_body.verify(weights_backbone)
        if chosen is not None:
            weights_backbone = None
            classes = len(chosen.meta["categories"])
            num_classes = _ovewrite_value_param("num_classes", num_classes, classes)
            aux_loss = _ovewrite_value_param("aux_loss", aux_loss, True)
        backbone = body(weights=weights_backbone, progress=progress, **facts)
        model = make(backbone, 21 if num_classes is None else num_classes, aux_loss)
        return loaded(model, chosen, progress)

    build.__name__ = build.__qualname__ = name
    build.__module__ = enum.__module__
    build.__doc__ = doc
    build.__annotations__ |= {"weights": enum | None, "weights_backbone": weights_body | None}
    old = handle_legacy_interface(
        weights=("pretrained", next(iter(enum))),
        weights_backbone=("pretrained_backbone", weights_body.IMAGENET1K_V1),  # type: ignore[attr-defined]
    )
    return register_model()(old(build))


__all__: list[str] = []
