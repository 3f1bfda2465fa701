"""RegNet (arXiv:2003.13678): widths and depths that follow a quantized line.

Source: https://docs.pytorch.org/vision/0.28/models/regnet.html
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._utils import _make_divisible
from torchlab.vision.models._weights import NEW_RECIPE, builder, imagenet
from torchlab.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from torchlab.vision.transforms.functional import InterpolationMode

Layer = Callable[..., nn.Module]


class SimpleStemIN(Conv2dNormActivation):
    """A 3×3 convolution that halves the size."""

    def __init__(
        self, width_in: int, width_out: int, norm_layer: Layer, activation_layer: Layer
    ) -> None:
        super().__init__(
            width_in, width_out, kernel_size=3, stride=2, norm_layer=norm_layer,
            activation_layer=activation_layer,
        )  # fmt: skip


class BottleneckTransform(nn.Sequential):
    """1×1, grouped 3×3, with `se_ratio` squeeze and excitation, 1×1."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Layer,
        activation_layer: Layer, group_width: int, bottleneck_multiplier: float,
        se_ratio: float | None,
    ) -> None:  # fmt: skip
        narrow = int(round(width_out * bottleneck_multiplier))
        facts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": activation_layer}
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["a"] = Conv2dNormActivation(width_in, narrow, kernel_size=1, **facts)
        layers["b"] = Conv2dNormActivation(
            narrow, narrow, kernel_size=3, stride=stride, groups=narrow // group_width, **facts
        )
        if se_ratio:
            # a share of the block's input, not of its own
            squeezed = int(round(se_ratio * width_in))
            layers["se"] = SqueezeExcitation(narrow, squeezed, activation=activation_layer)
        facts["activation_layer"] = None
        layers["c"] = Conv2dNormActivation(narrow, width_out, kernel_size=1, **facts)
        super().__init__(layers)


class ResBottleneckBlock(nn.Module):
    """BottleneckTransform beside a shortcut."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Layer,
        activation_layer: Layer, group_width: int = 1, bottleneck_multiplier: float = 1.0,
        se_ratio: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.proj: Any = None
        if width_in != width_out or stride != 1:
            self.proj = Conv2dNormActivation(
                width_in, width_out, kernel_size=1, stride=stride, norm_layer=norm_layer,
                activation_layer=None,
            )  # fmt: skip
        self.f = BottleneckTransform(
            width_in, width_out, stride, norm_layer, activation_layer, group_width,
            bottleneck_multiplier, se_ratio,
        )  # fmt: skip
        self.activation = activation_layer(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        beside = x if self.proj is None else self.proj(x)
        return self.activation(beside + self.f(x))


class AnyStage(nn.Sequential):
    """`depth` blocks of one width, the first of which strides."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, depth: int, block_constructor: Layer,
        norm_layer: Layer, activation_layer: Layer, group_width: int,
        bottleneck_multiplier: float, se_ratio: float | None = None, stage_index: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        for i in range(depth):
            block = block_constructor(
                width_out if i else width_in, width_out, 1 if i else stride, norm_layer,
                activation_layer, group_width, bottleneck_multiplier, se_ratio,
            )  # fmt: skip
            self.add_module(f"block{stage_index}-{i}", block)


class BlockParams:
    """What the stages are: lists with one entry for each."""

    def __init__(
        self, depths: list[int], widths: list[int], group_widths: list[int],
        bottleneck_multipliers: list[float], strides: list[int], se_ratio: float | None = None,
    ) -> None:  # fmt: skip
        self.depths = depths
        self.widths = widths
        self.group_widths = group_widths
        self.bottleneck_multipliers = bottleneck_multipliers
        self.strides = strides
        self.se_ratio = se_ratio

    @classmethod
    def from_init_params(
        cls, depth: int, w_0: int, w_a: float, w_m: float, group_width: int,
        bottleneck_multiplier: float = 1.0, se_ratio: float | None = None, **kwargs: Any,
    ) -> BlockParams:  # fmt: skip
        """Block j of `depth` would be w_0 + w_a · j wide; it is w_0 times the power of w_m that is
        nearest to that, a multiple of 8. ValueError for parameters of no such line."""
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8 != 0:
            raise ValueError("Invalid RegNet settings")
        quantized = []
        for j in range(depth):
            power = round(math.log((w_0 + w_a * j) / w_0) / math.log(w_m))
            quantized.append(8 * round(w_0 * w_m**power / 8))
        stages = [(width, len(list(same))) for width, same in groupby(quantized)]
        depths = [n for _, n in stages]
        multipliers = [bottleneck_multiplier] * len(stages)
        widths, groups = cls._adjust_widths_groups_compatibilty(
            [width for width, _ in stages], multipliers, [group_width] * len(stages)
        )
        return cls(depths, widths, groups, multipliers, [2] * len(stages), se_ratio)

    def _get_expanded_params(self) -> Iterator[tuple[int, int, int, int, float]]:
        return zip(
            self.widths, self.strides, self.depths, self.group_widths, self.bottleneck_multipliers,
            strict=False,
        )  # fmt: skip

    @staticmethod
    def _adjust_widths_groups_compatibilty(
        stage_widths: list[int], bottleneck_ratios: list[float], group_widths: list[int]
    ) -> tuple[list[int], list[int]]:
        """Groups no wider than a bottleneck, and bottlenecks of whole groups."""
        widths, groups = [], []
        for width, ratio, group in zip(stage_widths, bottleneck_ratios, group_widths, strict=True):
            narrow = int(width * ratio)
            groups.append(min(group, narrow))
            widths.append(int(_make_divisible(narrow, groups[-1]) / ratio))
        return widths, groups


