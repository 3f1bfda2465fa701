"""MobileNetV3 (arXiv:1905.02244): searched blocks with squeeze-and-excitation and hard swish.

Source: https://docs.pytorch.org/vision/0.28/models/mobilenetv3.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._utils import _make_divisible
from torchlab.vision.models._weights import NEW_RECIPE, builder, built, imagenet
from torchlab.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation

Layer = Callable[..., nn.Module]


class InvertedResidualConfig:
    """The facts of one block; channels are scaled by `width_mult`. `activation`: "RE" or "HS"."""

    def __init__(
        self, input_channels: int, kernel: int, expanded_channels: int, out_channels: int,
        use_se: bool, activation: str, stride: int, dilation: int, width_mult: float,
    ) -> None:  # fmt: skip
        self.input_channels = self.adjust_channels(input_channels, width_mult)
        self.kernel = kernel
        self.expanded_channels = self.adjust_channels(expanded_channels, width_mult)
        self.out_channels = self.adjust_channels(out_channels, width_mult)
        self.use_se = use_se
        self.use_hs = activation == "HS"
        self.stride = stride
        self.dilation = dilation

    @staticmethod
    def adjust_channels(channels: int, width_mult: float) -> int:
        """Channels times the multiplier, a multiple of 8."""
        return _make_divisible(channels * width_mult, 8)


_SQUEEZE = partial(SqueezeExcitation, scale_activation=nn.Hardsigmoid)


class InvertedResidual(nn.Module):
    """One block as its config says. ValueError for another stride than 1 or 2."""

    def __init__(
        self, cnf: InvertedResidualConfig, norm_layer: Layer,
        se_layer: Layer = _SQUEEZE,
    ) -> None:  # fmt: skip
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        wide = cnf.expanded_channels
        facts: dict[str, Any] = {
            "norm_layer": norm_layer,
            "activation_layer": nn.Hardswish if cnf.use_hs else nn.ReLU,
        }
        layers: list[nn.Module] = []
        if wide != cnf.input_channels:
            layers.append(Conv2dNormActivation(cnf.input_channels, wide, kernel_size=1, **facts))
        layers.append(
            Conv2dNormActivation(
                wide, wide, kernel_size=cnf.kernel, stride=1 if cnf.dilation > 1 else cnf.stride,
                dilation=cnf.dilation, groups=wide, **facts,
            )
        )  # fmt: skip
        if cnf.use_se:
            layers.append(se_layer(wide, _make_divisible(wide // 4, 8)))
        layers.append(
            Conv2dNormActivation(
                wide, cnf.out_channels, kernel_size=1, norm_layer=norm_layer, activation_layer=None
            )
        )
        self.block = nn.Sequential(*layers)
        self.out_channels = cnf.out_channels
        self._is_cn = cnf.stride > 1

    def forward(self, input: Tensor) -> Tensor:
        result = self.block(input)
        if self.use_res_connect:
            result += input
        return result


class MobileNetV3(nn.Module):
    """(N, 3, H, W) → (N, num_classes). ValueError or TypeError for an empty or wrong setting."""

    def __init__(
        self, inverted_residual_setting: list[InvertedResidualConfig], last_channel: int,
        num_classes: int = 1000, block: Layer | None = None, norm_layer: Layer | None = None,
        dropout: float = 0.2, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        setting = inverted_residual_setting
        if not setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not isinstance(setting, Sequence) or not all(
            isinstance(s, InvertedResidualConfig) for s in setting
        ):
            raise TypeError("The inverted_residual_setting should be List[InvertedResidualConfig]")
        block = InvertedResidual if block is None else block
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        facts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.Hardswish}
        first, last = setting[0].input_channels, setting[-1].out_channels
        self.features = nn.Sequential(
            Conv2dNormActivation(3, first, kernel_size=3, stride=2, **facts),
            *(block(cnf, norm_layer) for cnf in setting),
            Conv2dNormActivation(last, 6 * last, kernel_size=1, **facts),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * last, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
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
        return self.classifier(aten.flatten(self.avgpool(self.features(x)), 1))


# input, kernel, expanded, output, squeeze-and-excitation, activation, stride, reduced and dilated
_LARGE: list[tuple[Any, ...]] = [
    (16, 3, 16, 16, False, "RE", 1, 0), (16, 3, 64, 24, False, "RE", 2, 0),
    (24, 3, 72, 24, False, "RE", 1, 0), (24, 5, 72, 40, True, "RE", 2, 0),
    (40, 5, 120, 40, True, "RE", 1, 0), (40, 5, 120, 40, True, "RE", 1, 0),
    (40, 3, 240, 80, False, "HS", 2, 0), (80, 3, 200, 80, False, "HS", 1, 0),
    (80, 3, 184, 80, False, "HS", 1, 0), (80, 3, 184, 80, False, "HS", 1, 0),
    (80, 3, 480, 112, True, "HS", 1, 0), (112, 3, 672, 112, True, "HS", 1, 0),
    (112, 5, 672, 160, True, "HS", 2, 1), (160, 5, 960, 160, True, "HS", 1, 2),
    (160, 5, 960, 160, True, "HS", 1, 2),
]  # fmt: skip
_SMALL: list[tuple[Any, ...]] = [
    (16, 3, 16, 16, True, "RE", 2, 0), (16, 3, 72, 24, False, "RE", 2, 0),
    (24, 3, 88, 24, False, "RE", 1, 0), (24, 5, 96, 40, True, "HS", 2, 0),
    (40, 5, 240, 40, True, "HS", 1, 0), (40, 5, 240, 40, True, "HS", 1, 0),
    (40, 5, 120, 48, True, "HS", 1, 0), (48, 5, 144, 48, True, "HS", 1, 0),
    (48, 5, 288, 96, True, "HS", 2, 1), (96, 5, 576, 96, True, "HS", 1, 2),
    (96, 5, 576, 96, True, "HS", 1, 2),
]  # fmt: skip


_ROWS = {"mobilenet_v3_large": (_LARGE, 1280), "mobilenet_v3_small": (_SMALL, 1024)}


def _mobilenet_v3_conf(
    arch: str, width_mult: float = 1.0, reduced_tail: bool = False, dilated: bool = False,
    **kwargs: Any,
) -> tuple[list[InvertedResidualConfig], int]:  # fmt: skip
    """The blocks and the last layer's channels. `reduced_tail` halves the channels of the last
    stage, `dilated` dilates it by 2. ValueError for another model's name."""
    if arch not in _ROWS:
        raise ValueError(f"Unsupported model type {arch}")
    rows, last = _ROWS[arch]
    half = 2 if reduced_tail else 1
    dilation = 2 if dilated else 1
    setting = []
    for i, k, e, o, se, act, s, tail in rows:
        inp, wide, out = i, e, o
        if tail:
            out = o // half
        if tail == 2:
            inp, wide = i // half, e // half
        setting.append(
            InvertedResidualConfig(
                inp, k, wide, out, se, act, s, dilation if tail else 1, width_mult
            )
        )
    return setting, InvertedResidualConfig.adjust_channels(last // half, width_mult)


def _make(arch: str, **kwargs: Any) -> MobileNetV3:
    setting, channel = _mobilenet_v3_conf(arch, **kwargs)
    for used in ("width_mult", "reduced_tail", "dilated"):
        kwargs.pop(used, None)
    return MobileNetV3(setting, channel, **kwargs)


def _mobilenet_v3(
    inverted_residual_setting: list[InvertedResidualConfig], last_channel: int,
    weights: WeightsEnum | None, progress: bool, **kwargs: Any,
) -> MobileNetV3:  # fmt: skip
    """A MobileNetV3 of such blocks with the weights."""
    make = partial(MobileNetV3, inverted_residual_setting, last_channel)
    return built(make, weights, progress, kwargs)


class MobileNet_V3_Large_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "mobilenet_v3_large-8738ca79", 224, (74.042, 91.34), 5483032, 0.217, 21.114,
        "#mobilenetv3-large--small",
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "mobilenet_v3_large-5c1a4163", (224, 232), (75.274, 92.566), 5483032, 0.217, 21.107,
        "issues/3995#new-recipe-with-reg-tuning", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class MobileNet_V3_Small_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "mobilenet_v3_small-047dcff4", 224, (67.668, 87.402), 2542856, 0.057, 9.829,
        "#mobilenetv3-large--small",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


mobilenet_v3_large = builder(
    "mobilenet_v3_large", partial(_make, "mobilenet_v3_large"), MobileNet_V3_Large_Weights,
    "MobileNetV3, large.",
)  # fmt: skip
mobilenet_v3_small = builder(
    "mobilenet_v3_small", partial(_make, "mobilenet_v3_small"), MobileNet_V3_Small_Weights,
    "MobileNetV3, small.",
)  # fmt: skip

__all__ = [
    "MobileNetV3", "MobileNet_V3_Large_Weights", "MobileNet_V3_Small_Weights", "mobilenet_v3_large",
    "mobilenet_v3_small",
]  # fmt: skip
