"""ResNets of three dimensions, and of two with one beside them (arXiv:1711.11248).

Source: https://docs.pytorch.org/vision/0.28/models/video_resnet.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import builder, known
from torchlab.vision.transforms._presets import VideoClassification

Size = tuple[int, int, int]


class Conv3DSimple(nn.Conv3d):
    """3×3×3 filters."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: int | None = None, stride: int = 1,
        padding: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(in_planes, out_planes, (3, 3, 3), stride, padding, bias=False)

    @staticmethod
    def get_downsample_stride(stride: int) -> Size:
        """The strides of the shortcut."""
        return stride, stride, stride


class Conv2Plus1D(nn.Sequential):
    """1×3×3 filters, then 3×1×1 ones."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: int, stride: int = 1, padding: int = 1
    ) -> None:
        s, p = stride, padding
        super().__init__(
            nn.Conv3d(in_planes, midplanes, (1, 3, 3), (1, s, s), (0, p, p), bias=False),
            nn.BatchNorm3d(midplanes),
            nn.ReLU(inplace=True),
            nn.Conv3d(midplanes, out_planes, (3, 1, 1), (s, 1, 1), (p, 0, 0), bias=False),
        )

    @staticmethod
    def get_downsample_stride(stride: int) -> Size:
        """The strides of the shortcut."""
        return stride, stride, stride


class Conv3DNoTemporal(nn.Conv3d):
    """1×3×3 filters."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: int | None = None, stride: int = 1,
        padding: int = 1,
    ) -> None:  # fmt: skip
        s, p = stride, padding
        super().__init__(in_planes, out_planes, (1, 3, 3), (1, s, s), (0, p, p), bias=False)

    @staticmethod
    def get_downsample_stride(stride: int) -> Size:
        """The strides of the shortcut."""
        return 1, stride, stride


def _between(inplanes: int, planes: int) -> int:
    """So many planes that two filters have as many weights as one of 3×3×3."""
    return inplanes * planes * 27 // (inplanes * 9 + 3 * planes)


def _normalized(conv: nn.Module, planes: int, rectified: bool) -> nn.Sequential:
    layers = [conv, nn.BatchNorm3d(planes)]
    return nn.Sequential(*layers, nn.ReLU(inplace=True)) if rectified else nn.Sequential(*layers)


class _Block(nn.Module):
    downsample: nn.Module | None

    def _beside(self, x: Tensor) -> Tensor:
        return x if self.downsample is None else self.downsample(x)


