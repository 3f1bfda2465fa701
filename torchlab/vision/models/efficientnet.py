"""EfficientNet (arXiv:1905.11946) and EfficientNetV2 (arXiv:2104.00298).

Source: https://docs.pytorch.org/vision/0.28/models/efficientnet.html
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._utils import _make_divisible
from torchlab.vision.models._weights import NEW_RECIPE, PORTED, builder, built, imagenet
from torchlab.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from torchlab.vision.ops.stochastic_depth import StochasticDepth
from torchlab.vision.transforms._image import InterpolationMode

Layer = Callable[..., nn.Module]


@dataclass
class _MBConvConfig:
    """The facts of one stage."""

    expand_ratio: float
    kernel: int
    stride: int
    input_channels: int
    out_channels: int
    num_layers: int
    block: Layer

    @staticmethod
    def adjust_channels(channels: int, width_mult: float, min_value: int | None = None) -> int:
        """Channels times the multiplier, a multiple of 8."""
        return _make_divisible(channels * width_mult, 8, min_value)


class MBConvConfig(_MBConvConfig):
    """A stage of MBConv blocks; width and depth are scaled."""

    def __init__(
        self, expand_ratio: float, kernel: int, stride: int, input_channels: int,
        out_channels: int, num_layers: int, width_mult: float = 1.0, depth_mult: float = 1.0,
        block: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            expand_ratio, kernel, stride, self.adjust_channels(input_channels, width_mult),
            self.adjust_channels(out_channels, width_mult),
            self.adjust_depth(num_layers, depth_mult), block or MBConv,
        )  # fmt: skip

    @staticmethod
    def adjust_depth(num_layers: int, depth_mult: float) -> int:
        """Layers times the multiplier, rounded up."""
        return int(math.ceil(num_layers * depth_mult))


class FusedMBConvConfig(_MBConvConfig):
    """A stage of fused MBConv blocks."""

    def __init__(
        self, expand_ratio: float, kernel: int, stride: int, input_channels: int,
        out_channels: int, num_layers: int, block: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            expand_ratio, kernel, stride, input_channels, out_channels, num_layers,
            block or FusedMBConv,
        )  # fmt: skip


class _Residual(nn.Module):
    """A block with a shortcut where the sizes allow it. ValueError for another stride than 1, 2."""

    block: nn.Sequential

    def __init__(self, cnf: _MBConvConfig, stochastic_depth_prob: float) -> None:
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels

    def forward(self, input: Tensor) -> Tensor:
        result = self.block(input)
        if self.use_res_connect:
            result = self.stochastic_depth(result)
            result += input
        return result


class MBConv(_Residual):
    """Widen, filter each channel, weigh the channels, narrow."""

    def __init__(
        self, cnf: MBConvConfig, stochastic_depth_prob: float, norm_layer: Layer,
        se_layer: Layer = SqueezeExcitation,
    ) -> None:  # fmt: skip
        super().__init__(cnf, stochastic_depth_prob)
        layers: list[nn.Module] = []
        wide = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        facts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.SiLU}
        if wide != cnf.input_channels:
            layers.append(Conv2dNormActivation(cnf.input_channels, wide, kernel_size=1, **facts))
        layers.append(
            Conv2dNormActivation(
                wide, wide, kernel_size=cnf.kernel, stride=cnf.stride, groups=wide, **facts
            )
        )
        squeezed = max(1, cnf.input_channels // 4)
        layers.append(se_layer(wide, squeezed, activation=partial(nn.SiLU, inplace=True)))
        layers.append(
            Conv2dNormActivation(
                wide, cnf.out_channels, kernel_size=1, norm_layer=norm_layer, activation_layer=None
            )
        )
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels


class FusedMBConv(_Residual):
    """One convolution widens and filters."""

    def __init__(
        self, cnf: FusedMBConvConfig, stochastic_depth_prob: float, norm_layer: Layer
    ) -> None:
        super().__init__(cnf, stochastic_depth_prob)
        wide = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        first = partial(
            Conv2dNormActivation, cnf.input_channels, kernel_size=cnf.kernel, stride=cnf.stride,
            norm_layer=norm_layer, activation_layer=nn.SiLU,
        )  # fmt: skip
        layers: list[nn.Module] = []
        if wide != cnf.input_channels:
            layers.append(first(wide))
            layers.append(
                Conv2dNormActivation(
                    wide, cnf.out_channels, kernel_size=1, norm_layer=norm_layer,
                    activation_layer=None,
                )
            )  # fmt: skip
        else:
            layers.append(first(cnf.out_channels))
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels


class EfficientNet(nn.Module):
    """(N, 3, H, W) → (N, num_classes). ValueError or TypeError for an empty or wrong setting."""

    def __init__(
        self, inverted_residual_setting: Sequence[_MBConvConfig], dropout: float,
        stochastic_depth_prob: float = 0.2, num_classes: int = 1000,
        norm_layer: Layer | None = None, last_channel: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        setting = inverted_residual_setting
        if not setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not isinstance(setting, Sequence) or not all(
            isinstance(s, _MBConvConfig) for s in setting
        ):
            raise TypeError("The inverted_residual_setting should be List[MBConvConfig]")
        norm_layer = nn.BatchNorm2d if norm_layer is None else norm_layer
        facts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.SiLU}
        layers: list[nn.Module] = [
            Conv2dNormActivation(3, setting[0].input_channels, kernel_size=3, stride=2, **facts)
        ]
        total = sum(cnf.num_layers for cnf in setting)
        number = 0
        for cnf in setting:
            stage: list[nn.Module] = []
            for _ in range(cnf.num_layers):
                own = copy.copy(cnf)
                if stage:
                    own.input_channels, own.stride = own.out_channels, 1
                depth = stochastic_depth_prob * float(number) / total
                stage.append(own.block(own, depth, norm_layer))
                number += 1
            layers.append(nn.Sequential(*stage))
        last = setting[-1].out_channels
        width = 4 * last if last_channel is None else last_channel
        layers.append(Conv2dNormActivation(last, width, kernel_size=1, **facts))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(width, num_classes)
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
                reach = 1.0 / math.sqrt(m.out_features)
                nn.init.uniform_(m.weight, -reach, reach)
                nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(aten.flatten(self.avgpool(self.features(x)), 1))


_STAGES = [
    (1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3),
    (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1),
]  # fmt: skip
# Fused stages first ("F"), then MBConv ("M").
_V2: dict[str, list[tuple[Any, ...]]] = {
    "s": [
        ("F", 1, 3, 1, 24, 24, 2), ("F", 4, 3, 2, 24, 48, 4), ("F", 4, 3, 2, 48, 64, 4),
        ("M", 4, 3, 2, 64, 128, 6), ("M", 6, 3, 1, 128, 160, 9), ("M", 6, 3, 2, 160, 256, 15),
    ],
    "m": [
        ("F", 1, 3, 1, 24, 24, 3), ("F", 4, 3, 2, 24, 48, 5), ("F", 4, 3, 2, 48, 80, 5),
        ("M", 4, 3, 2, 80, 160, 7), ("M", 6, 3, 1, 160, 176, 14), ("M", 6, 3, 2, 176, 304, 18),
        ("M", 6, 3, 1, 304, 512, 5),
    ],
    "l": [
        ("F", 1, 3, 1, 32, 32, 4), ("F", 4, 3, 2, 32, 64, 7), ("F", 4, 3, 2, 64, 96, 7),
        ("M", 4, 3, 2, 96, 192, 10), ("M", 6, 3, 1, 192, 224, 19), ("M", 6, 3, 2, 224, 384, 25),
        ("M", 6, 3, 1, 384, 640, 7),
    ],
}  # fmt: skip


class EfficientNet_B0_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_b0_rwightman-7f5810bc", (224, 256, InterpolationMode.BICUBIC),
        (77.692, 93.532), 5288548, 0.386, 20.451, "#efficientnet-v1", docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B1_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_b1_rwightman-bac287d4", (240, 256, InterpolationMode.BICUBIC),
        (78.642, 94.186), 7794184, 0.687, 30.134, "#efficientnet-v1", docs=PORTED,
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "efficientnet_b1-c27df63c", (240, 255, InterpolationMode.BILINEAR), (79.838, 94.934),
        7794184, 0.687, 30.136, "issues/3995#new-recipe-with-lr-wd-crop-tuning", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class EfficientNet_B2_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_b2_rwightman-c35c1473", (288, 288, InterpolationMode.BICUBIC),
        (80.608, 95.31), 9109994, 1.088, 35.174, "#efficientnet-v1", docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B3_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_b3_rwightman-b3899882", (300, 320, InterpolationMode.BICUBIC),
        (82.008, 96.054), 12233232, 1.827, 47.184, "#efficientnet-v1", docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B4_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_b4_rwightman-23ab8bcd", (380, 384, InterpolationMode.BICUBIC),
        (83.384, 96.594), 19341616, 4.394, 74.489, "#efficientnet-v1", docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B5_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_b5_lukemelas-1a07897c", (456, 456, InterpolationMode.BICUBIC),
        (83.444, 96.628), 30389784, 10.266, 116.864, "#efficientnet-v1", docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B6_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_b6_lukemelas-24a108a5", (528, 528, InterpolationMode.BICUBIC),
        (84.008, 96.916), 43040704, 19.068, 165.362, "#efficientnet-v1", docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B7_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_b7_lukemelas-c5b4e57e", (600, 600, InterpolationMode.BICUBIC),
        (84.122, 96.908), 66347960, 37.746, 254.675, "#efficientnet-v1", docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class EfficientNet_V2_S_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_v2_s-dd5fe13b", (384, 384, InterpolationMode.BILINEAR), (84.228, 96.878),
        21458488, 8.366, 82.704, "#efficientnet-v2", min_size=33, docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class EfficientNet_V2_M_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_v2_m-dc08266a", (480, 480, InterpolationMode.BILINEAR), (85.112, 97.156),
        54139356, 24.582, 208.01, "#efficientnet-v2", min_size=33, docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class EfficientNet_V2_L_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "efficientnet_v2_l-59c71312",
        (480, 480, InterpolationMode.BICUBIC, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)), (85.808, 97.788),
        118515272, 56.08, 454.573, "#efficientnet-v2", min_size=33, docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


def _efficientnet_conf(
    arch: str, **kwargs: Any
) -> tuple[list[MBConvConfig | FusedMBConvConfig], int | None]:
    """The blocks, and the last layer's channels where they are not four times as many as before.

    `width_mult` and `depth_mult` for the models "efficientnet_b…". ValueError for other names.
    """
    if arch.startswith("efficientnet_b"):
        scale = {k: kwargs.pop(k) for k in ("width_mult", "depth_mult")}
        return [MBConvConfig(*row, **scale) for row in _STAGES], None
    size = arch.removeprefix("efficientnet_v2_")[:1]
    if not arch.startswith("efficientnet_v2_") or size not in _V2:
        raise ValueError(f"Unsupported model type {arch}")
    kinds: dict[str, Any] = {"F": FusedMBConvConfig, "M": MBConvConfig}
    return [kinds[row[0]](*row[1:]) for row in _V2[size]], 1280


def _efficientnet(
    inverted_residual_setting: Sequence[MBConvConfig | FusedMBConvConfig], dropout: float,
    last_channel: int | None, weights: WeightsEnum | None, progress: bool, **kwargs: Any,
) -> EfficientNet:  # fmt: skip
    """An EfficientNet of such blocks with the weights."""
    make = partial(
        EfficientNet, inverted_residual_setting, dropout=dropout, last_channel=last_channel
    )
    return built(make, weights, progress, kwargs)


def _builder(
    name: str, dropout: float, weights: type[WeightsEnum], norm: Layer | None, **scale: float
) -> Any:
    def make(**kwargs: Any) -> EfficientNet:
        setting, last = _efficientnet_conf(name, **scale)
        return EfficientNet(
            setting, **{"dropout": dropout, "last_channel": last, "norm_layer": norm, **kwargs}
        )

    doc = f"{name.replace('_', ' ').replace('efficientnet', 'EfficientNet')}."
    return builder(name, make, weights, doc)


def _b(
    number: int, width: float, depth: float, dropout: float, weights: type[WeightsEnum],
    norm_layer: Layer | None = None,
) -> Any:  # fmt: skip
    name = f"efficientnet_b{number}"
    return _builder(name, dropout, weights, norm_layer, width_mult=width, depth_mult=depth)


def _v2(size: str, dropout: float, weights: type[WeightsEnum]) -> Any:
    norm = partial(nn.BatchNorm2d, eps=1e-3)
    return _builder(f"efficientnet_v2_{size}", dropout, weights, norm)


_NORM = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
efficientnet_b0 = _b(0, 1.0, 1.0, 0.2, EfficientNet_B0_Weights)
efficientnet_b1 = _b(1, 1.0, 1.1, 0.2, EfficientNet_B1_Weights)
efficientnet_b2 = _b(2, 1.1, 1.2, 0.3, EfficientNet_B2_Weights)
efficientnet_b3 = _b(3, 1.2, 1.4, 0.3, EfficientNet_B3_Weights)
efficientnet_b4 = _b(4, 1.4, 1.8, 0.4, EfficientNet_B4_Weights)
efficientnet_b5 = _b(5, 1.6, 2.2, 0.4, EfficientNet_B5_Weights, norm_layer=_NORM)
efficientnet_b6 = _b(6, 1.8, 2.6, 0.5, EfficientNet_B6_Weights, norm_layer=_NORM)
efficientnet_b7 = _b(7, 2.0, 3.1, 0.5, EfficientNet_B7_Weights, norm_layer=_NORM)
efficientnet_v2_s = _v2("s", 0.2, EfficientNet_V2_S_Weights)
efficientnet_v2_m = _v2("m", 0.3, EfficientNet_V2_M_Weights)
efficientnet_v2_l = _v2("l", 0.4, EfficientNet_V2_L_Weights)

__all__ = [
    "EfficientNet", "EfficientNet_B0_Weights", "EfficientNet_B1_Weights", "EfficientNet_B2_Weights",
    "EfficientNet_B3_Weights", "EfficientNet_B4_Weights", "EfficientNet_B5_Weights",
    "EfficientNet_B6_Weights", "EfficientNet_B7_Weights", "EfficientNet_V2_L_Weights",
    "EfficientNet_V2_M_Weights", "EfficientNet_V2_S_Weights", "efficientnet_b0", "efficientnet_b1",
    "efficientnet_b2", "efficientnet_b3", "efficientnet_b4", "efficientnet_b5", "efficientnet_b6",
    "efficientnet_b7", "efficientnet_v2_l", "efficientnet_v2_m", "efficientnet_v2_s",
]  # fmt: skip
