"""VGG (arXiv:1409.1556): stacks of 3×3 convolutions.

Source: https://docs.pytorch.org/vision/0.28/models/vgg.html
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import builder, built, imagenet


class VGG(nn.Module):
    """`features` gives 512 channels; (N, 3, H, W) → (N, num_classes)."""

    def __init__(
        self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            for m in self.modules():
                if isinstance(m, nn.Conv2d):
                    nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                    if m.bias is not None:
                        nn.init.constant_(m.bias, 0)
                elif isinstance(m, nn.BatchNorm2d):
                    nn.init.constant_(m.weight, 1)
                    nn.init.constant_(m.bias, 0)
                elif isinstance(m, nn.Linear):
                    nn.init.normal_(m.weight, 0, 0.01)
                    nn.init.constant_(m.bias, 0)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(aten.flatten(self.avgpool(self.features(x)), 1))


# The convolutions' widths; "M": a pooling that halves the size. A, B, D, E are the paper's names.
_DEPTHS = {11: "A", 13: "B", 16: "D", 19: "E"}
cfgs: dict[str, list[str | int]] = {
    "A": [64, "M", 128, "M", *(256,) * 2, "M", *(512,) * 2, "M", *(512,) * 2, "M"],
    "B": [*(64,) * 2, "M", *(128,) * 2, "M", *(256,) * 2, "M", *(512,) * 2, "M", *(512,) * 2, "M"],
    "D": [*(64,) * 2, "M", *(128,) * 2, "M", *(256,) * 3, "M", *(512,) * 3, "M", *(512,) * 3, "M"],
    "E": [*(64,) * 2, "M", *(128,) * 2, "M", *(256,) * 4, "M", *(512,) * 4, "M", *(512,) * 4, "M"],
}


def make_layers(cfg: list[str | int], batch_norm: bool = False) -> nn.Sequential:
    """The layers of such a list, for an image of 3 channels."""
    layers: list[nn.Module] = []
    channels = 3
    for width in cfg:
        if width == "M":
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        width = int(width)
        layers.append(nn.Conv2d(channels, width, kernel_size=3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2d(width))
        layers.append(nn.ReLU(inplace=True))
        channels = width
    return nn.Sequential(*layers)


_known = partial(imagenet, min_size=32)
_PARTIAL = "Only `features` is trained, with the normalization of the paper; the classifier is not."


class VGG11_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "vgg11-8a719046", 224, (69.02, 88.628), 132863336, 7.609, 506.84, "#alexnet-and-vgg"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class VGG11_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "vgg11_bn-6002323d", 224, (70.37, 89.81), 132868840, 7.609, 506.881, "#alexnet-and-vgg"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class VGG13_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "vgg13-19584684", 224, (69.928, 89.246), 133047848, 11.308, 507.545, "#alexnet-and-vgg"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class VGG13_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "vgg13_bn-abd245e5", 224, (71.586, 90.374), 133053736, 11.308, 507.59, "#alexnet-and-vgg"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class VGG16_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "vgg16-397923af", 224, (71.592, 90.382), 138357544, 15.47, 527.796, "#alexnet-and-vgg"
    )  # fmt: skip
    IMAGENET1K_FEATURES = _known(
        "vgg16_features-amdegroot-88682ab5",
        {"crop_size": 224, "mean": (0.48235, 0.45882, 0.40784), "std": (1 / 255,) * 3},
        (math.nan, math.nan), 138357544, 15.47, 527.802,
        "https://github.com/amdegroot/ssd.pytorch#training-ssd", classes=None, docs=_PARTIAL,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class VGG16_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "vgg16_bn-6c64b313", 224, (73.36, 91.516), 138365992, 15.47, 527.866, "#alexnet-and-vgg"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class VGG19_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "vgg19-dcbb9e9d", 224, (72.376, 90.876), 143667240, 19.632, 548.051, "#alexnet-and-vgg"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class VGG19_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = _known(
        "vgg19_bn-c79401a0", 224, (74.218, 91.842), 143678248, 19.632, 548.143, "#alexnet-and-vgg"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


def _fit(kwargs: dict[str, Any], _: WeightsEnum) -> None:
    kwargs["init_weights"] = False


def _make(cfg: str, batch_norm: bool, **kwargs: Any) -> VGG:
    return VGG(make_layers(cfgs[cfg], batch_norm), **kwargs)


def _vgg(
    cfg: str, batch_norm: bool, weights: WeightsEnum | None, progress: bool, **kwargs: Any
) -> VGG:
    """A VGG of one of the `cfgs` with the weights."""
    return built(partial(_make, cfg, batch_norm), weights, progress, kwargs, _fit)


def _builder(depth: int, batch_norm: bool, weights: type[WeightsEnum]) -> Any:
    name = f"vgg{depth}" + ("_bn" if batch_norm else "")
    doc = f"VGG with {depth} layers" + (", batch normalization." if batch_norm else ".")
    return builder(name, partial(_make, _DEPTHS[depth], batch_norm), weights, doc, fit=_fit)


vgg11 = _builder(11, False, VGG11_Weights)
vgg11_bn = _builder(11, True, VGG11_BN_Weights)
vgg13 = _builder(13, False, VGG13_Weights)
vgg13_bn = _builder(13, True, VGG13_BN_Weights)
vgg16 = _builder(16, False, VGG16_Weights)
vgg16_bn = _builder(16, True, VGG16_BN_Weights)
vgg19 = _builder(19, False, VGG19_Weights)
vgg19_bn = _builder(19, True, VGG19_BN_Weights)

__all__ = [
    "VGG", "VGG11_BN_Weights", "VGG11_Weights", "VGG13_BN_Weights", "VGG13_Weights",
    "VGG16_BN_Weights", "VGG16_Weights", "VGG19_BN_Weights", "VGG19_Weights", "vgg11", "vgg11_bn",
    "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
]  # fmt: skip
