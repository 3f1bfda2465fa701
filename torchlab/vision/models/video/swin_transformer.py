"""Video Swin transformer (arXiv:2106.13230): attention within windows of space and time that shift
from layer to layer.

Source: https://docs.pytorch.org/vision/0.28/models/video_swin_transformer.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from torchlab import fx, nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import PORTED, builder, known
from torchlab.vision.models.swin_transformer import (
    PatchMerging,
    SwinTransformerBlock,
    WindowAttention,
)
from torchlab.vision.transforms._presets import VideoClassification

Layer = Callable[..., nn.Module]
Size = tuple[int, int, int]


def _get_window_and_shift_size(
    shift_size: list[int], size_dhw: list[int], window_size: list[int]
) -> tuple[list[int], list[int]]:
    """No window longer than the map, and no shift where there is one window only."""
    window, shift = list(window_size), list(shift_size)
    for i, size in enumerate(size_dhw):
        if size <= window[i]:
            window[i], shift[i] = size, 0
    return window, shift


fx.wrap("_get_window_and_shift_size")  # these look at sizes, so that a trace keeps them whole


def _get_relative_position_bias(
    relative_position_bias_table: Tensor, relative_position_index: Tensor, window_size: list[int]
) -> Tensor:
    """(1, heads, positions, positions) for a window that may be smaller than the table's."""
    n = math.prod(window_size)
    bias = relative_position_bias_table[relative_position_index[:n, :n]]
    return aten.unsqueeze(aten.permute(bias, (2, 0, 1)).contiguous(), 0)


fx.wrap("_get_relative_position_bias")


def _compute_pad_size_3d(size_dhw: Size, patch_size: Size) -> Size:
    """What each size lacks to a multiple."""
    d, h, w = ((p - s % p) % p for s, p in zip(size_dhw, patch_size, strict=True))
    return d, h, w


fx.wrap("_compute_pad_size_3d")


