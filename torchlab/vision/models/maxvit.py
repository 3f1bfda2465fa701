"""MaxViT (arXiv:2204.01697): convolutions, attention within windows, and attention across a grid.

Source: https://docs.pytorch.org/vision/0.28/models/maxvit.html
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import builder, imagenet
from torchlab.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from torchlab.vision.ops.stochastic_depth import StochasticDepth
from torchlab.vision.transforms.functional import InterpolationMode

Layer = Callable[..., nn.Module]
Size = tuple[int, int]


def _halved(size: Size) -> Size:
    """The size after a 3×3 convolution with stride 2 and padding 1."""
    return (size[0] - 1) // 2 + 1, (size[1] - 1) // 2 + 1


def _make_block_input_shapes(input_size: Size, n_blocks: int) -> list[Size]:
    """The sizes of the maps in `n_blocks` blocks: the stem and each block halve them."""
    shapes = [_halved(input_size)]
    while len(shapes) <= n_blocks:
        shapes.append(_halved(shapes[-1]))
    return shapes[1:]


def _get_relative_position_index(height: int, width: int) -> Tensor:
    """The number of the relative position of each pair of positions: (H · W, H · W)."""
    grid = aten.stack(aten.meshgrid(aten.arange(height), aten.arange(width), indexing="ij"))
    flat = aten.flatten(grid, 1)
    apart = aten.unsqueeze(flat, 2) - aten.unsqueeze(flat, 1)
    return (apart[0] + (height - 1)) * (2 * width - 1) + (apart[1] + (width - 1))


class MBConv(nn.Module):
    """Normalize, widen by 1×1, filter each channel by 3×3, weigh the channels, narrow by 1×1;
    beside a shortcut."""

    def __init__(
        self, in_channels: int, out_channels: int, expansion_ratio: float, squeeze_ratio: float,
        stride: int, activation_layer: Layer, norm_layer: Layer,
        p_stochastic_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.proj: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            proj: list[nn.Module] = [nn.Conv2d(in_channels, out_channels, 1, stride=1, bias=True)]
            if stride == 2:
                proj.insert(0, nn.AvgPool2d(kernel_size=3, stride=stride, padding=1))
            self.proj = nn.Sequential(*proj)
        p = p_stochastic_dropout
        self.stochastic_depth = StochasticDepth(p, mode="row") if p else nn.Identity()
        wide, squeezed = int(out_channels * expansion_ratio), int(out_channels * squeeze_ratio)
        facts: dict[str, Any] = {
            "activation_layer": activation_layer, "norm_layer": norm_layer, "inplace": None,
        }  # fmt: skip
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["pre_norm"] = norm_layer(in_channels)
        layers["conv_a"] = Conv2dNormActivation(in_channels, wide, 1, 1, 0, **facts)
        layers["conv_b"] = Conv2dNormActivation(wide, wide, 3, stride, 1, groups=wide, **facts)
        layers["squeeze_excitation"] = SqueezeExcitation(wide, squeezed, activation=nn.SiLU)
        layers["conv_c"] = nn.Conv2d(wide, out_channels, kernel_size=1, bias=True)
        self.layers = nn.Sequential(layers)

    def forward(self, x: Tensor) -> Tensor:
        beside = self.proj(x)
        return beside + self.stochastic_depth(self.layers(x))


class RelativePositionalMultiHeadAttention(nn.Module):
    """Attention among the positions of each group, with a learned bias for every relative
    position: (N, groups, positions, feat_dim) → the same.

    ValueError if the heads do not divide the features.
    """

    relative_position_bias_table: Tensor
    relative_position_index: Tensor

    def __init__(self, feat_dim: int, head_dim: int, max_seq_len: int) -> None:
        super().__init__()
        if feat_dim % head_dim != 0:
            raise ValueError(f"feat_dim: {feat_dim} must be divisible by head_dim: {head_dim}")
        self.n_heads = feat_dim // head_dim
        self.head_dim = head_dim
        self.size = int(max_seq_len**0.5)
        self.max_seq_len = max_seq_len
        self.to_qkv = nn.Linear(feat_dim, self.n_heads * head_dim * 3)
        self.scale_factor = feat_dim**-0.5
        self.merge = nn.Linear(head_dim * self.n_heads, feat_dim)
        rows = (2 * self.size - 1) ** 2
        self.relative_position_bias_table = nn.Parameter(aten.zeros((rows, self.n_heads)))
        index = _get_relative_position_index(self.size, self.size)
        self.register_buffer("relative_position_index", index)
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def get_relative_positional_bias(self) -> Tensor:
        """(1, heads, positions, positions)."""
        bias = self.relative_position_bias_table[self.relative_position_index]
        return aten.unsqueeze(aten.permute(bias, (2, 0, 1)).contiguous(), 0)

    def forward(self, x: Tensor) -> Tensor:
        n, groups, positions, width = x.shape
        split = aten.reshape(self.to_qkv(x), (n, groups, positions, 3, self.n_heads, self.head_dim))
        q, k, v = aten.unbind(aten.permute(split, (3, 0, 1, 4, 2, 5)), 0)
        weights = q @ aten.transpose(k * self.scale_factor, -2, -1)
        weights = F.softmax(weights + self.get_relative_positional_bias(), dim=-1)
        out = aten.permute(weights @ v, (0, 1, 3, 2, 4))
        return self.merge(aten.reshape(out, (n, groups, positions, width)))


class SwapAxes(nn.Module):
    """`x` with the dimensions a and b exchanged."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.a = a
        self.b = b

    def forward(self, x: Tensor) -> Tensor:
        return aten.transpose(x, self.a, self.b)


