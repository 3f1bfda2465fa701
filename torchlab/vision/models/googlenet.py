"""GoogLeNet (arXiv:1409.4842): blocks of branches with filters of several sizes, side by side.

The branch of 5×5 filters has 3×3 ones, as in torchvision, whose weights were trained so.

Source: https://docs.pytorch.org/vision/0.28/models/googlenet.html
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum, register_model
from torchlab.vision.models._utils import _ovewrite_named_param, handle_legacy_interface
from torchlab.vision.models._weights import PORTED, imagenet, loaded

Layer = Callable[..., nn.Module]


class GoogLeNetOutputs(NamedTuple):
    """The logits (N, num_classes), and in training those of the two heads in the middle."""

    logits: Tensor
    aux_logits2: Tensor | None
    aux_logits1: Tensor | None


_GoogLeNetOutputs = GoogLeNetOutputs


def renormalized(x: Tensor) -> Tensor:
    """Images (N, 3, H, W), normalized by ImageNet's means and deviations, by 0.5 and 0.5 instead:
    what the weights from TensorFlow expect."""
    facts: dict[str, Any] = {"dtype": x.dtype, "device": x.device}
    scale = aten.tensor([0.229 / 0.5, 0.224 / 0.5, 0.225 / 0.5], **facts)
    shift = aten.tensor([(m - 0.5) / 0.5 for m in (0.485, 0.456, 0.406)], **facts)
    return x[:, :3] * aten.reshape(scale, (1, 3, 1, 1)) + aten.reshape(shift, (1, 3, 1, 1))


def ask_for_init_weights(model: str) -> bool:
    """Warn that the caller has not said whether the weights are drawn anew; they are."""
    warnings.warn(
        f"The default weight initialization of {model} will be changed in future releases of"
        " torchvision. If you wish to keep the old behavior (which leads to long initialization"
        " times due to scipy/scipy#11299), please set init_weights=True.",
        FutureWarning,
        stacklevel=3,
    )
    return True


class BasicConv2d(nn.Module):
    """A convolution without bias, normalized, rectified."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)), inplace=True)


