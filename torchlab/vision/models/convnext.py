"""ConvNeXt (arXiv:2201.03545): a convolutional network built like a transformer.

Source: https://docs.pytorch.org/vision/0.28/models/convnext.html
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import NEW_RECIPE, builder, built, imagenet
from torchlab.vision.ops.misc import Conv2dNormActivation, Permute
from torchlab.vision.ops.stochastic_depth import StochasticDepth

Layer = Callable[..., nn.Module]


class LayerNorm2d(nn.LayerNorm):
    """Layer normalization over the channels of (N, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        x = aten.permute(x, (0, 2, 3, 1))
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return aten.permute(x, (0, 3, 1, 2))


class CNBlock(nn.Module):
    """A 7×7 convolution of each channel, and a small network of each pixel, beside a shortcut."""

    def __init__(
        self, dim: int, layer_scale: float, stochastic_depth_prob: float,
        norm_layer: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm_layer = partial(nn.LayerNorm, eps=1e-6) if norm_layer is None else norm_layer
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim, bias=True),
            Permute([0, 2, 3, 1]),
            norm_layer(dim),
            nn.Linear(in_features=dim, out_features=4 * dim, bias=True),
            nn.GELU(),
            nn.Linear(in_features=4 * dim, out_features=dim, bias=True),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(aten.ones((dim, 1, 1)) * layer_scale)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Tensor) -> Tensor:
        result = self.stochastic_depth(self.layer_scale * self.block(input))
        result += input
        return result


class CNBlockConfig:
    """A stage: its channels, those of the next stage (None: it is the last), its blocks."""

    def __init__(self, input_channels: int, out_channels: int | None, num_layers: int) -> None:
        self.input_channels = input_channels
        self.out_channels = out_channels
        self.num_layers = num_layers

    def __repr__(self) -> str:
        return (
            f"CNBlockConfig(input_channels={self.input_channels},"
            f" out_channels={self.out_channels}, num_layers={self.num_layers})"
        )


class ConvNeXt(nn.Module):
    """(N, 3, H, W) → (N, num_classes). ValueError or TypeError for an empty or wrong setting."""

    def __init__(
        self, block_setting: list[CNBlockConfig], stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6, num_classes: int = 1000, block: Layer | None = None,
        norm_layer: Layer | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if not block_setting:
            raise ValueError("The block_setting should not be empty")
        if not all(isinstance(s, CNBlockConfig) for s in block_setting):
            raise TypeError("The block_setting should be List[CNBlockConfig]")
        block = CNBlock if block is None else block
        norm_layer = partial(LayerNorm2d, eps=1e-6) if norm_layer is None else norm_layer
        layers: list[nn.Module] = [
            Conv2dNormActivation(
                3, block_setting[0].input_channels, kernel_size=4, stride=4, padding=0,
                norm_layer=norm_layer, activation_layer=None, bias=True,
            )
        ]  # fmt: skip
        total = sum(cnf.num_layers for cnf in block_setting)
        number = 0
        for cnf in block_setting:
            stage = []
            for _ in range(cnf.num_layers):
                depth = stochastic_depth_prob * number / (total - 1.0)
                stage.append(block(cnf.input_channels, layer_scale, depth))
                number += 1
            layers.append(nn.Sequential(*stage))
            if cnf.out_channels is not None:
                layers.append(
                    nn.Sequential(
                        norm_layer(cnf.input_channels),
                        nn.Conv2d(cnf.input_channels, cnf.out_channels, kernel_size=2, stride=2),
                    )
                )
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last = block_setting[-1]
        width = last.input_channels if last.out_channels is None else last.out_channels
        self.classifier = nn.Sequential(
            norm_layer(width), nn.Flatten(1), nn.Linear(width, num_classes)
        )
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(m.weight, std=0.02)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)))


_known = partial(imagenet, min_size=32, docs=NEW_RECIPE)


class ConvNeXt_Tiny_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "convnext_tiny-983f1562", (224, 236), (82.52, 96.146), 28589128, 4.456, 109.119,
        "#convnext",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ConvNeXt_Small_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "convnext_small-0c510722", (224, 230), (83.616, 96.65), 50223688, 8.684, 191.703,
        "#convnext",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ConvNeXt_Base_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "convnext_base-6075fbad", (224, 232), (84.062, 96.87), 88591464, 15.355, 338.064,
        "#convnext",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ConvNeXt_Large_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "convnext_large-ea097f82", (224, 232), (84.414, 96.976), 197767336, 34.361, 754.537,
        "#convnext",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


def _convnext(
    block_setting: list[CNBlockConfig], stochastic_depth_prob: float,
    weights: WeightsEnum | None, progress: bool, **kwargs: Any,
) -> ConvNeXt:  # fmt: skip
    """A ConvNeXt of such blocks with the weights."""
    make = partial(ConvNeXt, block_setting, stochastic_depth_prob=stochastic_depth_prob)
    return built(make, weights, progress, kwargs)


def _builder(
    size: str, widths: tuple[int, ...], middle: int, depth: float, weights: type[WeightsEnum]
) -> Any:
    def make(**kwargs: Any) -> ConvNeXt:
        layers = (3, 3, middle, 3)
        setting = [
            CNBlockConfig(w, after, n)
            for w, after, n in zip(widths, (*widths[1:], None), layers, strict=True)
        ]
        return ConvNeXt(setting, **{"stochastic_depth_prob": depth, **kwargs})

    return builder(f"convnext_{size}", make, weights, f"ConvNeXt, {size}.")


convnext_tiny = _builder("tiny", (96, 192, 384, 768), 9, 0.1, ConvNeXt_Tiny_Weights)
convnext_small = _builder("small", (96, 192, 384, 768), 27, 0.4, ConvNeXt_Small_Weights)
convnext_base = _builder("base", (128, 256, 512, 1024), 27, 0.5, ConvNeXt_Base_Weights)
convnext_large = _builder("large", (192, 384, 768, 1536), 27, 0.5, ConvNeXt_Large_Weights)

__all__ = [
    "ConvNeXt", "ConvNeXt_Base_Weights", "ConvNeXt_Large_Weights", "ConvNeXt_Small_Weights",
    "ConvNeXt_Tiny_Weights", "convnext_base", "convnext_large", "convnext_small", "convnext_tiny",
]  # fmt: skip