class BasicBlock(_Block):
    """Two convolutions beside a shortcut."""

    expansion = 1

    def __init__(
        self, inplanes: int, planes: int, conv_builder: Callable[..., nn.Module], stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        middle = _between(inplanes, planes)
        self.conv1 = _normalized(conv_builder(inplanes, planes, middle, stride), planes, True)
        self.conv2 = _normalized(conv_builder(planes, planes, middle), planes, False)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.conv2(self.conv1(x))
        out += self._beside(x)
        return self.relu(out)


class Bottleneck(_Block):
    """1×1×1, a convolution, 1×1×1, beside a shortcut."""

    expansion = 4

    def __init__(
        self, inplanes: int, planes: int, conv_builder: Callable[..., nn.Module], stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        middle, wide = _between(inplanes, planes), planes * self.expansion
        first = nn.Conv3d(inplanes, planes, kernel_size=1, bias=False)
        self.conv1 = _normalized(first, planes, True)
        self.conv2 = _normalized(conv_builder(planes, planes, middle, stride), planes, True)
        self.conv3 = _normalized(nn.Conv3d(planes, wide, kernel_size=1, bias=False), wide, False)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.conv3(self.conv2(self.conv1(x)))
        out += self._beside(x)
        return self.relu(out)


class BasicStem(nn.Sequential):
    """3×7×7 filters."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 64, (3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class R2Plus1dStem(nn.Sequential):
    """1×7×7 filters, then 3×1×1 ones."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 45, (1, 7, 7), stride=(1, 2, 2), padding=(0, 3, 3), bias=False),
            nn.BatchNorm3d(45),
            nn.ReLU(inplace=True),
            nn.Conv3d(45, 64, (3, 1, 1), stride=(1, 1, 1), padding=(1, 0, 0), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class VideoResNet(nn.Module):
    """(N, 3, T, H, W) → (N, num_classes). `conv_makers` and `layers` have the convolution and the
    number of blocks of each of four stages."""

    def __init__(
        self, block: Any, conv_makers: Sequence[Any], layers: list[int],
        stem: Callable[..., nn.Module], num_classes: int = 400, zero_init_residual: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.inplanes = 64
        self.stem = stem()
        for i, (conv, n) in enumerate(zip(conv_makers, layers, strict=False)):
            stage = self._make_layer(block, conv, 64 * 2**i, n, stride=2 if i else 1)
            setattr(self, f"layer{i + 1}", stage)
        self.avgpool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv3d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0)
            elif isinstance(m, nn.BatchNorm3d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.constant_(m.bias, 0)
        if zero_init_residual:
            for m in self.modules():
                if isinstance(m, Bottleneck):
                    last: Any = m.conv3[1]
                    nn.init.constant_(last.weight, 0)

    def _make_layer(
        self, block: Any, conv_builder: Any, planes: int, blocks: int, stride: int = 1
    ) -> nn.Sequential:
        downsample = None
        wide = planes * block.expansion
        if stride != 1 or self.inplanes != wide:
            strides = conv_builder.get_downsample_stride(stride)
            conv = nn.Conv3d(self.inplanes, wide, kernel_size=1, stride=strides, bias=False)
            downsample = _normalized(conv, wide, False)
        layers = [block(self.inplanes, planes, conv_builder, stride, downsample)]
        self.inplanes = wide
        layers += [block(wide, planes, conv_builder) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(aten.flatten(self.avgpool(x), 1))


class R3D_18_Weights(WeightsEnum):
    KINETICS400_V1 = known(
        "r3d_18-b3b3357e",
        partial(VideoClassification, crop_size=(112, 112), resize_size=(128, 171)),
        {"Kinetics-400": {"acc@1": 63.2, "acc@5": 83.479}}, 33371472, 40.697, 127.359,
        "tree/main/references/video_classification", classes="kinetics400",
    )  # fmt: skip
    DEFAULT = KINETICS400_V1


class MC3_18_Weights(WeightsEnum):
    KINETICS400_V1 = known(
        "mc3_18-a90a0ba3",
        partial(VideoClassification, crop_size=(112, 112), resize_size=(128, 171)),
        {"Kinetics-400": {"acc@1": 63.96, "acc@5": 84.13}}, 11695440, 43.343, 44.672,
        "tree/main/references/video_classification", classes="kinetics400",
    )  # fmt: skip
    DEFAULT = KINETICS400_V1


class R2Plus1D_18_Weights(WeightsEnum):
    KINETICS400_V1 = known(
        "r2plus1d_18-91a641e6",
        partial(VideoClassification, crop_size=(112, 112), resize_size=(128, 171)),
        {"Kinetics-400": {"acc@1": 67.463, "acc@5": 86.175}}, 31505325, 40.519, 120.318,
        "tree/main/references/video_classification", classes="kinetics400",
    )  # fmt: skip
    DEFAULT = KINETICS400_V1


def _builder(
    name: str, first: Any, rest: Any, stem: Any, weights: type[WeightsEnum], doc: str
) -> Any:
    def make(**kwargs: Any) -> VideoResNet:
        return VideoResNet(BasicBlock, [first, rest, rest, rest], [2, 2, 2, 2], stem, **kwargs)

    return builder(name, make, weights, doc)


r3d_18 = _builder(
    "r3d_18", Conv3DSimple, Conv3DSimple, BasicStem, R3D_18_Weights,
    "ResNet-18 of three dimensions.",
)  # fmt: skip
mc3_18 = _builder(
    "mc3_18", Conv3DSimple, Conv3DNoTemporal, BasicStem, MC3_18_Weights,
    "ResNet-18 of three dimensions at first, then of two.",
)  # fmt: skip
r2plus1d_18 = _builder(
    "r2plus1d_18", Conv2Plus1D, Conv2Plus1D, R2Plus1dStem, R2Plus1D_18_Weights,
    "ResNet-18 of two dimensions and one beside them.",
)  # fmt: skip

__all__ = [
    "MC3_18_Weights", "R2Plus1D_18_Weights", "R3D_18_Weights", "VideoResNet", "mc3_18",
    "r2plus1d_18", "r3d_18",
]  # fmt: skip