class WindowPartition(nn.Module):
    """(N, C, H, W) → (N, windows of p×p, p · p, C)."""

    def forward(self, x: Tensor, p: int) -> Tensor:
        n, c, h, w = x.shape
        x = aten.reshape(x, (n, c, h // p, p, w // p, p))
        return aten.reshape(aten.permute(x, (0, 2, 4, 3, 5, 1)), (n, -1, p * p, c))


class WindowDepartition(nn.Module):
    """What WindowPartition was given."""

    def forward(self, x: Tensor, p: int, h_partitions: int, w_partitions: int) -> Tensor:
        n, _, _, c = x.shape
        x = aten.reshape(x, (n, h_partitions, w_partitions, p, p, c))
        x = aten.permute(x, (0, 5, 1, 3, 2, 4))
        return aten.reshape(x, (n, c, h_partitions * p, w_partitions * p))


class PartitionAttentionLayer(nn.Module):
    """Attention and a small network within each part of a map of `grid_size`: "window": p×p
    neighbours; "grid": p×p positions that are evenly spread.

    ValueError for another type of parts.
    """

    def __init__(
        self, in_channels: int, head_dim: int, partition_size: int, partition_type: str,
        grid_size: Size, mlp_ratio: int, activation_layer: Layer, norm_layer: Layer,
        attention_dropout: float, mlp_dropout: float, p_stochastic_dropout: float,
    ) -> None:  # fmt: skip
        super().__init__()
        self.n_heads = in_channels // head_dim
        self.head_dim = head_dim
        self.n_partitions = grid_size[0] // partition_size
        self.partition_type = partition_type
        self.grid_size = grid_size
        if partition_type not in ("grid", "window"):
            raise ValueError("partition_type must be either 'grid' or 'window'")
        window = partition_type == "window"
        sizes = (partition_size, self.n_partitions)
        self.p, self.g = sizes if window else sizes[::-1]
        self.partition_op = WindowPartition()
        self.departition_op = WindowDepartition()
        self.partition_swap = nn.Identity() if window else SwapAxes(-2, -3)
        self.departition_swap = nn.Identity() if window else SwapAxes(-2, -3)
        self.attn_layer = nn.Sequential(
            norm_layer(in_channels),
            RelativePositionalMultiHeadAttention(in_channels, head_dim, partition_size**2),
            nn.Dropout(attention_dropout),
        )
        self.mlp_layer = nn.Sequential(
            nn.LayerNorm(in_channels),
            nn.Linear(in_channels, in_channels * mlp_ratio),
            activation_layer(),
            nn.Linear(in_channels * mlp_ratio, in_channels),
            nn.Dropout(mlp_dropout),
        )
        self.stochastic_dropout = StochasticDepth(p_stochastic_dropout, mode="row")

    def forward(self, x: Tensor) -> Tensor:
        high, wide = self.grid_size[0] // self.p, self.grid_size[1] // self.p
        if self.grid_size[0] % self.p or self.grid_size[1] % self.p:
            raise AssertionError(
                "Grid size must be divisible by partition size. Got grid size of"
                f" {self.grid_size} and partition size of {self.p}"
            )
        x = self.partition_swap(self.partition_op(x, self.p))
        x = x + self.stochastic_dropout(self.attn_layer(x))
        x = x + self.stochastic_dropout(self.mlp_layer(x))
        return self.departition_op(self.departition_swap(x), self.p, high, wide)


class MaxVitLayer(nn.Module):
    """A convolution, attention within windows, attention across the grid."""

    def __init__(
        self, in_channels: int, out_channels: int, squeeze_ratio: float, expansion_ratio: float,
        stride: int, norm_layer: Layer, activation_layer: Layer, head_dim: int, mlp_ratio: int,
        mlp_dropout: float, attention_dropout: float, p_stochastic_dropout: float,
        partition_size: int, grid_size: Size,
    ) -> None:  # fmt: skip
        super().__init__()
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["MBconv"] = MBConv(
            in_channels, out_channels, expansion_ratio, squeeze_ratio, stride, activation_layer,
            norm_layer, p_stochastic_dropout,
        )  # fmt: skip
        for kind in ("window", "grid"):
            layers[f"{kind}_attention"] = PartitionAttentionLayer(
                out_channels, head_dim, partition_size, kind, grid_size, mlp_ratio,
                activation_layer, nn.LayerNorm, attention_dropout, mlp_dropout,
                p_stochastic_dropout,
            )  # fmt: skip
        self.layers = nn.Sequential(layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class MaxVitBlock(nn.Module):
    """`n_layers` layers, the first of which halves the size. ValueError for another number of
    probabilities `p_stochastic`."""

    def __init__(
        self, in_channels: int, out_channels: int, squeeze_ratio: float, expansion_ratio: float,
        norm_layer: Layer, activation_layer: Layer, head_dim: int, mlp_ratio: int,
        mlp_dropout: float, attention_dropout: float, partition_size: int, input_grid_size: Size,
        n_layers: int, p_stochastic: list[float],
    ) -> None:  # fmt: skip
        super().__init__()
        if len(p_stochastic) != n_layers:
            raise ValueError(
                f"p_stochastic must have length n_layers={n_layers}, got"
                f" p_stochastic={p_stochastic}."
            )
        self.layers = nn.ModuleList()
        self.grid_size = _halved(input_grid_size)
        for i, p in enumerate(p_stochastic):
            self.layers.append(
                MaxVitLayer(
                    out_channels if i else in_channels, out_channels, squeeze_ratio,
                    expansion_ratio, 1 if i else 2, norm_layer, activation_layer, head_dim,
                    mlp_ratio, mlp_dropout, attention_dropout, p, partition_size, self.grid_size,
                )
            )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class MaxVit(nn.Module):
    """(N, 3, H, W) → (N, num_classes), for images of `input_size` only.

    ValueError if the size of a block's maps is no multiple of `partition_size`.
    """

    def __init__(
        self, input_size: Size, stem_channels: int, partition_size: int,
        block_channels: list[int], block_layers: list[int], head_dim: int,
        stochastic_depth_prob: float, norm_layer: Layer | None = None,
        activation_layer: Layer = nn.GELU, squeeze_ratio: float = 0.25,
        expansion_ratio: float = 4, mlp_ratio: int = 4, mlp_dropout: float = 0.0,
        attention_dropout: float = 0.0, num_classes: int = 1000,
    ) -> None:  # fmt: skip
        super().__init__()
        if norm_layer is None:
            norm_layer = partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01)
        shapes = _make_block_input_shapes(input_size, len(block_channels))
        for i, shape in enumerate(shapes):
            if shape[0] % partition_size or shape[1] % partition_size:
                raise ValueError(
                    f"Input size {shape} of block {i} is not divisible by partition size"
                    f" {partition_size}. Consider changing the partition size or the input size."
                    f"\nCurrent configuration yields the following block input sizes: {shapes}."
                )
        facts: dict[str, Any] = {"inplace": None, "kernel_size": 3}
        first = Conv2dNormActivation(
            3, stem_channels, stride=2, norm_layer=norm_layer, activation_layer=activation_layer,
            bias=False, **facts,
        )  # fmt: skip
        second = Conv2dNormActivation(
            stem_channels, stem_channels, stride=1, norm_layer=None, activation_layer=None,
            bias=True, **facts,
        )  # fmt: skip
        self.stem = nn.Sequential(first, second)
        self.partition_size = partition_size
        self.blocks = nn.ModuleList()
        total = sum(block_layers)
        drops = [stochastic_depth_prob * i / max(total - 1, 1) for i in range(total)]
        width, size, start = stem_channels, _halved(input_size), 0
        for out, layers in zip(block_channels, block_layers, strict=True):
            block = MaxVitBlock(
                width, out, squeeze_ratio, expansion_ratio, norm_layer, activation_layer,
                head_dim, mlp_ratio, mlp_dropout, attention_dropout, partition_size, size, layers,
                drops[start : start + layers],
            )  # fmt: skip
            self.blocks.append(block)
            width, size, start = out, block.grid_size, start + layers
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, num_classes, bias=False),
        )
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                nn.init.normal_(m.weight, std=0.02)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(x)


class MaxVit_T_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "maxvit_t-bc5ab103", (224, 224, InterpolationMode.BICUBIC), (83.7, 96.722), 30919624, 5.558,
        118.769, "#maxvit", min_size=224,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


def _maxvit_t(**kwargs: Any) -> MaxVit:
    facts = {"input_size": (224, 224), **kwargs}
    return MaxVit(
        stem_channels=64, block_channels=[64, 128, 256, 512], block_layers=[2, 2, 5, 2],
        head_dim=32, stochastic_depth_prob=0.2, partition_size=7, **facts,
    )  # fmt: skip


maxvit_t = builder(
    "maxvit_t", _maxvit_t, MaxVit_T_Weights,
    "MaxViT-T, for images of 224×224 unless `input_size` says.",
)  # fmt: skip

__all__ = ["MaxVit", "MaxVit_T_Weights", "maxvit_t"]
