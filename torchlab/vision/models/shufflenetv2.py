"""ShuffleNet V2 (arXiv:1807.11164): half of the channels pass, the other half is filtered, then
both are mixed.

Source: https://docs.pytorch.org/vision/0.28/models/shufflenetv2.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import builder, imagenet


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """(N, C, H, W) with the channels of `groups` groups taken in turn."""
    n, c, h, w = x.shape
    split = aten.reshape(x, (n, groups, c // groups, h, w))
    return aten.reshape(aten.transpose(split, 1, 2).contiguous(), (n, c, h, w))


def _pointwise(inp: int, oup: int) -> list[nn.Module]:
    return [
        nn.Conv2d(inp, oup, kernel_size=1, stride=1, padding=0, bias=False), nn.BatchNorm2d(oup),
        nn.ReLU(inplace=True),
    ]  # fmt: skip


class InvertedResidual(nn.Module):
    """(N, inp, H, W) → (N, oup, H / stride, W / stride). At stride 1 half of the channels pass as
    they are. ValueError for another stride than 1 to 3, or channels that do not fit."""

    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        if not 1 <= stride <= 3:
            raise ValueError("illegal stride value")
        self.stride = stride
        half = oup // 2
        if stride == 1 and inp != half << 1:
            raise ValueError(
                f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values. If stride"
                " == 1 then inp should be equal to oup // 2 << 1."
            )
        beside: list[nn.Module] = []
        if stride > 1:
            beside = [
                self.depthwise_conv(inp, inp, kernel_size=3, stride=stride, padding=1),
                nn.BatchNorm2d(inp), *_pointwise(inp, half),
            ]  # fmt: skip
        self.branch1 = nn.Sequential(*beside)
        self.branch2 = nn.Sequential(
            *_pointwise(inp if stride > 1 else half, half),
            self.depthwise_conv(half, half, kernel_size=3, stride=stride, padding=1),
            nn.BatchNorm2d(half),
            *_pointwise(half, half),
        )

    @staticmethod
    def depthwise_conv(
        i: int, o: int, kernel_size: int, stride: int = 1, padding: int = 0, bias: bool = False
    ) -> nn.Conv2d:
        """A convolution of each channel by itself."""
        return nn.Conv2d(i, o, kernel_size, stride, padding, bias=bias, groups=i)

    def forward(self, x: Tensor) -> Tensor:
        if self.stride == 1:
            kept, rest = aten.chunk(x, 2, dim=1)
            both = [kept, self.branch2(rest)]
        else:
            both = [self.branch1(x), self.branch2(x)]
        return channel_shuffle(aten.cat(both, 1), 2)


class ShuffleNetV2(nn.Module):
    """(N, 3, H, W) → (N, num_classes). ValueError for other than three stages or five widths."""

    def __init__(
        self, stages_repeats: list[int], stages_out_channels: list[int], num_classes: int = 1000,
        inverted_residual: Callable[..., nn.Module] = InvertedResidual,
    ) -> None:  # fmt: skip
        super().__init__()
        if len(stages_repeats) != 3:
            raise ValueError("expected stages_repeats as list of 3 positive ints")
        if len(stages_out_channels) != 5:
            raise ValueError("expected stages_out_channels as list of 5 positive ints")
        self._stage_out_channels = stages_out_channels
        first, *widths, last = stages_out_channels
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, first, 3, 2, 1, bias=False), nn.BatchNorm2d(first), nn.ReLU(inplace=True)
        )
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, (repeats, width) in enumerate(zip(stages_repeats, widths, strict=True)):
            stage = [inverted_residual(first, width, 2)]
            stage += [inverted_residual(width, width, 1) for _ in range(repeats - 1)]
            setattr(self, f"stage{i + 2}", nn.Sequential(*stage))
            first = width
        self.conv5 = nn.Sequential(*_pointwise(first, last))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.conv1(x))
        x = self.conv5(self.stage4(self.stage3(self.stage2(x))))
        return self.fc(aten.mean(x, [2, 3]))


class ShuffleNet_V2_X0_5_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "shufflenetv2_x0.5-f707e7126e", 224, (60.552, 81.746), 1366792, 0.04, 5.282,
        "https://github.com/ericsun99/Shufflenet-v2-Pytorch",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ShuffleNet_V2_X1_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "shufflenetv2_x1-5666bf0f80", 224, (69.362, 88.316), 2278604, 0.145, 8.791,
        "https://github.com/ericsun99/Shufflenet-v2-Pytorch",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ShuffleNet_V2_X1_5_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "shufflenetv2_x1_5-3c479a10", (224, 232), (72.996, 91.086), 3503624, 0.296, 13.557,
        "pull/5906",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ShuffleNet_V2_X2_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "shufflenetv2_x2_0-8be3c8ee", (224, 232), (76.23, 93.006), 7393996, 0.583, 28.433,
        "pull/5906",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


def _builder(size: str, widths: list[int], weights: type[WeightsEnum]) -> Any:
    def make(**kwargs: Any) -> ShuffleNetV2:
        return ShuffleNetV2([4, 8, 4], widths, **kwargs)

    doc = f"ShuffleNet V2, {size.replace('_', '.')} times as wide."
    return builder(f"shufflenet_v2_x{size}", make, weights, doc)


shufflenet_v2_x0_5 = _builder("0_5", [24, 48, 96, 192, 1024], ShuffleNet_V2_X0_5_Weights)
shufflenet_v2_x1_0 = _builder("1_0", [24, 116, 232, 464, 1024], ShuffleNet_V2_X1_0_Weights)
shufflenet_v2_x1_5 = _builder("1_5", [24, 176, 352, 704, 1024], ShuffleNet_V2_X1_5_Weights)
shufflenet_v2_x2_0 = _builder("2_0", [24, 244, 488, 976, 2048], ShuffleNet_V2_X2_0_Weights)

__all__ = [
    "ShuffleNetV2", "ShuffleNet_V2_X0_5_Weights", "ShuffleNet_V2_X1_0_Weights",
    "ShuffleNet_V2_X1_5_Weights", "ShuffleNet_V2_X2_0_Weights", "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0",
]  # fmt: skip