class RegNet(nn.Module):
    """(N, 3, H, W) → (N, num_classes)."""

    def __init__(
        self, block_params: BlockParams, num_classes: int = 1000, stem_width: int = 32,
        stem_type: Layer | None = None, block_type: Layer | None = None,
        norm_layer: Layer | None = None, activation: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        stem_type = SimpleStemIN if stem_type is None else stem_type
        norm_layer = nn.BatchNorm2d if norm_layer is None else norm_layer
        block_type = ResBottleneckBlock if block_type is None else block_type
        activation = nn.ReLU if activation is None else activation
        self.stem = stem_type(3, stem_width, norm_layer, activation)
        stages: OrderedDict[str, nn.Module] = OrderedDict()
        width = stem_width
        for i, facts in enumerate(block_params._get_expanded_params()):
            out, stride, depth, group, multiplier = facts
            stages[f"block{i + 1}"] = AnyStage(
                width, out, stride, depth, block_type, norm_layer, activation, group, multiplier,
                block_params.se_ratio, stage_index=i + 1,
            )  # fmt: skip
            width = out
        self.trunk_output = nn.Sequential(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                # of all filters, though those of a group see only its channels
                fan_out = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
                nn.init.normal_(m.weight, mean=0.0, std=math.sqrt(2.0 / fan_out))
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.ones_(m.weight)
                nn.init.zeros_(m.bias)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0.0, std=0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(self.trunk_output(self.stem(x)))
        return self.fc(aten.flatten(x, 1))


class RegNet_Y_400MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_y_400mf-c65dace8", 224, (74.046, 91.716), 4344144, 0.402, 16.806, "#small-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_y_400mf-e6988f5f", (224, 232), (75.804, 92.742), 4344144, 0.402, 16.806,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_800MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_y_800mf-1b27b58c", 224, (76.42, 93.136), 6432512, 0.834, 24.774, "#small-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_y_800mf-58fc7688", (224, 232), (78.828, 94.502), 6432512, 0.834, 24.774,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_1_6GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_y_1_6gf-b11a554e", 224, (77.95, 93.966), 11202430, 1.612, 43.152, "#small-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_y_1_6gf-0d7bc02a", (224, 232), (80.876, 95.444), 11202430, 1.612, 43.152,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_3_2GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_y_3_2gf-b5a9779c", 224, (78.948, 94.576), 19436338, 3.176, 74.567, "#medium-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_y_3_2gf-9180c971", (224, 232), (81.982, 95.972), 19436338, 3.176, 74.567,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_8GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_y_8gf-d0d0e4a8", 224, (80.032, 95.048), 39381472, 8.473, 150.701, "#medium-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_y_8gf-dc2b1b54", (224, 232), (82.828, 96.33), 39381472, 8.473, 150.701,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_16GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_y_16gf-9e6ed7dd", 224, (80.424, 95.24), 83590140, 15.912, 319.49, "#large-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_y_16gf-3e4a00f9", (224, 232), (82.886, 96.328), 83590140, 15.912, 319.49,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    IMAGENET1K_SWAG_E2E_V1 = imagenet(
        "regnet_y_16gf_swag-43afe44d", (384, 384, InterpolationMode.BICUBIC), (86.012, 98.054),
        83590140, 46.735, 319.49, "https://github.com/facebookresearch/SWAG",
        docs="Trained on Instagram's images and tags (SWAG), then on ImageNet-1K end to end.",
        license="https://github.com/facebookresearch/SWAG/blob/main/LICENSE",
    )  # fmt: skip
    IMAGENET1K_SWAG_LINEAR_V1 = imagenet(
        "regnet_y_16gf_lc_swag-f3ec0043", (224, 224, InterpolationMode.BICUBIC), (83.976, 97.244),
        83590140, 15.912, 319.49, "pull/5793",
        docs="Trained on Instagram's images and tags (SWAG), then the last layer on ImageNet-1K.",
        license="https://github.com/facebookresearch/SWAG/blob/main/LICENSE",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_32GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_y_32gf-4dee3f7a", 224, (80.878, 95.34), 145046770, 32.28, 554.076, "#large-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_y_32gf-8db6d4b5", (224, 232), (83.368, 96.498), 145046770, 32.28, 554.076,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    IMAGENET1K_SWAG_E2E_V1 = imagenet(
        "regnet_y_32gf_swag-04fdfa75", (384, 384, InterpolationMode.BICUBIC), (86.838, 98.362),
        145046770, 94.826, 554.076, "https://github.com/facebookresearch/SWAG",
        docs="Trained on Instagram's images and tags (SWAG), then on ImageNet-1K end to end.",
        license="https://github.com/facebookresearch/SWAG/blob/main/LICENSE",
    )  # fmt: skip
    IMAGENET1K_SWAG_LINEAR_V1 = imagenet(
        "regnet_y_32gf_lc_swag-e1583746", (224, 224, InterpolationMode.BICUBIC), (84.622, 97.48),
        145046770, 32.28, 554.076, "pull/5793",
        docs="Trained on Instagram's images and tags (SWAG), then the last layer on ImageNet-1K.",
        license="https://github.com/facebookresearch/SWAG/blob/main/LICENSE",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_128GF_Weights(WeightsEnum):
    IMAGENET1K_SWAG_E2E_V1 = imagenet(
        "regnet_y_128gf_swag-c8ce3e52", (384, 384, InterpolationMode.BICUBIC), (88.228, 98.682),
        644812894, 374.57, 2461.564, "https://github.com/facebookresearch/SWAG",
        docs="Trained on Instagram's images and tags (SWAG), then on ImageNet-1K end to end.",
        license="https://github.com/facebookresearch/SWAG/blob/main/LICENSE",
    )  # fmt: skip
    IMAGENET1K_SWAG_LINEAR_V1 = imagenet(
        "regnet_y_128gf_lc_swag-cbe8ce12", (224, 224, InterpolationMode.BICUBIC), (86.068, 97.844),
        644812894, 127.518, 2461.564, "pull/5793",
        docs="Trained on Instagram's images and tags (SWAG), then the last layer on ImageNet-1K.",
        license="https://github.com/facebookresearch/SWAG/blob/main/LICENSE",
    )  # fmt: skip
    DEFAULT = IMAGENET1K_SWAG_E2E_V1


class RegNet_X_400MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_x_400mf-adf1edd5", 224, (72.834, 90.95), 5495976, 0.414, 21.258, "#small-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_x_400mf-62229a5f", (224, 232), (74.864, 92.322), 5495976, 0.414, 21.257,
        "issues/3995#new-recipe-with-fixres", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_X_800MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_x_800mf-ad17e45c", 224, (75.212, 92.348), 7259656, 0.8, 27.945, "#small-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_x_800mf-94a99ebd", (224, 232), (77.522, 93.826), 7259656, 0.8, 27.945,
        "issues/3995#new-recipe-with-fixres", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_X_1_6GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_x_1_6gf-e3633e7f", 224, (77.04, 93.44), 9190136, 1.603, 35.339, "#small-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_x_1_6gf-a12f2b72", (224, 232), (79.668, 94.922), 9190136, 1.603, 35.339,
        "issues/3995#new-recipe-with-fixres", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_X_3_2GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_x_3_2gf-f342aeae", 224, (78.364, 93.992), 15296552, 3.177, 58.756, "#medium-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_x_3_2gf-7071aa85", (224, 232), (81.196, 95.43), 15296552, 3.177, 58.756,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_X_8GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_x_8gf-03ceed89", 224, (79.344, 94.686), 39572648, 7.995, 151.456, "#medium-models"
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_x_8gf-2b70d774", (224, 232), (81.682, 95.678), 39572648, 7.995, 151.456,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_X_16GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_x_16gf-2007eb11", 224, (80.058, 94.944), 54278536, 15.941, 207.627,
        "#medium-models",
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_x_16gf-ba3796d7", (224, 232), (82.716, 96.196), 54278536, 15.941, 207.627,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


class RegNet_X_32GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "regnet_x_32gf-9d47f8d0", 224, (80.622, 95.248), 107811560, 31.736, 412.039,
        "#large-models",
    )  # fmt: skip
    IMAGENET1K_V2 = imagenet(
        "regnet_x_32gf-6eb8fdc6", (224, 232), (83.014, 96.288), 107811560, 31.736, 412.039,
        "issues/3995#new-recipe", docs=NEW_RECIPE,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V2


def _builder(kind: str, size: str, weights: type[WeightsEnum], *line: Any) -> Any:
    ratio = 0.25 if kind == "y" else None

    def make(**kwargs: Any) -> RegNet:
        # torchvision hands all arguments to both
        depth, w_0, w_a, w_m, width = line
        facts = {"se_ratio": ratio, **kwargs}
        return RegNet(BlockParams.from_init_params(depth, w_0, w_a, w_m, width, **facts), **kwargs)

    doc = f"RegNet{kind.upper()} {size.replace('_', '.')}"
    doc += ", with squeeze and excitation." if kind == "y" else "."
    return builder(f"regnet_{kind}_{size}", make, weights, doc)


# depth, w_0, w_a, w_m, group width
regnet_y_400mf = _builder("y", "400mf", RegNet_Y_400MF_Weights, 16, 48, 27.89, 2.09, 8)
regnet_y_800mf = _builder("y", "800mf", RegNet_Y_800MF_Weights, 14, 56, 38.84, 2.4, 16)
regnet_y_1_6gf = _builder("y", "1_6gf", RegNet_Y_1_6GF_Weights, 27, 48, 20.71, 2.65, 24)
regnet_y_3_2gf = _builder("y", "3_2gf", RegNet_Y_3_2GF_Weights, 21, 80, 42.63, 2.66, 24)
regnet_y_8gf = _builder("y", "8gf", RegNet_Y_8GF_Weights, 17, 192, 76.82, 2.19, 56)
regnet_y_16gf = _builder("y", "16gf", RegNet_Y_16GF_Weights, 18, 200, 106.23, 2.48, 112)
regnet_y_32gf = _builder("y", "32gf", RegNet_Y_32GF_Weights, 20, 232, 115.89, 2.53, 232)
regnet_y_128gf = _builder("y", "128gf", RegNet_Y_128GF_Weights, 27, 456, 160.83, 2.52, 264)
regnet_x_400mf = _builder("x", "400mf", RegNet_X_400MF_Weights, 22, 24, 24.48, 2.54, 16)
regnet_x_800mf = _builder("x", "800mf", RegNet_X_800MF_Weights, 16, 56, 35.73, 2.28, 16)
regnet_x_1_6gf = _builder("x", "1_6gf", RegNet_X_1_6GF_Weights, 18, 80, 34.01, 2.25, 24)
regnet_x_3_2gf = _builder("x", "3_2gf", RegNet_X_3_2GF_Weights, 25, 88, 26.31, 2.25, 48)
regnet_x_8gf = _builder("x", "8gf", RegNet_X_8GF_Weights, 23, 80, 49.56, 2.88, 120)
regnet_x_16gf = _builder("x", "16gf", RegNet_X_16GF_Weights, 22, 216, 55.59, 2.1, 128)
regnet_x_32gf = _builder("x", "32gf", RegNet_X_32GF_Weights, 23, 320, 69.86, 2.0, 168)

__all__ = [
    "RegNet", "RegNet_X_16GF_Weights", "RegNet_X_1_6GF_Weights", "RegNet_X_32GF_Weights",
    "RegNet_X_3_2GF_Weights", "RegNet_X_400MF_Weights", "RegNet_X_800MF_Weights",
    "RegNet_X_8GF_Weights", "RegNet_Y_128GF_Weights", "RegNet_Y_16GF_Weights",
    "RegNet_Y_1_6GF_Weights", "RegNet_Y_32GF_Weights", "RegNet_Y_3_2GF_Weights",
    "RegNet_Y_400MF_Weights", "RegNet_Y_800MF_Weights", "RegNet_Y_8GF_Weights", "regnet_x_16gf",
    "regnet_x_1_6gf", "regnet_x_32gf", "regnet_x_3_2gf", "regnet_x_400mf", "regnet_x_800mf",
    "regnet_x_8gf", "regnet_y_128gf", "regnet_y_16gf", "regnet_y_1_6gf", "regnet_y_32gf",
    "regnet_y_3_2gf", "regnet_y_400mf", "regnet_y_800mf", "regnet_y_8gf",
]  # fmt: skip
