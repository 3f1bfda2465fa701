"""SqueezeNet (arXiv:1602.07360): few parameters by 1×1 filters before the 3×3 ones.

Source: https://docs.pytorch.org/vision/0.28/models/squeezenet.html
"""

from __future__ import annotations

from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import builder, imagenet


class Fire(nn.Module):
    """1×1 filters narrow; 1×1 and 3×3 filters, side by side, widen."""

    def __init__(
        self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int
    ) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, kernel_size=1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, kernel_size=1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        narrow = self.squeeze_activation(self.squeeze(x))
        one = self.expand1x1_activation(self.expand1x1(narrow))
        return aten.cat([one, self.expand3x3_activation(self.expand3x3(narrow))], 1)


# the first convolution's width and side; then the squeezed widths, None where a pooling halves
_VERSIONS: dict[str, tuple[int, int, list[int | None]]] = {
    "1_0": (96, 7, [None, 16, 16, 32, None, 32, 48, 48, 64, None, 64]),
    "1_1": (64, 3, [None, 16, 16, None, 32, 32, None, 48, 48, 64, 64]),
}


class SqueezeNet(nn.Module):
    """(N, 3, H, W) → (N, num_classes). ValueError for another version than "1_0" or "1_1"."""

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.num_classes = num_classes
        if version not in _VERSIONS:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        width, side, squeezed = _VERSIONS[version]
        layers: list[nn.Module] = [
            nn.Conv2d(3, width, kernel_size=side, stride=2), nn.ReLU(inplace=True),
        ]  # fmt: skip
        for narrow in squeezed:
            if narrow is None:
                layers.append(nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True))
                continue
            layers.append(Fire(width, narrow, 4 * narrow, 4 * narrow))
            width = 8 * narrow
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(width, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                if m is last:
                    nn.init.normal_(m.weight, mean=0.0, std=0.01)
                else:
                    nn.init.kaiming_uniform_(m.weight)
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0)

    def forward(self, x: Tensor) -> Tensor:
        return aten.flatten(self.classifier(self.features(x)), 1)


class SqueezeNet1_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "squeezenet1_0-b66bff10", 224, (58.092, 80.42), 1248424, 0.819, 4.778,
        "pull/49#issuecomment-277560717", min_size=21,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class SqueezeNet1_1_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "squeezenet1_1-b8a52dc0", 224, (58.178, 80.624), 1235496, 0.349, 4.729,
        "pull/49#issuecomment-277560717", min_size=17,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


def _builder(version: str, weights: type[WeightsEnum], doc: str) -> Any:
    def make(**kwargs: Any) -> SqueezeNet:
        return SqueezeNet(version, **kwargs)

    return builder(f"squeezenet{version}", make, weights, doc)


squeezenet1_0 = _builder("1_0", SqueezeNet1_0_Weights, "SqueezeNet 1.0.")
squeezenet1_1 = _builder(
    "1_1", SqueezeNet1_1_Weights, "SqueezeNet 1.1: less than half the arithmetic of 1.0."
)

__all__ = [
    "SqueezeNet", "SqueezeNet1_0_Weights", "SqueezeNet1_1_Weights", "squeezenet1_0",
    "squeezenet1_1",
]  # fmt: skip
