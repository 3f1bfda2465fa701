"""Swin transformer (arXiv:2103.14030) and V2 (arXiv:2111.09883): attention within windows that
shift from layer to layer.

Source: https://docs.pytorch.org/vision/0.28/models/swin_transformer.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from torchlab import fx, nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import builder, built, imagenet
from torchlab.vision.ops.misc import MLP, Permute
from torchlab.vision.ops.stochastic_depth import StochasticDepth
from torchlab.vision.transforms._image import InterpolationMode

Layer = Callable[..., nn.Module]


def _patch_merging_pad(x: Tensor) -> Tensor:
    """(…, H, W, C) → (…, ⌈H/2⌉, ⌈W/2⌉, 4C): neighbours of 2×2 side by side; odd sizes padded."""
    h, w = x.shape[-3:-1]
    x = F.pad(x, (0, 0, 0, w % 2, 0, h % 2))
    parts = [x[..., i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
    return aten.cat(parts, -1)


fx.wrap("_patch_merging_pad")  # these look at sizes, so that a trace keeps them whole


class PatchMerging(nn.Module):
    """Half the size, twice the channels: normalization before the linear layer."""

    def __init__(self, dim: int, norm_layer: Layer = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduction(self.norm(_patch_merging_pad(x)))


class PatchMergingV2(nn.Module):
    """As PatchMerging, with normalization after the linear layer."""

    def __init__(self, dim: int, norm_layer: Layer = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.reduction(_patch_merging_pad(x)))


def _windows(x: Tensor, window: tuple[int, int]) -> Tensor:
    """(N, H, W, C) → (N · windows, positions in a window, C)."""
    n, h, w, c = x.shape
    a, b = window
    x = aten.reshape(x, (n, h // a, a, w // b, b, c))
    return aten.reshape(aten.permute(x, (0, 1, 3, 2, 4, 5)), (-1, a * b, c))


def _mask(h: int, w: int, window: tuple[int, int], shift: list[int], like: Tensor) -> Tensor:
    """-100 between positions that only the shift has brought into one window, else 0:
    (windows, positions, positions)."""
    region = aten.zeros((h, w), dtype=like.dtype, device=like.device)
    number = 0
    for rows in ((0, -window[0]), (-window[0], -shift[0]), (-shift[0], None)):
        for columns in ((0, -window[1]), (-window[1], -shift[1]), (-shift[1], None)):
            region[rows[0] : rows[1], columns[0] : columns[1]] = number
            number += 1
    flat = aten.reshape(
        _windows(aten.reshape(region, (1, h, w, 1)), window), (-1, math.prod(window))
    )
    apart = aten.unsqueeze(flat, 1) - aten.unsqueeze(flat, 2)
    return aten.masked_fill(aten.masked_fill(apart, apart != 0, -100.0), apart == 0, 0.0)


def shifted_window_attention(
    input: Tensor, qkv_weight: Tensor, proj_weight: Tensor, relative_position_bias: Tensor,
    window_size: list[int], num_heads: int, shift_size: list[int],
    attention_dropout: float = 0.0, dropout: float = 0.0, qkv_bias: Tensor | None = None,
    proj_bias: Tensor | None = None, logit_scale: Tensor | None = None, training: bool = True,
) -> Tensor:  # fmt: skip
    """Attention within windows of (N, H, W, C), cut after a shift. With `logit_scale` by the cosine
    of queries and keys (V2)."""
    n, h, w, c = input.shape
    a, b = window_size
    bottom, right = (a - h % a) % a, (b - w % b) % b
    x = F.pad(input, (0, 0, 0, right, 0, bottom))
    high, wide = h + bottom, w + right
    shift = [
        0 if size >= full else s
        for s, size, full in zip(shift_size, window_size, (high, wide), strict=True)
    ]
    if sum(shift) > 0:
        x = aten.roll(x, (-shift[0], -shift[1]), (1, 2))
    count = (high // a) * (wide // b)
    x = _windows(x, (a, b))
    if logit_scale is not None and qkv_bias is not None:
        third = qkv_bias.numel() // 3
        qkv_bias = aten.clone(qkv_bias)
        qkv_bias[third : 2 * third].zero_()  # keys have no bias in V2
    qkv = F.linear(x, qkv_weight, qkv_bias)
    qkv = aten.reshape(qkv, (x.shape[0], x.shape[1], 3, num_heads, c // num_heads))
    q, k, v = aten.unbind(aten.permute(qkv, (2, 0, 3, 1, 4)), 0)
    if logit_scale is not None:
        attn = F.normalize(q, dim=-1) @ aten.transpose(F.normalize(k, dim=-1), -2, -1)
        attn = attn * aten.exp(aten.clamp(logit_scale, max=math.log(100.0)))
    else:
        attn = (q * (c // num_heads) ** -0.5) @ aten.transpose(k, -2, -1)
    attn = attn + relative_position_bias
    if sum(shift) > 0:
        mask = _mask(high, wide, (a, b), shift, x)
        size = x.shape[1]
        attn = aten.reshape(attn, (n, count, num_heads, size, size))
        attn = attn + aten.unsqueeze(aten.unsqueeze(mask, 1), 0)
        attn = aten.reshape(attn, (-1, num_heads, size, size))
    attn = F.dropout(F.softmax(attn, dim=-1), p=attention_dropout, training=training)
    x = aten.reshape(aten.transpose(attn @ v, 1, 2), (x.shape[0], x.shape[1], c))
    x = F.dropout(F.linear(x, proj_weight, proj_bias), p=dropout, training=training)
    x = aten.reshape(x, (n, high // a, wide // b, a, b, c))
    x = aten.reshape(aten.permute(x, (0, 1, 3, 2, 4, 5)), (n, high, wide, c))
    if sum(shift) > 0:
        x = aten.roll(x, (shift[0], shift[1]), (1, 2))
    return x[:, :h, :w, :].contiguous()


fx.wrap("shifted_window_attention")


def _get_relative_position_bias(table: Tensor, index: Tensor, window_size: list[int]) -> Tensor:
    size = window_size[0] * window_size[1]
    bias = aten.permute(aten.reshape(table[index], (size, size, -1)), (2, 0, 1)).contiguous()
    return aten.unsqueeze(bias, 0)


fx.wrap("_get_relative_position_bias")


class WindowAttention(nn.Module):
    """Attention in windows over `dims` dimensions, with a learned bias for every relative position.
    ValueError if the window or the shift has another number of sizes."""

    dims: int

    relative_position_bias_table: Tensor
    relative_position_index: Tensor

    def __init__(
        self, dim: int, window_size: list[int], shift_size: list[int], num_heads: int,
        qkv_bias: bool = True, proj_bias: bool = True, attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if len(window_size) != self.dims or len(shift_size) != self.dims:
            raise ValueError("window_size and shift_size must be of length 2")
        self.window_size = window_size
        self.shift_size = shift_size
        self.num_heads = num_heads
        self.attention_dropout = attention_dropout
        self.dropout = dropout
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self.define_relative_position_bias_table()
        self.define_relative_position_index()

    def define_relative_position_bias_table(self) -> None:
        """A row for each relative position, a column for each head."""
        rows = math.prod(2 * w - 1 for w in self.window_size)
        self.relative_position_bias_table = nn.Parameter(aten.zeros((rows, self.num_heads)))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def define_relative_position_index(self) -> None:
        """The row of each pair of positions in a window."""
        raise NotImplementedError(f"{type(self).__name__} has no index")


class ShiftedWindowAttention(WindowAttention):
    """Window attention over (N, H, W, C)."""

    dims = 2

    def define_relative_position_index(self) -> None:
        """The row of each pair of positions in a window."""
        a, b = self.window_size
        grid = aten.stack(aten.meshgrid(aten.arange(a), aten.arange(b), indexing="ij"))
        flat = aten.flatten(grid, 1)
        apart = aten.permute(aten.unsqueeze(flat, 2) - aten.unsqueeze(flat, 1), (1, 2, 0))
        index = (apart[:, :, 0] + (a - 1)) * (2 * b - 1) + (apart[:, :, 1] + (b - 1))
        self.register_buffer("relative_position_index", aten.flatten(index))

    def get_relative_position_bias(self) -> Tensor:
        """(1, heads, positions, positions)."""
        return _get_relative_position_bias(
            self.relative_position_bias_table, self.relative_position_index, self.window_size
        )

    def _attend(self, x: Tensor, by_cosine: bool) -> Tensor:
        bias = self.get_relative_position_bias()
        return shifted_window_attention(
            x, self.qkv.weight, self.proj.weight, bias,
            self.window_size, self.num_heads, list(self.shift_size), self.attention_dropout,
            self.dropout, self.qkv.bias, self.proj.bias, self.logit_scale if by_cosine else None,
            self.training,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return self._attend(x, False)


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """Attention by cosine, its bias from a small network of the relative position's logarithm."""

    relative_coords_table: Tensor

    def __init__(
        self, dim: int, window_size: list[int], shift_size: list[int], num_heads: int,
        qkv_bias: bool = True, proj_bias: bool = True, attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(
            dim, window_size, shift_size, num_heads, qkv_bias, proj_bias, attention_dropout,
            dropout,
        )  # fmt: skip
        self.logit_scale = nn.Parameter(aten.log(10 * aten.ones((num_heads, 1, 1))))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 512, bias=True),
            nn.ReLU(inplace=True),
            nn.Linear(512, num_heads, bias=False),
        )
        if qkv_bias:
            length = self.qkv.bias.numel() // 3
            self.qkv.bias[length : 2 * length].data.zero_()

    def define_relative_position_bias_table(self) -> None:
        """sign(d) · log₂(1 + |d|) / 3 of relative positions scaled to ±8."""
        a, b = self.window_size
        rows, columns = (aten.arange(-(n - 1), n, dtype=aten.zeros(0).dtype) for n in (a, b))
        grid = aten.stack(aten.meshgrid(rows, columns, indexing="ij"))
        table = aten.unsqueeze(aten.permute(grid, (1, 2, 0)).contiguous(), 0)
        table[:, :, :, 0] /= a - 1
        table[:, :, :, 1] /= b - 1
        table *= 8
        table = aten.sign(table) * aten.log2(aten.abs(table) + 1.0) / 3.0
        self.register_buffer("relative_coords_table", table)

    def get_relative_position_bias(self) -> Tensor:
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        bias = _get_relative_position_bias(table, self.relative_position_index, self.window_size)
        return 16 * aten.sigmoid(bias)

    def forward(self, x: Tensor) -> Tensor:
        return self._attend(x, True)


