"""VGG (arXiv:1409.1556): stacks of 3×3 convolutions.

Source: https://docs.pytorch.org/vision/0.28/models/vgg.html
"""

from __future__ import annotations

from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import no_weights, register_model


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


# Convolutions of each of the five widths, between which a pooling halves the size.
_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2,) * 5, 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def _features(depth: int, batch_norm: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    channels = 3
    for width, repeats in zip((64, 128, 256, 512, 512), _DEPTHS[depth], strict=True):
        for _ in range(repeats):
            layers.append(nn.Conv2d(channels, width, kernel_size=3, padding=1))
            if batch_norm:
                layers.append(nn.BatchNorm2d(width))
            layers.append(nn.ReLU(inplace=True))
            channels = width
        layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
    return nn.Sequential(*layers)


def _builder(depth: int, batch_norm: bool) -> Any:
    name = f"vgg{depth}" + ("_bn" if batch_norm else "")

    def build(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> VGG:
        no_weights(weights, name)
        return VGG(_features(depth, batch_norm), **kwargs)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"VGG with {depth} layers" + (", batch normalization" if batch_norm else "")
    return register_model()(build)


vgg11, vgg13, vgg16, vgg19 = (_builder(d, False) for d in _DEPTHS)
vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn = (_builder(d, True) for d in _DEPTHS)

__all__ = [
    "VGG", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
]  # fmt: skip
