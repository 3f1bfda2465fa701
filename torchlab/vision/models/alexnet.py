"""AlexNet (Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
arXiv:1404.5997).

Source: https://docs.pytorch.org/vision/0.28/models/alexnet.html
"""

from __future__ import annotations

from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import no_weights, register_model


class AlexNet(nn.Module):
    """(N, 3, 224, 224) → (N, num_classes)."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, kernel_size=11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(64, 192, kernel_size=5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(192, 384, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(aten.flatten(self.avgpool(self.features(x)), 1))


@register_model()
def alexnet(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> AlexNet:
    """AlexNet."""
    no_weights(weights, "alexnet")
    return AlexNet(**kwargs)


__all__ = ["AlexNet", "alexnet"]
