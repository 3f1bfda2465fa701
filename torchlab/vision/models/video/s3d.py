"""S3D (arXiv:1712.04851): GoogLeNet's blocks, with filters in space and then in time.

Source: https://docs.pytorch.org/vision/0.28/models/video_s3d.html
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import builder, known
from torchlab.vision.models.googlenet import BLOCKS
from torchlab.vision.ops.misc import Conv3dNormActivation
from torchlab.vision.transforms._presets import VideoClassification

Norm = Callable[..., nn.Module]


class TemporalSeparableConv(nn.Sequential):
    """1×k×k filters, then k×1×1 ones."""

    def __init__(
        self, in_planes: int, out_planes: int, kernel_size: int, stride: int, padding: int,
        norm_layer: Norm,
    ) -> None:  # fmt: skip
        k, s, p = kernel_size, stride, padding
        facts: dict[str, Any] = {"bias": False, "norm_layer": norm_layer}
        super().__init__(
            Conv3dNormActivation(in_planes, out_planes, (1, k, k), (1, s, s), (0, p, p), **facts),
            Conv3dNormActivation(out_planes, out_planes, (k, 1, 1), (s, 1, 1), (p, 0, 0), **facts),
        )


class SepInceptionBlock3D(nn.Module):
    """Four branches: 1×1×1; 1×1×1 and separated 3×3×3, twice; pooling and 1×1×1."""

    def __init__(
        self, in_planes: int, b0_out: int, b1_mid: int, b1_out: int, b2_mid: int, b2_out: int,
        b3_out: int, norm_layer: Norm,
    ) -> None:  # fmt: skip
        super().__init__()

        def one(width: int) -> nn.Module:
            return Conv3dNormActivation(
                in_planes, width, kernel_size=1, stride=1, norm_layer=norm_layer
            )

        self.branch0 = one(b0_out)
        self.branch1 = nn.Sequential(
            one(b1_mid), TemporalSeparableConv(b1_mid, b1_out, 3, 1, 1, norm_layer)
        )
        self.branch2 = nn.Sequential(
            one(b2_mid), TemporalSeparableConv(b2_mid, b2_out, 3, 1, 1, norm_layer)
        )
        self.branch3 = nn.Sequential(
            nn.MaxPool3d(kernel_size=(3, 3, 3), stride=1, padding=1), one(b3_out)
        )

    def forward(self, x: Tensor) -> Tensor:
        branches = (self.branch0, self.branch1, self.branch2, self.branch3)
        return aten.cat([branch(x) for branch in branches], 1)


def _halved() -> nn.MaxPool3d:
    return nn.MaxPool3d(kernel_size=(1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1))


_POOLED = {
    "inception3b": lambda: nn.MaxPool3d(kernel_size=(3, 3, 3), stride=(2, 2, 2), padding=(1, 1, 1)),
    "inception4e": lambda: nn.MaxPool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2), padding=(0, 0, 0)),
}


class S3D(nn.Module):
    """(N, 3, T, H, W), at least 14 frames of 224×224, → (N, num_classes)."""

    def __init__(
        self, num_classes: int = 400, dropout: float = 0.2, norm_layer: Norm | None = None
    ) -> None:
        super().__init__()
        norm = partial(nn.BatchNorm3d, eps=0.001, momentum=0.001)
        made: Norm = norm if norm_layer is None else norm_layer
        layers: list[nn.Module] = [
            TemporalSeparableConv(3, 64, 7, 2, 3, made),
            _halved(),
            Conv3dNormActivation(64, 64, kernel_size=1, stride=1, norm_layer=made),
            TemporalSeparableConv(64, 192, 3, 1, 1, made),
            _halved(),
        ]
        for name, widths in BLOCKS.items():
            block: Any = partial(SepInceptionBlock3D, norm_layer=made)
            layers.append(block(*widths))
            if name in _POOLED:
                layers.append(_POOLED[name]())
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AvgPool3d(kernel_size=(2, 7, 7), stride=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout),
            nn.Conv3d(1024, num_classes, kernel_size=1, stride=1, bias=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        return aten.mean(self.classifier(self.avgpool(self.features(x))), [2, 3, 4])


class S3D_Weights(WeightsEnum):
    KINETICS400_V1 = known(
        "s3d-d76dad2f", partial(VideoClassification, crop_size=(224, 224), resize_size=(256, 256)),
        {"Kinetics-400": {"acc@1": 68.368, "acc@5": 88.05}}, 8320048, 17.979, 31.972,
        "tree/main/references/video_classification#s3d", classes="kinetics400", min_size=224,
        min_temporal_size=14,
    )  # fmt: skip
    DEFAULT = KINETICS400_V1


s3d = builder("s3d", S3D, S3D_Weights, "S3D.")

__all__ = ["S3D", "S3D_Weights", "s3d"]