class SwinTransformerBlock(nn.Module):
    """Window attention and a small network, each after a normalization and beside a shortcut."""

    def __init__(
        self, dim: int, num_heads: int, window_size: list[int], shift_size: list[int],
        mlp_ratio: float = 4.0, dropout: float = 0.0, attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0, norm_layer: Layer = nn.LayerNorm,
        attn_layer: Layer = ShiftedWindowAttention,
    ) -> None:  # fmt: skip
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(
            dim, window_size, shift_size, num_heads, attention_dropout=attention_dropout,
            dropout=dropout,
        )  # fmt: skip
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(
            dim, [int(dim * mlp_ratio), dim], activation_layer=nn.GELU, inplace=None,
            dropout=dropout,
        )  # fmt: skip
        for m in self.mlp.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                if m.bias is not None:
                    nn.init.normal_(m.bias, std=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """As SwinTransformerBlock, with the normalizations after."""

    def __init__(
        self, dim: int, num_heads: int, window_size: list[int], shift_size: list[int],
        mlp_ratio: float = 4.0, dropout: float = 0.0, attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0, norm_layer: Layer = nn.LayerNorm,
        attn_layer: Layer = ShiftedWindowAttentionV2,
    ) -> None:  # fmt: skip
        super().__init__(
            dim, num_heads, window_size, shift_size, mlp_ratio, dropout, attention_dropout,
            stochastic_depth_prob, norm_layer, attn_layer,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


class SwinTransformer(nn.Module):
    """(N, 3, H, W) → (N, num_classes)."""

    def __init__(
        self, patch_size: list[int], embed_dim: int, depths: list[int], num_heads: list[int],
        window_size: list[int], mlp_ratio: float = 4.0, dropout: float = 0.0,
        attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.1,
        num_classes: int = 1000, norm_layer: Layer | None = None, block: Layer | None = None,
        downsample_layer: Layer = PatchMerging,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_classes = num_classes
        block = SwinTransformerBlock if block is None else block
        norm_layer = partial(nn.LayerNorm, eps=1e-5) if norm_layer is None else norm_layer
        a, b = patch_size
        layers: list[nn.Module] = [
            nn.Sequential(
                nn.Conv2d(3, embed_dim, kernel_size=(a, b), stride=(a, b)),
                Permute([0, 2, 3, 1]),
                norm_layer(embed_dim),
            )
        ]
        total, number = sum(depths), 0
        for i, depth in enumerate(depths):
            width = embed_dim * 2**i
            stage = []
            for j in range(depth):
                drop = stochastic_depth_prob * float(number) / (total - 1)
                shift = [0 if j % 2 == 0 else w // 2 for w in window_size]
                stage.append(
                    block(
                        width, num_heads[i], window_size=window_size, shift_size=shift,
                        mlp_ratio=mlp_ratio, dropout=dropout, attention_dropout=attention_dropout,
                        stochastic_depth_prob=drop, norm_layer=norm_layer,
                    )
                )  # fmt: skip
                number += 1
            layers.append(nn.Sequential(*stage))
            if i < len(depths) - 1:
                layers.append(downsample_layer(width, norm_layer))
        self.features = nn.Sequential(*layers)
        width = embed_dim * 2 ** (len(depths) - 1)
        self.norm = norm_layer(width)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(width, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.02)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


class Swin_T_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "swin_t-704ceda3", (224, 232, InterpolationMode.BICUBIC), (81.474, 95.776), 28288354, 4.491,
        108.19, "#swintransformer", min_size=224,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class Swin_S_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "swin_s-5e29d889", (224, 246, InterpolationMode.BICUBIC), (83.196, 96.36), 49606258, 8.741,
        189.786, "#swintransformer", min_size=224,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class Swin_B_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "swin_b-68c6b09e", (224, 238, InterpolationMode.BICUBIC), (83.582, 96.64), 87768224, 15.431,
        335.364, "#swintransformer", min_size=224,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class Swin_V2_T_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "swin_v2_t-b137f0e2", (256, 260, InterpolationMode.BICUBIC), (82.072, 96.132), 28351570,
        5.94, 108.626, "#swintransformer-v2", min_size=256,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class Swin_V2_S_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "swin_v2_s-637d8ceb", (256, 260, InterpolationMode.BICUBIC), (83.712, 96.816), 49737442,
        11.546, 190.675, "#swintransformer-v2", min_size=256,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class Swin_V2_B_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "swin_v2_b-781e5279", (256, 272, InterpolationMode.BICUBIC), (84.112, 96.864), 87930848,
        20.325, 336.372, "#swintransformer-v2", min_size=256,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


def _swin_transformer(
    patch_size: list[int], embed_dim: int, depths: list[int], num_heads: list[int],
    window_size: list[int], stochastic_depth_prob: float, weights: WeightsEnum | None,
    progress: bool, **kwargs: Any,
) -> SwinTransformer:  # fmt: skip
    """A Swin transformer of this shape with the weights."""
    make = partial(
        SwinTransformer, patch_size, embed_dim, depths, num_heads, window_size,
        stochastic_depth_prob=stochastic_depth_prob,
    )  # fmt: skip
    return built(make, weights, progress, kwargs)


def _builder(
    name: str, width: int, depths: list[int], heads: list[int], window: int, drop: float,
    weights: type[WeightsEnum],
) -> Any:  # fmt: skip
    v2 = "_v2_" in name

    def make(**kwargs: Any) -> SwinTransformer:
        facts: dict[str, Any] = {"stochastic_depth_prob": drop}
        if v2:
            facts |= {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2}
        return SwinTransformer([4, 4], width, depths, heads, [window] * 2, **{**facts, **kwargs})

    return builder(name, make, weights, f"Swin transformer{' V2' if v2 else ''}, {name[-1]}.")


_T, _S, _H = [2, 2, 6, 2], [2, 2, 18, 2], [3, 6, 12, 24]
swin_t = _builder("swin_t", 96, _T, _H, 7, 0.2, Swin_T_Weights)
swin_s = _builder("swin_s", 96, _S, _H, 7, 0.3, Swin_S_Weights)
swin_b = _builder("swin_b", 128, _S, [4, 8, 16, 32], 7, 0.5, Swin_B_Weights)
swin_v2_t = _builder("swin_v2_t", 96, _T, _H, 8, 0.2, Swin_V2_T_Weights)
swin_v2_s = _builder("swin_v2_s", 96, _S, _H, 8, 0.3, Swin_V2_S_Weights)
swin_v2_b = _builder("swin_v2_b", 128, _S, [4, 8, 16, 32], 8, 0.5, Swin_V2_B_Weights)

__all__ = [
    "SwinTransformer", "Swin_B_Weights", "Swin_S_Weights", "Swin_T_Weights", "Swin_V2_B_Weights",
    "Swin_V2_S_Weights", "Swin_V2_T_Weights", "swin_b", "swin_s", "swin_t", "swin_v2_b",
    "swin_v2_s", "swin_v2_t",
]  # fmt: skip
