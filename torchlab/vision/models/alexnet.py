"""AlexNet (Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
arXiv:1404.5997).

Source: https://docs.pytorch.org/vision/0.28/models/alexnet.html
"""

from __future__ import annotations

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import builder, imagenet


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


class AlexNet_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "alexnet-owt-7be5be79", 224, (56.522, 79.066), 61100840, 0.714, 233.087, "#alexnet-and-vgg",
        min_size=63,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


alexnet = builder("alexnet", AlexNet, AlexNet_Weights, "AlexNet.")

__all__ = ["AlexNet", "AlexNet_Weights", "alexnet"]
