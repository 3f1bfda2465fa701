"""ResNet (arXiv:1512.03385), ResNeXt (arXiv:1611.05431), wide ResNet (arXiv:1605.07146).

The stride of a bottleneck is in its 3×3 convolution ("ResNet V1.5"), as in torchvision.

Source: https://docs.pytorch.org/vision/0.28/models/resnet.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import no_weights, register_model

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


def _builder(name: str, block: Any, layers: list[int], doc: str, **facts: int) -> Any:
    def build(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> ResNet:
        no_weights(weights, name)
        return ResNet(block, layers, **{**facts, **kwargs})

    build.__name__ = build.__qualname__ = name
    build.__doc__ = doc
    return register_model()(build)


_B, _50, _101 = Bottleneck, [3, 4, 6, 3], [3, 4, 23, 3]
resnet18 = _builder("resnet18", BasicBlock, [2, 2, 2, 2], "ResNet-18.")
resnet34 = _builder("resnet34", BasicBlock, _50, "ResNet-34.")
resnet50 = _builder("resnet50", _B, _50, "ResNet-50.")
resnet101 = _builder("resnet101", _B, _101, "ResNet-101.")
resnet152 = _builder("resnet152", _B, [3, 8, 36, 3], "ResNet-152.")
resnext50_32x4d = _builder(
    "resnext50_32x4d", _B, _50, "ResNeXt-50 32x4d.", groups=32, width_per_group=4
)
resnext101_32x8d = _builder(
    "resnext101_32x8d", _B, _101, "ResNeXt-101 32x8d.", groups=32, width_per_group=8
)
resnext101_64x4d = _builder(
    "resnext101_64x4d", _B, _101, "ResNeXt-101 64x4d.", groups=64, width_per_group=4
)
wide_resnet50_2 = _builder("wide_resnet50_2", _B, _50, "Wide ResNet-50-2.", width_per_group=128)
wide_resnet101_2 = _builder("wide_resnet101_2", _B, _101, "Wide ResNet-101-2.", width_per_group=128)

__all__ = [
    "ResNet", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d",
    "resnext101_32x8d", "resnext101_64x4d", "wide_resnet50_2", "wide_resnet101_2",
]  # fmt: skip
