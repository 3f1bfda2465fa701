"""Inception v3 (arXiv:1512.00567): large filters factored into small and into asymmetric ones.

Source: https://docs.pytorch.org/vision/0.28/models/inception.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import handle_legacy_interface
from torchlab.vision.models._weights import PORTED, imagenet, loaded
from torchlab.vision.models.googlenet import (
    BasicConv2d,
    ask_for_init_weights,
    fit_to_weights,
    renormalized,
)

Layer = Callable[..., nn.Module]


class InceptionOutputs(NamedTuple):
    """The logits (N, num_classes), and in training those of the head in the middle."""

    logits: Tensor
    aux_logits: Tensor | None


_InceptionOutputs = InceptionOutputs

# kernel and padding of a convolution along one side of a map
_WIDE: dict[str, Any] = {"kernel_size": (1, 7), "padding": (0, 3)}
_TALL: dict[str, Any] = {"kernel_size": (7, 1), "padding": (3, 0)}
_WIDE3: dict[str, Any] = {"kernel_size": (1, 3), "padding": (0, 1)}
_TALL3: dict[str, Any] = {"kernel_size": (3, 1), "padding": (1, 0)}
_ONE, _THREE = {"kernel_size": 1}, {"kernel_size": 3, "padding": 1}
_HALF: dict[str, Any] = {"kernel_size": 3, "stride": 2}


class _Branches(nn.Module):
    """Chains of convolutions side by side, each of the children `name_1`, `name_2`, …"""

    def _chain(
        self, conv_block: Layer | None, name: str, width: int, *steps: tuple[int, dict[str, Any]]
    ) -> None:
        conv = BasicConv2d if conv_block is None else conv_block
        for i, (out, facts) in enumerate(steps):
            key = name if len(steps) == 1 else f"{name}_{i + 1}"
            setattr(self, key, conv(width, out, **facts))
            width = out

    def _through(self, x: Tensor, name: str, steps: int) -> Tensor:
        for i in range(steps):
            x = getattr(self, f"{name}_{i + 1}")(x)
        return x


def _mean3(x: Tensor) -> Tensor:
    return F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)


class InceptionA(_Branches):
    """1×1; 5×5; two 3×3; a mean and `pool_features` 1×1."""

    def __init__(
        self, in_channels: int, pool_features: int, conv_block: Layer | None = None
    ) -> None:
        super().__init__()
        n, conv = in_channels, conv_block
        self._chain(conv, "branch1x1", n, (64, _ONE))
        self._chain(conv, "branch5x5", n, (48, _ONE), (64, {"kernel_size": 5, "padding": 2}))
        self._chain(conv, "branch3x3dbl", n, (64, _ONE), (96, _THREE), (96, _THREE))
        self._chain(conv, "branch_pool", n, (pool_features, _ONE))

    def forward(self, x: Tensor) -> Tensor:
        made = [
            self.branch1x1(x), self._through(x, "branch5x5", 2),
            self._through(x, "branch3x3dbl", 3), self.branch_pool(_mean3(x)),
        ]  # fmt: skip
        return aten.cat(made, 1)


class InceptionB(_Branches):
    """Half the size: 3×3; two 3×3; the maximum."""

    def __init__(self, in_channels: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        n, conv = in_channels, conv_block
        self._chain(conv, "branch3x3", n, (384, _HALF))
        self._chain(conv, "branch3x3dbl", n, (64, _ONE), (96, _THREE), (96, _HALF))

    def forward(self, x: Tensor) -> Tensor:
        pooled = F.max_pool2d(x, kernel_size=3, stride=2)
        return aten.cat([self.branch3x3(x), self._through(x, "branch3x3dbl", 3), pooled], 1)


class InceptionC(_Branches):
    """1×1; 7×7 factored; two of them; a mean and 1×1."""

    def __init__(
        self, in_channels: int, channels_7x7: int, conv_block: Layer | None = None
    ) -> None:
        super().__init__()
        n, c, conv = in_channels, channels_7x7, conv_block
        self._chain(conv, "branch1x1", n, (192, _ONE))
        self._chain(conv, "branch7x7", n, (c, _ONE), (c, _WIDE), (192, _TALL))
        twice = ((c, _TALL), (c, _WIDE), (c, _TALL), (192, _WIDE))
        self._chain(conv, "branch7x7dbl", n, (c, _ONE), *twice)
        self._chain(conv, "branch_pool", n, (192, _ONE))

    def forward(self, x: Tensor) -> Tensor:
        made = [
            self.branch1x1(x), self._through(x, "branch7x7", 3),
            self._through(x, "branch7x7dbl", 5), self.branch_pool(_mean3(x)),
        ]  # fmt: skip
        return aten.cat(made, 1)


class InceptionD(_Branches):
    """Half the size: 3×3; 7×7 factored and 3×3; the maximum."""

    def __init__(self, in_channels: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        n, conv = in_channels, conv_block
        self._chain(conv, "branch3x3", n, (192, _ONE), (320, _HALF))
        steps = ((192, _ONE), (192, _WIDE), (192, _TALL), (192, _HALF))
        self._chain(conv, "branch7x7x3", n, *steps)

    def forward(self, x: Tensor) -> Tensor:
        made = [self._through(x, "branch3x3", 2), self._through(x, "branch7x7x3", 4)]
        return aten.cat([*made, F.max_pool2d(x, kernel_size=3, stride=2)], 1)


class InceptionE(_Branches):
    """1×1; 1×3 beside 3×1, after 1×1 and after 3×3; a mean and 1×1."""

    def __init__(self, in_channels: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        n, conv = in_channels, conv_block
        self._chain(conv, "branch1x1", n, (320, _ONE))
        self._chain(conv, "branch3x3_1", n, (384, _ONE))
        self._chain(conv, "branch3x3_2a", 384, (384, _WIDE3))
        self._chain(conv, "branch3x3_2b", 384, (384, _TALL3))
        self._chain(conv, "branch3x3dbl", n, (448, _ONE), (384, _THREE))
        self._chain(conv, "branch3x3dbl_3a", 384, (384, _WIDE3))
        self._chain(conv, "branch3x3dbl_3b", 384, (384, _TALL3))
        self._chain(conv, "branch_pool", n, (192, _ONE))

    def forward(self, x: Tensor) -> Tensor:
        one, two = self.branch3x3_1(x), self._through(x, "branch3x3dbl", 2)
        made = [
            self.branch1x1(x), self.branch3x3_2a(one), self.branch3x3_2b(one),
            self.branch3x3dbl_3a(two), self.branch3x3dbl_3b(two), self.branch_pool(_mean3(x)),
        ]  # fmt: skip
        return aten.cat(made, 1)


class InceptionAux(nn.Module):
    """A head on a map in the middle: (N, in_channels, H, W) → (N, num_classes)."""

    def __init__(self, in_channels: int, num_classes: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        conv: Any = BasicConv2d if conv_block is None else conv_block
        self.conv0 = conv(in_channels, 128, kernel_size=1)
        self.conv1 = conv(128, 768, kernel_size=5)
        self.conv1.stddev = 0.01
        self.fc: Any = nn.Linear(768, num_classes)
        self.fc.stddev = 0.001

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(self.conv0(F.avg_pool2d(x, kernel_size=5, stride=3)))
        return self.fc(aten.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class Inception3(nn.Module):
    """(N, 3, H, W), made for 299×299, → (N, num_classes); in training with `aux_logits`
    InceptionOutputs.

    `inception_blocks` has the classes of a convolution, the blocks A to E and the head.
    FutureWarning without `init_weights`; ValueError for other than seven classes.
    """

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        inception_blocks: list[Layer] | None = None, init_weights: bool | None = None,
        dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        kinds: Any = inception_blocks
        if kinds is None:
            kinds = [
                BasicConv2d, InceptionA, InceptionB, InceptionC, InceptionD, InceptionE,
                InceptionAux,
            ]  # fmt: skip
        if init_weights is None:
            init_weights = ask_for_init_weights("inception_v3")
        if len(kinds) != 7:
            raise ValueError(f"length of inception_blocks should be 7 instead of {len(kinds)}")
        conv, a, b, c, d, e, head = kinds
        self.aux_logits = aux_logits
        self.transform_input = transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, **_HALF)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, **_THREE)
        self.maxpool1 = nn.MaxPool2d(**_HALF)
        self.Conv2d_3b_1x1 = conv(64, 80, **_ONE)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(**_HALF)
        self.Mixed_5b = a(192, pool_features=32)
        self.Mixed_5c = a(256, pool_features=64)
        self.Mixed_5d = a(288, pool_features=64)
        self.Mixed_6a = b(288)
        for letter, width in zip("bcde", (128, 160, 160, 192), strict=True):
            setattr(self, f"Mixed_6{letter}", c(768, channels_7x7=width))
        self.AuxLogits: Any = head(768, num_classes) if aux_logits else None
        self.Mixed_7a = d(768)
        self.Mixed_7b = e(1280)
        self.Mixed_7c = e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)
        if init_weights:
            for m in self.modules():
                if isinstance(m, (nn.Conv2d, nn.Linear)):
                    std = float(getattr(m, "stddev", 0.1))
                    nn.init.trunc_normal_(m.weight, mean=0.0, std=std, a=-2, b=2)
                elif isinstance(m, nn.BatchNorm2d):
                    nn.init.constant_(m.weight, 1)
                    nn.init.constant_(m.bias, 0)

    def forward(self, x: Tensor) -> Any:
        if self.transform_input:
            x = renormalized(x)
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        for letter in "bcd":
            x = getattr(self, f"Mixed_5{letter}")(x)
        for letter in "abcde":
            x = getattr(self, f"Mixed_6{letter}")(x)
        aux = self.AuxLogits(x) if self.AuxLogits is not None and self.training else None
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
        x = self.fc(aten.flatten(self.dropout(self.avgpool(x)), 1))
        return InceptionOutputs(x, aux) if self.training and self.aux_logits else x


class Inception_V3_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "inception_v3_google-0cc3c7bd", (299, 342), (77.294, 93.45), 27161264, 5.713, 103.903,
        "#inception-v3", min_size=75, docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


@register_model()
@handle_legacy_interface(weights=("pretrained", Inception_V3_Weights.IMAGENET1K_V1))
def inception_v3(
    *, weights: Inception_V3_Weights | None = None, progress: bool = True, **kwargs: Any
) -> Inception3:
    """Inception v3."""
    chosen = Inception_V3_Weights.verify(weights)
    if chosen is not None:
        fit_to_weights(kwargs, chosen)
    return loaded(Inception3(**kwargs), chosen, progress)


__all__ = [
    "Inception3", "InceptionOutputs", "Inception_V3_Weights", "_InceptionOutputs", "inception_v3",
]  # fmt: skip
