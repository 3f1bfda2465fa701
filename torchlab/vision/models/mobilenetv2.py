"""MobileNetV2 (arXiv:1801.04381): inverted residuals with linear bottlenecks.

Source: https://docs.pytorch.org/vision/0.28/models/mobilenetv2.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._utils import _make_divisible
from torchlab.vision.models._weights import NEW_RECIPE, builder, imagenet
from torchlab.vision.ops.misc import Conv2dNormActivation

Layer = Callable[..., nn.Module]


class InvertedResidual(nn.Module):
    """Widen by 1×1, filter each channel by 3×3, narrow by 1×1; ValueError for another stride than
    1 or 2."""

    def __init__(
        self, inp: int, oup: int, stride: int, expand_ratio: int, norm_layer: Layer | None = None
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        self.stride = stride
        norm_layer = nn.BatchNorm2d if norm_layer is None else norm_layer
        hidden = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        facts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, hidden, kernel_size=1, **facts))
        layers += [
            Conv2dNormActivation(hidden, hidden, stride=stride, groups=hidden, **facts),
            nn.Conv2d(hidden, oup, 1, 1, 0, bias=False),
            norm_layer(oup),
        ]
        self.conv = nn.Sequential(*layers)
        self.out_channels = oup
        self._is_cn = stride > 1

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


# expansion, channels, repeats, stride of the first
_SETTING = [
    [1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2],
    [6, 320, 1, 1],
]  # fmt: skip


class MobileNetV2(nn.Module):
    """(N, 3, H, W) → (N, num_classes). ValueError for a setting that is no list of fours."""

    def __init__(
        self, num_classes: int = 1000, width_mult: float = 1.0,
        inverted_residual_setting: list[list[int]] | None = None, round_nearest: int = 8,
        block: Layer | None = None, norm_layer: Layer | None = None, dropout: float = 0.2,
    ) -> None:  # fmt: skip
        super().__init__()
        block = InvertedResidual if block is None else block
        norm_layer = nn.BatchNorm2d if norm_layer is None else norm_layer
        setting = _SETTING if inverted_residual_setting is None else inverted_residual_setting
        if not setting or len(setting[0]) != 4:
            raise ValueError(
                f"inverted_residual_setting should be non-empty or a 4-element list, got {setting}"
            )
        width = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        facts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        features: list[nn.Module] = [Conv2dNormActivation(3, width, stride=2, **facts)]
        for t, c, n, s in setting:
            out = _make_divisible(c * width_mult, round_nearest)
            for i in range(n):
                features.append(block(width, out, s if i == 0 else 1, t, norm_layer))
                width = out
        features.append(Conv2dNormActivation(width, self.last_channel, kernel_size=1, **facts))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes)
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.ones_(m.weight)
                nn.init.zeros_(m.bias)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(aten.flatten(x, 1))


class MobileNet_V2_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "mobilenet_v2-b0353104", 224, (71.878, 90.286), 3504872, 0.301, 13.555, "#mobilenetv2"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "mobilenet_v2-7ebf99e0", (224, 232), (72.154, 90.822), 3504872, 0.301, 13.598,
        "issues/3995#new-recipe-with-reg-tuning", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


mobilenet_v2 = builder("mobilenet_v2", MobileNetV2, MobileNet_V2_Weights, "MobileNetV2.")

__all__ = ["MobileNetV2", "MobileNet_V2_Weights", "mobilenet_v2"]
