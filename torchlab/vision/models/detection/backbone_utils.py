"""Backbones of detectors: a classifier's stages, with or without a pyramid on them.

Source: https://docs.pytorch.org/vision/0.28/models.html#object-detection
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torchlab import nn
from torchlab._core.tensor import Tensor
from torchlab.vision.models import mobilenet, resnet
from torchlab.vision.models._api import WeightsEnum, _get_enum_from_fn
from torchlab.vision.models._utils import IntermediateLayerGetter, handle_legacy_interface
from torchlab.vision.ops.feature_pyramid_network import (
    ExtraFPNBlock,
    FeaturePyramidNetwork,
    LastLevelMaxPool,
)
from torchlab.vision.ops.misc import FrozenBatchNorm2d

Norm = Callable[..., nn.Module]


class BackboneWithFPN(nn.Module):
    """Images (N, 3, H, W) → {name: map}: the children of `backbone` that `return_layers` maps to
    names, through a pyramid of `out_channels`, and what `extra_blocks` adds (a pooled level)."""

    def __init__(
        self, backbone: nn.Module, return_layers: dict[str, str], in_channels_list: list[int],
        out_channels: int, extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, return_layers)
        self.fpn = FeaturePyramidNetwork(
            in_channels_list, out_channels, extra_blocks or LastLevelMaxPool(), norm_layer
        )
        self.out_channels = out_channels

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return self.fpn(self.body(x))


def _legacy(module: Any) -> Any:
    """What `pretrained=True` means for the model of `module` that the arguments name."""
    return lambda kwargs: _get_enum_from_fn(vars(module)[kwargs["backbone_name"]])["IMAGENET1K_V1"]


@handle_legacy_interface(weights=("pretrained", _legacy(resnet)))
def resnet_fpn_backbone(
    *, backbone_name: str, weights: WeightsEnum | None, norm_layer: Norm = FrozenBatchNorm2d,
    trainable_layers: int = 3, returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
) -> BackboneWithFPN:  # fmt: skip
    """A pyramid on the stages 1 to 4 of a ResNet, or on `returned_layers`; all but the last
    `trainable_layers` of its five parts frozen."""
    body = vars(resnet)[backbone_name](weights=weights, norm_layer=norm_layer)
    return _resnet_fpn_extractor(body, trainable_layers, returned_layers, extra_blocks)


def _resnet_fpn_extractor(
    backbone: resnet.ResNet, trainable_layers: int, returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None, norm_layer: Norm | None = None,
) -> BackboneWithFPN:  # fmt: skip
    if not 0 <= trainable_layers <= 5:
        raise ValueError(f"Trainable layers should be in the range [0,5], got {trainable_layers}")
    trained = ["layer4", "layer3", "layer2", "layer1", "conv1"][:trainable_layers]
    if trainable_layers == 5:
        trained.append("bn1")
    for name, parameter in backbone.named_parameters():
        if not name.startswith(tuple(trained)):
            parameter.requires_grad_(False)
    stages = [1, 2, 3, 4] if returned_layers is None else returned_layers
    if not 0 < min(stages) <= max(stages) < 5:
        raise ValueError(f"Each returned layer should be in the range [1,4]. Got {stages}")
    channels = [backbone.inplanes // 8 * 2 ** (s - 1) for s in stages]
    named = {f"layer{s}": str(i) for i, s in enumerate(stages)}
    return BackboneWithFPN(backbone, named, channels, 256, extra_blocks, norm_layer)


def _validate_trainable_layers(
    is_trained: bool, trainable_backbone_layers: int | None, max_value: int, default_value: int
) -> int:
    """How many parts are trained: all of a backbone that starts at random."""
    n = trainable_backbone_layers
    if not is_trained:
        if n is not None:
            warnings.warn(
                "Changing trainable_backbone_layers has no effect if neither pretrained nor"
                " pretrained_backbone have been set to True, falling back to"
                f" trainable_backbone_layers={max_value} so that all layers are trainable",
                stacklevel=3,
            )
        n = max_value
    n = default_value if n is None else n
    if not 0 <= n <= max_value:
        raise ValueError(
            f"Trainable backbone layers should be in the range [0,{max_value}], got {n}"
        )
    return n


@handle_legacy_interface(weights=("pretrained", _legacy(mobilenet)))
def mobilenet_backbone(
    *, backbone_name: str, weights: WeightsEnum | None, fpn: bool,
    norm_layer: Norm = FrozenBatchNorm2d, trainable_layers: int = 2,
    returned_layers: list[int] | None = None, extra_blocks: ExtraFPNBlock | None = None,
) -> nn.Module:  # fmt: skip
    """The features of a MobileNet: with `fpn` a pyramid on its last two stages, or on
    `returned_layers`; else one map. All but the last `trainable_layers` stages frozen."""
    body = vars(mobilenet)[backbone_name](weights=weights, norm_layer=norm_layer)
    return _mobilenet_extractor(body, fpn, trainable_layers, returned_layers, extra_blocks)


def _mobilenet_extractor(
    backbone: Any, fpn: bool, trainable_layers: int, returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None, norm_layer: Norm | None = None,
) -> nn.Module:  # fmt: skip
    body = backbone.features
    # a stage begins where a block strides; the first and last layers count too
    starts = [i for i, b in enumerate(body) if getattr(b, "_is_cn", False)]
    starts = [0, *starts, len(body) - 1]
    n = len(starts)
    if not 0 <= trainable_layers <= n:
        raise ValueError(f"Trainable layers should be in the range [0,{n}], got {trainable_layers}")
    frozen = len(body) if trainable_layers == 0 else starts[n - trainable_layers]
    for block in body[:frozen]:
        for parameter in block.parameters():
            parameter.requires_grad_(False)
    width = 256
    if not fpn:
        plain: Any = nn.Sequential(body, nn.Conv2d(body[-1].out_channels, width, 1))
        plain.out_channels = width
        return plain
    stages = [n - 2, n - 1] if returned_layers is None else returned_layers
    if not 0 <= min(stages) <= max(stages) < n:
        raise ValueError(f"Each returned layer should be in the range [0,{n - 1}], got {stages}")
    named = {str(starts[s]): str(i) for i, s in enumerate(stages)}
    channels = [body[starts[s]].out_channels for s in stages]
    return BackboneWithFPN(body, named, channels, width, extra_blocks, norm_layer)


__all__ = ["BackboneWithFPN", "mobilenet_backbone", "resnet_fpn_backbone"]