def _windows(x: Tensor, window: list[int]) -> Tensor:
    """(N, D, H, W, C) → (N · windows, positions in a window, C)."""
    n, d, h, w, c = x.shape
    i, j, k = window
    x = aten.reshape(x, (n, d // i, i, h // j, j, w // k, k, c))
    return aten.reshape(aten.permute(x, (0, 1, 3, 5, 2, 4, 6, 7)), (-1, i * j * k, c))


def _compute_attention_mask_3d(
    x: Tensor, size_dhw: Size, window_size: list[int], shift_size: list[int]
) -> Tensor:
    """-100 between positions that only the shift has brought into one window, else 0:
    (windows, positions, positions)."""
    region = aten.zeros(size_dhw, dtype=x.dtype, device=x.device)
    cuts = [
        (slice(0, -w), slice(-w, -s), slice(-s, None))
        for w, s in zip(window_size, shift_size, strict=True)
    ]
    for number, place in enumerate(product(*cuts)):
        region[place] = number
    flat = _windows(aten.reshape(region, (1, *size_dhw, 1)), window_size)[..., 0]
    apart = aten.unsqueeze(flat, 1) - aten.unsqueeze(flat, 2)
    return aten.masked_fill(aten.zeros_like(apart), apart != 0, -100.0)


def shifted_window_attention_3d(
    input: Tensor, qkv_weight: Tensor, proj_weight: Tensor, relative_position_bias: Tensor,
    window_size: list[int], num_heads: int, shift_size: list[int],
    attention_dropout: float = 0.0, dropout: float = 0.0, qkv_bias: Tensor | None = None,
    proj_bias: Tensor | None = None, training: bool = True,
) -> Tensor:  # fmt: skip
    """Attention within windows of (N, D, H, W, C), cut after a shift."""
    n, d, h, w, c = input.shape
    back, bottom, right = _compute_pad_size_3d((d, h, w), tuple(window_size))  # type: ignore[arg-type]
    x = F.pad(input, (0, 0, 0, right, 0, bottom, 0, back))
    size = (d + back, h + bottom, w + right)
    shifted = sum(shift_size) > 0
    if shifted:
        x = aten.roll(x, [-s for s in shift_size], (1, 2, 3))
    windows = _windows(x, window_size)
    count, positions = windows.shape[0] // n, windows.shape[1]
    qkv = F.linear(windows, qkv_weight, qkv_bias)
    qkv = aten.reshape(qkv, (-1, positions, 3, num_heads, c // num_heads))
    q, k, v = aten.unbind(aten.permute(qkv, (2, 0, 3, 1, 4)), 0)
    attn = (q * (c // num_heads) ** -0.5) @ aten.transpose(k, -2, -1)
    attn = attn + relative_position_bias
    if shifted:
        mask = _compute_attention_mask_3d(x, size, window_size, shift_size)
        attn = aten.reshape(attn, (n, count, num_heads, positions, positions))
        attn = attn + aten.unsqueeze(aten.unsqueeze(mask, 1), 0)
        attn = aten.reshape(attn, (-1, num_heads, positions, positions))
    attn = F.dropout(F.softmax(attn, dim=-1), p=attention_dropout, training=training)
    made = aten.reshape(aten.transpose(attn @ v, 1, 2), (-1, positions, c))
    made = F.dropout(F.linear(made, proj_weight, proj_bias), p=dropout, training=training)
    grid = [s // p for s, p in zip(size, window_size, strict=True)]
    made = aten.reshape(made, (n, *grid, *window_size, c))
    made = aten.reshape(aten.permute(made, (0, 1, 4, 2, 5, 3, 6, 7)), (n, *size, c))
    if shifted:
        made = aten.roll(made, list(shift_size), (1, 2, 3))
    return made[:, :d, :h, :w, :].contiguous()


fx.wrap("shifted_window_attention_3d")


class ShiftedWindowAttention3d(WindowAttention):
    """Window attention over (N, T, H, W, C)."""

    dims = 3

    def define_relative_position_index(self) -> None:
        """The row of each pair of positions in a window: (positions, positions)."""
        a, b, c = self.window_size
        grid = aten.meshgrid([aten.arange(s) for s in (a, b, c)], indexing="ij")
        flat = aten.flatten(aten.stack(list(grid)), 1)
        apart = aten.unsqueeze(flat, 2) - aten.unsqueeze(flat, 1)
        row = (apart[0] + (a - 1)) * (2 * b - 1) + (apart[1] + (b - 1))
        index = row * (2 * c - 1) + (apart[2] + (c - 1))
        self.register_buffer("relative_position_index", index)

    def get_relative_position_bias(self, window_size: list[int]) -> Tensor:
        """(1, heads, positions, positions) for a window no larger than the own."""
        return _get_relative_position_bias(
            self.relative_position_bias_table, self.relative_position_index, window_size
        )

    def forward(self, x: Tensor) -> Tensor:
        _, d, h, w, _ = x.shape
        window, shift = _get_window_and_shift_size(self.shift_size, [d, h, w], self.window_size)
        return shifted_window_attention_3d(
            x, self.qkv.weight, self.proj.weight, self.get_relative_position_bias(window), window,
            self.num_heads, shift, self.attention_dropout, self.dropout, self.qkv.bias,
            self.proj.bias, self.training,
        )  # fmt: skip


class PatchEmbed3d(nn.Module):
    """(N, C, T, H, W) → (N, ⌈T/a⌉, ⌈H/b⌉, ⌈W/c⌉, embed_dim): a vector for each patch."""

    def __init__(
        self, patch_size: list[int], in_channels: int = 3, embed_dim: int = 96,
        norm_layer: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        a, b, c = patch_size
        self.tuple_patch_size = (a, b, c)
        self.proj = nn.Conv3d(
            in_channels, embed_dim, kernel_size=self.tuple_patch_size, stride=self.tuple_patch_size
        )
        self.norm: nn.Module = nn.Identity() if norm_layer is None else norm_layer(embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        t, h, w = x.shape[2:]
        back, bottom, right = _compute_pad_size_3d((t, h, w), self.tuple_patch_size)
        x = self.proj(F.pad(x, (0, right, 0, bottom, 0, back)))
        return self.norm(aten.permute(x, (0, 2, 3, 4, 1)))


class SwinTransformer3d(nn.Module):
    """(N, 3, T, H, W) → (N, num_classes)."""

    def __init__(
        self, patch_size: list[int], embed_dim: int, depths: list[int], num_heads: list[int],
        window_size: list[int], mlp_ratio: float = 4.0, dropout: float = 0.0,
        attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.1,
        num_classes: int = 400, norm_layer: Layer | None = None, block: Layer | None = None,
        downsample_layer: Layer = PatchMerging, patch_embed: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_classes = num_classes
        if block is None:
            block = partial(SwinTransformerBlock, attn_layer=ShiftedWindowAttention3d)
        norm_layer = partial(nn.LayerNorm, eps=1e-5) if norm_layer is None else norm_layer
        patch_embed = PatchEmbed3d if patch_embed is None else patch_embed
        self.patch_embed = patch_embed(
            patch_size=patch_size, embed_dim=embed_dim, norm_layer=norm_layer
        )
        self.pos_drop = nn.Dropout(p=dropout)
        layers: list[nn.Module] = []
        total, number, width = sum(depths), 0, embed_dim
        for i, depth in enumerate(depths):
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
                width *= 2
        self.features = nn.Sequential(*layers)
        self.num_features = width
        self.norm = norm_layer(width)
        self.avgpool = nn.AdaptiveAvgPool3d(1)
        self.head = nn.Linear(width, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.02)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.features(self.pos_drop(self.patch_embed(x))))
        x = self.avgpool(aten.permute(x, (0, 4, 1, 2, 3)))
        return self.head(aten.flatten(x, 1))


_IMAGES: dict[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
_PRESET = partial(VideoClassification, crop_size=(224, 224), resize_size=(256,), **_IMAGES)


class Swin3D_T_Weights(WeightsEnum):
    KINETICS400_V1 = known(
        "swin3d_t-7615ae03",
        _PRESET,
        {"Kinetics-400": {"acc@1": 77.715, "acc@5": 93.519}}, 28158070, 43.882, 121.543,
        "https://github.com/SwinTransformer/Video-Swin-Transformer#kinetics-400",
        classes="kinetics400", docs=PORTED, min_temporal_size=1,
    )  # fmt: skip
    DEFAULT = KINETICS400_V1


class Swin3D_S_Weights(WeightsEnum):
    KINETICS400_V1 = known(
        "swin3d_s-da41c237",
        _PRESET,
        {"Kinetics-400": {"acc@1": 79.521, "acc@5": 94.158}}, 49816678, 82.841, 218.288,
        "https://github.com/SwinTransformer/Video-Swin-Transformer#kinetics-400",
        classes="kinetics400", docs=PORTED, min_temporal_size=1,
    )  # fmt: skip
    DEFAULT = KINETICS400_V1


class Swin3D_B_Weights(WeightsEnum):
    KINETICS400_V1 = known(
        "swin3d_b_1k-24f7c7c6",
        _PRESET,
        {"Kinetics-400": {"acc@1": 79.427, "acc@5": 94.386}}, 88048984, 140.667, 364.134,
        "https://github.com/SwinTransformer/Video-Swin-Transformer#kinetics-400",
        classes="kinetics400", docs=PORTED, min_temporal_size=1,
    )  # fmt: skip
    KINETICS400_IMAGENET22K_V1 = known(
        "swin3d_b_22k-7c6ae6fa",
        _PRESET,
        {"Kinetics-400": {"acc@1": 81.643, "acc@5": 95.574}}, 88048984, 140.667, 364.134,
        "https://github.com/SwinTransformer/Video-Swin-Transformer#kinetics-400",
        classes="kinetics400", docs=PORTED, min_temporal_size=1,
    )  # fmt: skip
    DEFAULT = KINETICS400_V1


def _builder(
    size: str, width: int, depth: int, heads: list[int], weights: type[WeightsEnum]
) -> Any:
    def make(**kwargs: Any) -> SwinTransformer3d:
        facts: dict[str, Any] = {"stochastic_depth_prob": 0.1, **kwargs}
        return SwinTransformer3d([2, 4, 4], width, [2, 2, depth, 2], heads, [8, 7, 7], **facts)

    return builder(f"swin3d_{size}", make, weights, f"Video Swin transformer, {size}.")


swin3d_t = _builder("t", 96, 6, [3, 6, 12, 24], Swin3D_T_Weights)
swin3d_s = _builder("s", 96, 18, [3, 6, 12, 24], Swin3D_S_Weights)
swin3d_b = _builder("b", 128, 18, [4, 8, 16, 32], Swin3D_B_Weights)

__all__ = [
    "Swin3D_B_Weights", "Swin3D_S_Weights", "Swin3D_T_Weights", "SwinTransformer3d", "swin3d_b",
    "swin3d_s", "swin3d_t",
]  # fmt: skip
