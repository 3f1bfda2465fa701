"""MNASNet (arXiv:1807.11626): inverted residuals whose kernels and widths were searched for.

Source: https://docs.pytorch.org/vision/0.28/models/mnasnet.html
"""

from __future__ import annotations

import warnings
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._utils import _make_divisible
from torchlab.vision.models._weights import builder, imagenet

_MOMENTUM = 1 - 0.9997
"""TensorFlow counts the share that stays."""


class _InvertedResidual(nn.Module):
    """Widen by 1×1, filter each channel, narrow by 1×1. ValueError for another stride than 1 or 2
    or another kernel than 3 or 5."""

    def __init__(
        self, in_ch: int, out_ch: int, kernel_size: int, stride: int, expansion_factor: int,
        bn_momentum: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        if kernel_size not in (3, 5):
            raise ValueError(f"kernel_size should be 3 or 5 instead of {kernel_size}")
        wide = in_ch * expansion_factor
        self.apply_residual = in_ch == out_ch and stride == 1
        self.layers = nn.Sequential(
            nn.Conv2d(in_ch, wide, 1, bias=False),
            nn.BatchNorm2d(wide, momentum=bn_momentum),
            nn.ReLU(inplace=True),
            nn.Conv2d(
                wide, wide, kernel_size, padding=kernel_size // 2, stride=stride, groups=wide,
                bias=False,
            ),
            nn.BatchNorm2d(wide, momentum=bn_momentum),
            nn.ReLU(inplace=True),
            nn.Conv2d(wide, out_ch, 1, bias=False),
            nn.BatchNorm2d(out_ch, momentum=bn_momentum),
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        made = self.layers(input)
        return made + input if self.apply_residual else made


def _stack(
    in_ch: int, out_ch: int, kernel_size: int, stride: int, exp_factor: int, repeats: int,
    bn_momentum: float,
) -> nn.Sequential:  # fmt: skip
    """Blocks of one width, the first of which may stride."""
    if repeats < 1:
        raise ValueError(f"repeats should be >= 1, instead got {repeats}")
    blocks = [_InvertedResidual(in_ch, out_ch, kernel_size, stride, exp_factor, bn_momentum)]
    for _ in range(1, repeats):
        blocks.append(_InvertedResidual(out_ch, out_ch, kernel_size, 1, exp_factor, bn_momentum))
    return nn.Sequential(*blocks)


# kernel, stride, expansion, repeats
_STACKS = [(3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1)]
_WIDTHS = [32, 16, 24, 40, 80, 96, 192, 320]


def _get_depths(alpha: float) -> list[int]:
    """The widths times `alpha`, multiples of 8."""
    return [_make_divisible(width * alpha, 8) for width in _WIDTHS]


def _stem(first: int, second: int) -> list[nn.Module]:
    return [
        nn.Conv2d(3, first, 3, padding=1, stride=2, bias=False),
        nn.BatchNorm2d(first, momentum=_MOMENTUM),
        nn.ReLU(inplace=True),
        nn.Conv2d(first, first, 3, padding=1, stride=1, groups=first, bias=False),
        nn.BatchNorm2d(first, momentum=_MOMENTUM),
        nn.ReLU(inplace=True),
        nn.Conv2d(first, second, 1, padding=0, stride=1, bias=False),
        nn.BatchNorm2d(second, momentum=_MOMENTUM),
    ]


class MNASNet(nn.Module):
    """(N, 3, H, W), H and W at least 32, → (N, num_classes). `alpha` scales the widths.

    ValueError for an alpha that is not positive.
    """

    _version = 2

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha = alpha
        self.num_classes = num_classes
        first, width, *widths = _get_depths(alpha)
        layers = _stem(first, width)
        for (kernel, stride, expansion, repeats), out in zip(_STACKS, widths, strict=True):
            layers.append(_stack(width, out, kernel, stride, expansion, repeats, _MOMENTUM))
            width = out
        layers += [
            nn.Conv2d(width, 1280, 1, padding=0, stride=1, bias=False),
            nn.BatchNorm2d(1280, momentum=_MOMENTUM),
            nn.ReLU(inplace=True),
        ]
        self.layers = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes)
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.ones_(m.weight)
                nn.init.zeros_(m.bias)
            elif isinstance(m, nn.Linear):
                nn.init.kaiming_uniform_(m.weight, mode="fan_out", nonlinearity="sigmoid")
                nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(aten.mean(self.layers(x), [2, 3]))

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        if version not in (1, 2):
            raise ValueError(f"version should be set to 1 or 2 instead of {version}")
        if version == 1 and self.alpha != 1.0:
            # version 1 did not scale the first layers
            for i, layer in enumerate(_stem(32, 16)):
                self.layers[i] = layer
            first = _get_depths(self.alpha)[2]
            self.layers[8] = _stack(16, first, *_STACKS[0], _MOMENTUM)
            self._version = 1
            warnings.warn(
                "A new version of MNASNet model has been implemented. Your checkpoint was saved"
                " using the previous version. This checkpoint will load and work as before, but you"
                " may want to upgrade by training a newer model or transfer learning from an"
                " updated ImageNet checkpoint.",
                UserWarning,
                stacklevel=2,
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class MNASNet0_5_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "mnasnet0.5_top1_67.823-3ffadce67e", 224, (67.734, 87.49), 2218512, 0.104, 8.591,
        "https://github.com/1e100/mnasnet_trainer",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class MNASNet0_75_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "mnasnet0_75-7090bc5f", (224, 232), (71.18, 90.496), 3170208, 0.215, 12.303, "pull/6019"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class MNASNet1_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "mnasnet1.0_top1_73.512-f206786ef8", 224, (73.456, 91.51), 4383312, 0.314, 16.915,
        "https://github.com/1e100/mnasnet_trainer",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class MNASNet1_3_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "mnasnet1_3-a4c69d6f", (224, 232), (76.506, 93.522), 6282256, 0.526, 24.246, "pull/6019"
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


def _builder(alpha: float, weights: type[WeightsEnum]) -> Any:
    def make(**kwargs: Any) -> MNASNet:
        return MNASNet(alpha, **kwargs)

    name = f"mnasnet{str(alpha).replace('.', '_')}"
    return builder(name, make, weights, f"MNASNet, {alpha} times as wide.")


mnasnet0_5 = _builder(0.5, MNASNet0_5_Weights)
mnasnet0_75 = _builder(0.75, MNASNet0_75_Weights)
mnasnet1_0 = _builder(1.0, MNASNet1_0_Weights)
mnasnet1_3 = _builder(1.3, MNASNet1_3_Weights)

__all__ = [
    "MNASNet", "MNASNet0_5_Weights", "MNASNet0_75_Weights", "MNASNet1_0_Weights",
    "MNASNet1_3_Weights", "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3",
]  # fmt: skip