class Inception(nn.Module):
    """Four branches: 1×1; 1×1 and 3×3, twice; pooling and 1×1. (N, in_channels, H, W) → their
    channels one after the other."""

    def __init__(
        self, in_channels: int, ch1x1: int, ch3x3red: int, ch3x3: int, ch5x5red: int, ch5x5: int,
        pool_proj: int, conv_block: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        conv = BasicConv2d if conv_block is None else conv_block

        def narrow_wide(narrow: int, wide: int) -> nn.Sequential:
            return nn.Sequential(
                conv(in_channels, narrow, kernel_size=1),
                conv(narrow, wide, kernel_size=3, padding=1),
            )

        self.branch1 = conv(in_channels, ch1x1, kernel_size=1)
        self.branch2 = narrow_wide(ch3x3red, ch3x3)
        self.branch3 = narrow_wide(ch5x5red, ch5x5)
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True),
            conv(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        branches = (self.branch1, self.branch2, self.branch3, self.branch4)
        return aten.cat([branch(x) for branch in branches], 1)


class InceptionAux(nn.Module):
    """A head on a map in the middle: (N, in_channels, H, W) → (N, num_classes)."""

    def __init__(
        self, in_channels: int, num_classes: int, conv_block: Layer | None = None,
        dropout: float = 0.7,
    ) -> None:  # fmt: skip
        super().__init__()
        conv = BasicConv2d if conv_block is None else conv_block
        self.conv = conv(in_channels, 128, kernel_size=1)
        self.fc1 = nn.Linear(128 * 4 * 4, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = aten.flatten(self.conv(F.adaptive_avg_pool2d(x, (4, 4))), 1)
        return self.fc2(self.dropout(F.relu(self.fc1(x), inplace=True)))


# of each block: its name, and the widths of Inception
BLOCKS: dict[str, tuple[int, ...]] = {
    "inception3a": (192, 64, 96, 128, 16, 32, 32),
    "inception3b": (256, 128, 128, 192, 32, 96, 64),
    "inception4a": (480, 192, 96, 208, 16, 48, 64),
    "inception4b": (512, 160, 112, 224, 24, 64, 64),
    "inception4c": (512, 128, 128, 256, 24, 64, 64),
    "inception4d": (512, 112, 144, 288, 32, 64, 64),
    "inception4e": (528, 256, 160, 320, 32, 128, 128),
    "inception5a": (832, 256, 160, 320, 32, 128, 128),
    "inception5b": (832, 384, 192, 384, 48, 128, 128),
}
_POOLED = {"inception3b": ("maxpool3", 3), "inception4e": ("maxpool4", 2)}
"""The pooling after a block, and its size."""


class GoogLeNet(nn.Module):
    """(N, 3, H, W) → (N, num_classes); in training with `aux_logits` GoogLeNetOutputs.

    `blocks` has the classes of a convolution, a block and a head. FutureWarning without
    `init_weights`; ValueError for other than three `blocks`.
    """

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        init_weights: bool | None = None, blocks: list[Layer] | None = None,
        dropout: float = 0.2, dropout_aux: float = 0.7,
    ) -> None:  # fmt: skip
        super().__init__()
        kinds: Any = [BasicConv2d, Inception, InceptionAux] if blocks is None else blocks
        if init_weights is None:
            init_weights = ask_for_init_weights("GoogleNet")
        if len(kinds) != 3:
            raise ValueError(f"blocks length should be 3 instead of {len(kinds)}")
        conv, block, head = kinds
        self.aux_logits = aux_logits
        self.transform_input = transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        for name, widths in BLOCKS.items():
            setattr(self, name, block(*widths))
            if name in _POOLED:
                pool, size = _POOLED[name]
                setattr(self, pool, nn.MaxPool2d(size, stride=2, ceil_mode=True))
        self.aux1: Any = head(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2: Any = head(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        if init_weights:
            for m in self.modules():
                if isinstance(m, (nn.Conv2d, nn.Linear)):
                    nn.init.trunc_normal_(m.weight, mean=0.0, std=0.01, a=-2, b=2)
                elif isinstance(m, nn.BatchNorm2d):
                    nn.init.constant_(m.weight, 1)
                    nn.init.constant_(m.bias, 0)

    def forward(self, x: Tensor) -> Any:
        if self.transform_input:
            x = renormalized(x)
        x = self.maxpool1(self.conv1(x))
        x = self.maxpool2(self.conv3(self.conv2(x)))
        heads = {"inception4a": self.aux1, "inception4d": self.aux2}
        seen: dict[str, Tensor | None] = dict.fromkeys(heads)
        for name in BLOCKS:
            x = getattr(self, name)(x)
            if self.training and heads.get(name) is not None:
                seen[name] = heads[name](x)
            if name in _POOLED:
                x = getattr(self, _POOLED[name][0])(x)
        x = self.fc(self.dropout(aten.flatten(self.avgpool(x), 1)))
        if self.training and self.aux_logits:
            return GoogLeNetOutputs(x, seen["inception4d"], seen["inception4a"])
        return x


class GoogLeNet_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "googlenet-1378be20", 224, (69.778, 89.53), 6624904, 1.498, 49.731, "#googlenet",
        min_size=15, docs=PORTED,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


def fit_to_weights(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    """Set the arguments that trained weights fix; the head in the middle is in their files."""
    kwargs.setdefault("transform_input", True)
    _ovewrite_named_param(kwargs, "aux_logits", True)
    _ovewrite_named_param(kwargs, "init_weights", False)
    _ovewrite_named_param(kwargs, "num_classes", len(weights.meta["categories"]))


@register_model()
@handle_legacy_interface(weights=("pretrained", GoogLeNet_Weights.IMAGENET1K_V1))
def googlenet(
    *, weights: GoogLeNet_Weights | None = None, progress: bool = True, **kwargs: Any
) -> GoogLeNet:
    """GoogLeNet. With trained weights there are no heads in the middle unless `aux_logits`."""
    chosen = GoogLeNet_Weights.verify(weights)
    heads = kwargs.get("aux_logits", False)
    if chosen is None:
        return GoogLeNet(**kwargs)
    fit_to_weights(kwargs, chosen)
    model: GoogLeNet = loaded(GoogLeNet(**kwargs), chosen, progress)
    if heads:
        warnings.warn(
            "auxiliary heads in the pretrained googlenet model are NOT pretrained, so make sure to"
            " train them",
            stacklevel=2,
        )
    else:
        model.aux_logits = False
        model.aux1 = model.aux2 = None
    return model


__all__ = [
    "GoogLeNet", "GoogLeNetOutputs", "GoogLeNet_Weights", "_GoogLeNetOutputs", "googlenet",
]  # fmt: skip
