"""DenseNet (arXiv:1608.06993): every layer sees the outputs of all before it.

Source: https://docs.pytorch.org/vision/0.28/models/densenet.html
"""

from __future__ import annotations

import re
from collections import OrderedDict
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.utils.checkpoint import checkpoint
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import PORTED, builder, built, imagenet


class _DenseLayer(nn.Module):
    def __init__(
        self, inputs: int, growth_rate: int, bn_size: int, drop_rate: float, memory_efficient: bool
    ) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(inputs, bn_size * growth_rate, kernel_size=1, stride=1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(
            bn_size * growth_rate, growth_rate, kernel_size=3, stride=1, padding=1, bias=False
        )
        self.drop_rate = float(drop_rate)
        self.memory_efficient = memory_efficient

    def _bottleneck(self, *inputs: Tensor) -> Tensor:
        return self.conv1(self.relu1(self.norm1(aten.cat(inputs, 1))))

    def forward(self, input: Any) -> Tensor:
        inputs = [input] if isinstance(input, Tensor) else input
        if self.memory_efficient and any(x.requires_grad for x in inputs):
            narrow = checkpoint(self._bottleneck, *inputs, use_reentrant=False)
        else:
            narrow = self._bottleneck(*inputs)
        made = self.conv2(self.relu2(self.norm2(narrow)))
        if self.drop_rate > 0:
            made = F.dropout(made, p=self.drop_rate, training=self.training)
        return made


class _DenseBlock(nn.ModuleDict):
    def __init__(
        self, layers: int, inputs: int, bn_size: int, growth_rate: int, drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        for i in range(layers):
            layer = _DenseLayer(
                inputs + i * growth_rate, growth_rate, bn_size, drop_rate, memory_efficient
            )
            self.add_module(f"denselayer{i + 1}", layer)

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.values():
            features.append(layer(features))
        return aten.cat(features, 1)


class _Transition(nn.Sequential):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=1, stride=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """(N, 3, H, W) → (N, num_classes)."""

    def __init__(
        self, growth_rate: int = 32, block_config: tuple[int, ...] = (6, 12, 24, 16),
        num_init_features: int = 64, bn_size: int = 4, drop_rate: float = 0,
        num_classes: int = 1000, memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        first = nn.Conv2d(3, num_init_features, kernel_size=7, stride=2, padding=3, bias=False)
        self.features = nn.Sequential(
            OrderedDict(
                conv0=first,
                norm0=nn.BatchNorm2d(num_init_features),
                relu0=nn.ReLU(inplace=True),
                pool0=nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
            )
        )
        width = num_init_features
        for i, layers in enumerate(block_config):
            block = _DenseBlock(layers, width, bn_size, growth_rate, drop_rate, memory_efficient)
            self.features.add_module(f"denseblock{i + 1}", block)
            width += layers * growth_rate
            if i != len(block_config) - 1:
                self.features.add_module(f"transition{i + 1}", _Transition(width, width // 2))
                width //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(width))
        self.classifier = nn.Linear(width, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight)
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
            elif isinstance(m, nn.Linear):
                nn.init.constant_(m.bias, 0)

    def forward(self, x: Tensor) -> Tensor:
        features = F.relu(self.features(x), inplace=True)
        return self.classifier(aten.flatten(F.adaptive_avg_pool2d(features, (1, 1)), 1))


_known = partial(imagenet, min_size=29, docs=PORTED)


class DenseNet121_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "densenet121-a639ec97", 224, (74.434, 91.972), 7978856, 2.834, 30.845, "pull/116"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class DenseNet161_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "densenet161-8d451a50", 224, (77.138, 93.56), 28681000, 7.728, 110.369, "pull/116"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class DenseNet169_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "densenet169-b2777c0a", 224, (75.6, 92.806), 14149480, 3.36, 54.708, "pull/116"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class DenseNet201_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "densenet201-c1103571", 224, (76.896, 93.37), 20013928, 4.291, 77.373, "pull/116"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


# The files are from when names had dots: "denselayer1.norm.1.bias" is "denselayer1.norm1.bias".
_OLD = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)")


def _renamed(state: dict[str, Any]) -> dict[str, Any]:
    for name in list(state):
        if _OLD.search(name):
            state[_OLD.sub(r"\1\2", name)] = state.pop(name)
    return state


def _densenet(
    growth_rate: int, block_config: tuple[int, ...], num_init_features: int,
    weights: WeightsEnum | None, progress: bool, **kwargs: Any,
) -> DenseNet:  # fmt: skip
    """A DenseNet of such blocks with the weights."""
    make = partial(DenseNet, growth_rate, block_config, num_init_features)
    return built(make, weights, progress, kwargs, rename=_renamed)


def _builder(
    layers: int, growth: int, blocks: tuple[int, ...], first: int, weights: type[WeightsEnum]
) -> Any:
    def make(**kwargs: Any) -> DenseNet:
        return DenseNet(growth, blocks, first, **kwargs)

    doc = f"DenseNet with {layers} layers."
    return builder(f"densenet{layers}", make, weights, doc, rename=_renamed)


densenet121 = _builder(121, 32, (6, 12, 24, 16), 64, DenseNet121_Weights)
densenet161 = _builder(161, 48, (6, 12, 36, 24), 96, DenseNet161_Weights)
densenet169 = _builder(169, 32, (6, 12, 32, 32), 64, DenseNet169_Weights)
densenet201 = _builder(201, 32, (6, 12, 48, 32), 64, DenseNet201_Weights)

__all__ = [
    "DenseNet", "DenseNet121_Weights", "DenseNet161_Weights", "DenseNet169_Weights",
    "DenseNet201_Weights", "densenet121", "densenet161", "densenet169", "densenet201",
]  # fmt: skip
