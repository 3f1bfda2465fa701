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
from torchlab.vision.models._api import no_weights, register_model
from torchlab.vision.models._utils import _make_divisible
from torchlab.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from torchlab.vision.ops.stochastic_depth import StochasticDepth

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


def _builder(
    name: str, setting: Callable[[], list[_MBConvConfig]], dropout: float, **facts: Any
) -> Any:
    def build(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> EfficientNet:
        no_weights(weights, name)
        given = {"dropout": dropout, **facts, **kwargs}
        return EfficientNet(setting(), **given)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name.replace('_', ' ').replace('efficientnet', 'EfficientNet')}."
    return register_model()(build)


def _b(number: int, width: float, depth: float, dropout: float, **facts: Any) -> Any:
    def setting() -> list[_MBConvConfig]:
        return [MBConvConfig(*row, width_mult=width, depth_mult=depth) for row in _STAGES]

    return _builder(f"efficientnet_b{number}", setting, dropout, **facts)


def _v2(size: str, dropout: float) -> Any:
    def setting() -> list[_MBConvConfig]:
        kinds: dict[str, Any] = {"F": FusedMBConvConfig, "M": MBConvConfig}
        return [kinds[row[0]](*row[1:]) for row in _V2[size]]

    norm = partial(nn.BatchNorm2d, eps=1e-3)
    return _builder(f"efficientnet_v2_{size}", setting, dropout, last_channel=1280, norm_layer=norm)


_NORM = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
efficientnet_b0 = _b(0, 1.0, 1.0, 0.2)
efficientnet_b1 = _b(1, 1.0, 1.1, 0.2)
efficientnet_b2 = _b(2, 1.1, 1.2, 0.3)
efficientnet_b3 = _b(3, 1.2, 1.4, 0.3)
efficientnet_b4 = _b(4, 1.4, 1.8, 0.4)
efficientnet_b5 = _b(5, 1.6, 2.2, 0.4, norm_layer=_NORM)
efficientnet_b6 = _b(6, 1.8, 2.6, 0.5, norm_layer=_NORM)
efficientnet_b7 = _b(7, 2.0, 3.1, 0.5, norm_layer=_NORM)
efficientnet_v2_s = _v2("s", 0.2)
efficientnet_v2_m = _v2("m", 0.3)
efficientnet_v2_l = _v2("l", 0.4)

__all__ = [
    "EfficientNet", "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3",
    "efficientnet_b4", "efficientnet_b5", "efficientnet_b6", "efficientnet_b7",
    "efficientnet_v2_l", "efficientnet_v2_m", "efficientnet_v2_s",
]  # fmt: skip
