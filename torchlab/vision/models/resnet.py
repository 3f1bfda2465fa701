"""ResNet (arXiv:1512.03385), ResNeXt (arXiv:1611.05431), wide ResNet (arXiv:1605.07146).

The stride of a bottleneck is in its 3×3 convolution ("ResNet V1.5"), as in torchvision.

Source: https://docs.pytorch.org/vision/0.28/models/resnet.html
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._utils import _ovewrite_named_param
from torchlab.vision.models._weights import NEW_RECIPE, builder, built, imagenet

Norm = Callable[..., nn.Module]


def conv3x3(
    in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> nn.Conv2d:
    """A 3×3 convolution that keeps the size at stride 1, without bias."""
    return nn.Conv2d(
        in_planes, out_planes, kernel_size=3, stride=stride, padding=dilation, groups=groups,
        bias=False, dilation=dilation,
    )  # fmt: skip


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A 1×1 convolution without bias."""
    return nn.Conv2d(in_planes, out_planes, kernel_size=1, stride=stride, bias=False)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None,
        groups: int = 1, base_width: int = 64, dilation: int = 1, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm_layer = nn.BatchNorm2d if norm_layer is None else norm_layer
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions beside a shortcut."""

    expansion = 4

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None,
        groups: int = 1, base_width: int = 64, dilation: int = 1, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm_layer = nn.BatchNorm2d if norm_layer is None else norm_layer
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """(N, 3, H, W) → (N, num_classes). `layers` has the number of blocks in each of four stages;
    `replace_stride_with_dilation` says of the last three whether they dilate instead of striding.

    ValueError if that is not None or three booleans.
    """

    def __init__(
        self, block: type[BasicBlock | Bottleneck], layers: list[int], num_classes: int = 1000,
        zero_init_residual: bool = False, groups: int = 1, width_per_group: int = 64,
        replace_stride_with_dilation: list[bool] | None = None, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._norm_layer = nn.BatchNorm2d if norm_layer is None else norm_layer
        self.inplanes = 64
        self.dilation = 1
        dilated = replace_stride_with_dilation or [False] * 3
        if len(dilated) != 3:
            raise ValueError(
                "replace_stride_with_dilation should be None or a 3-element tuple, got"
                f" {replace_stride_with_dilation}"
            )
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilated[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilated[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilated[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
        if zero_init_residual:  # every branch begins as the identity (arXiv:1706.02677)
            for m in self.modules():
                last: Any = m.bn3 if isinstance(m, Bottleneck) else getattr(m, "bn2", None)
                if isinstance(m, (Bottleneck, BasicBlock)) and last.weight is not None:
                    nn.init.constant_(last.weight, 0)

    def _make_layer(
        self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        before = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        width = planes * block.expansion
        if stride != 1 or self.inplanes != width:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, width, stride), self._norm_layer(width)
            )
        facts = (self.groups, self.base_width)
        layers = [
            block(self.inplanes, planes, stride, downsample, *facts, before, self._norm_layer)
        ]
        self.inplanes = width
        for _ in range(1, blocks):
            layers.append(block(width, planes, 1, None, *facts, self.dilation, self._norm_layer))
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(aten.flatten(self.avgpool(x), 1))


class ResNet18_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "resnet18-f37072fd", 224, (69.758, 89.078), 11689512, 1.814, 44.661, "#resnet"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ResNet34_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "resnet34-b627a593", 224, (73.314, 91.42), 21797672, 3.664, 83.275, "#resnet"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ResNet50_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "resnet50-0676ba61", 224, (76.13, 92.862), 25557032, 4.089, 97.781, "#resnet"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "resnet50-11ad3fa6", (224, 232), (80.858, 95.434), 25557032, 4.089, 97.79,
        "issues/3995#issuecomment-1013906621", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class ResNet101_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "resnet101-63fe2227", 224, (77.374, 93.546), 44549160, 7.801, 170.511, "#resnet"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "resnet101-cd907fc2", (224, 232), (81.886, 95.78), 44549160, 7.801, 170.53,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class ResNet152_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "resnet152-394f9c45", 224, (78.312, 94.046), 60192808, 11.514, 230.434, "#resnet"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "resnet152-f82ba261", (224, 232), (82.284, 96.002), 60192808, 11.514, 230.474,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class ResNeXt50_32X4D_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "resnext50_32x4d-7cdf4587", 224, (77.618, 93.698), 25028904, 4.23, 95.789, "#resnext"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "resnext50_32x4d-1a0047aa", (224, 232), (81.198, 95.34), 25028904, 4.23, 95.833,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class ResNeXt101_32X8D_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "resnext101_32x8d-8ba56ff5", 224, (79.312, 94.526), 88791336, 16.414, 339.586, "#resnext"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "resnext101_32x8d-110c445d", (224, 232), (82.834, 96.228), 88791336, 16.414, 339.673,
        "issues/3995#new-recipe-with-fixres", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class ResNeXt101_64X4D_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "resnext101_64x4d-173b62eb", (224, 232), (83.246, 96.454), 83455272, 15.46, 319.318,
        "pull/5935", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class Wide_ResNet50_2_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "wide_resnet50_2-95faca4d", 224, (78.468, 94.086), 68883240, 11.398, 131.82,
        "pull/912#issue-445437439",
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "wide_resnet50_2-9ba9bcbe", (224, 232), (81.602, 95.758), 68883240, 11.398, 263.124,
        "issues/3995#new-recipe-with-fixres", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class Wide_ResNet101_2_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "wide_resnet101_2-32ee1156", 224, (78.848, 94.284), 126886696, 22.753, 242.896,
        "pull/912#issue-445437439",
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "wide_resnet101_2-d733dc28", (224, 232), (82.51, 96.02), 126886696, 22.753, 484.747,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


def _resnet(
    block: type[BasicBlock | Bottleneck], layers: list[int], weights: WeightsEnum | None,
    progress: bool, **kwargs: Any,
) -> ResNet:  # fmt: skip
    """A ResNet of such blocks with the weights."""
    return built(partial(ResNet, block, layers), weights, progress, kwargs)


def _builder(
    name: str, block: Any, layers: list[int], weights: type[WeightsEnum], doc: str, **facts: int
) -> Any:
    def make(**kwargs: Any) -> ResNet:
        for fact, value in facts.items():
            _ovewrite_named_param(kwargs, fact, value)
        return ResNet(block, layers, **kwargs)

    return builder(name, make, weights, doc)


_B, _50, _101 = Bottleneck, [3, 4, 6, 3], [3, 4, 23, 3]
resnet18 = _builder("resnet18", BasicBlock, [2, 2, 2, 2], ResNet18_Weights, "ResNet-18.")
resnet34 = _builder("resnet34", BasicBlock, _50, ResNet34_Weights, "ResNet-34.")
resnet50 = _builder("resnet50", _B, _50, ResNet50_Weights, "ResNet-50.")
resnet101 = _builder("resnet101", _B, _101, ResNet101_Weights, "ResNet-101.")
resnet152 = _builder("resnet152", _B, [3, 8, 36, 3], ResNet152_Weights, "ResNet-152.")
resnext50_32x4d = _builder(
    "resnext50_32x4d", _B, _50, ResNeXt50_32X4D_Weights, "ResNeXt-50 32x4d.",
    groups=32, width_per_group=4,
)  # fmt: skip
resnext101_32x8d = _builder(
    "resnext101_32x8d", _B, _101, ResNeXt101_32X8D_Weights, "ResNeXt-101 32x8d.",
    groups=32, width_per_group=8,
)  # fmt: skip
resnext101_64x4d = _builder(
    "resnext101_64x4d", _B, _101, ResNeXt101_64X4D_Weights, "ResNeXt-101 64x4d.",
    groups=64, width_per_group=4,
)  # fmt: skip
wide_resnet50_2 = _builder(
    "wide_resnet50_2", _B, _50, Wide_ResNet50_2_Weights, "Wide ResNet-50-2.", width_per_group=128
)
wide_resnet101_2 = _builder(
    "wide_resnet101_2", _B, _101, Wide_ResNet101_2_Weights, "Wide ResNet-101-2.",
    width_per_group=128,
)  # fmt: skip

__all__ = [
    "ResNeXt101_32X8D_Weights", "ResNeXt101_64X4D_Weights", "ResNeXt50_32X4D_Weights", "ResNet",
    "ResNet101_Weights", "ResNet152_Weights", "ResNet18_Weights", "ResNet34_Weights",
    "ResNet50_Weights", "Wide_ResNet101_2_Weights", "Wide_ResNet50_2_Weights", "resnet101",
    "resnet152", "resnet18", "resnet34", "resnet50", "resnext101_32x8d", "resnext101_64x4d",
    "resnext50_32x4d", "wide_resnet101_2", "wide_resnet50_2",
]  # fmt: skip
