"""MViT (arXiv:2104.11227) and MViTv2 (arXiv:2112.01526): attention whose queries, keys and values
are pooled, so that later blocks see fewer and wider positions.

Source: https://docs.pytorch.org/vision/0.28/models/video_mvit.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._weights import PORTED, builder, known
from torchlab.vision.ops.misc import MLP
from torchlab.vision.ops.stochastic_depth import StochasticDepth
from torchlab.vision.transforms._presets import VideoClassification

Layer = Callable[..., nn.Module]
Size = tuple[int, int, int]


@dataclass
class MSBlockConfig:
    """The facts of one block; kernels and strides of the poolings, three numbers each or none."""

    num_heads: int
    input_channels: int
    output_channels: int
    kernel_q: list[int]
    kernel_kv: list[int]
    stride_q: list[int]
    stride_kv: list[int]


def _unsqueeze(x: Tensor, target_dim: int, expand_dim: int) -> tuple[Tensor, int]:
    """`x` with one dimension more if it has one too few, and how many it had."""
    n = x.ndim
    if n == target_dim - 1:
        x = aten.unsqueeze(x, expand_dim)
    elif n != target_dim:
        raise ValueError(f"Unsupported input dimension {x.shape}")
    return x, n


class Pool(nn.Module):
    """`pool` on the positions (N, heads, 1 + T · H · W, C), all but the class's, as a map of size
    `thw`; gives them and the new size. Without heads too."""

    def __init__(
        self, pool: nn.Module, norm: nn.Module | None, activation: nn.Module | None = None,
        norm_before_pool: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.pool = pool
        layers = [layer for layer in (norm, activation) if layer is not None]
        self.norm_act = nn.Sequential(*layers) if layers else None
        self.norm_before_pool = norm_before_pool

    def forward(self, x: Tensor, thw: Size) -> tuple[Tensor, Size]:
        x, dims = _unsqueeze(x, 4, 1)
        token, x = x[:, :, :1], aten.transpose(x[:, :, 1:], 2, 3)
        n, heads, c = x.shape[:3]
        x = aten.reshape(x, (n * heads, c, *thw)).contiguous()
        if self.norm_act is not None and self.norm_before_pool:
            x = self.norm_act(x)
        x = self.pool(x)
        t, h, w = x.shape[2:]
        x = aten.transpose(aten.reshape(x, (n, heads, c, -1)), 2, 3)
        x = aten.cat([token, x], 2)
        if self.norm_act is not None and not self.norm_before_pool:
            x = self.norm_act(x)
        return (aten.squeeze(x, 1) if dims == 3 else x), (t, h, w)


def _interpolate(embedding: Tensor, d: int) -> Tensor:
    """(rows, C) → (d, C), between the rows."""
    if embedding.shape[0] == d:
        return embedding
    rows = aten.unsqueeze(aten.permute(embedding, (1, 0)), 0)
    return aten.permute(aten.squeeze(F.interpolate(rows, size=d, mode="linear"), 0), (1, 0))


def _relative(table: Tensor, q: int, k: int) -> Tensor:
    """The rows (q, k, C) for the distances between `q` queries and `k` keys along one side."""
    device = table.device
    q_ratio, k_ratio = max(k / q, 1.0), max(q / k, 1.0)  # of the coarser, a step is longer
    place = aten.unsqueeze(aten.arange(q, device=device), 1) * q_ratio
    other = (aten.unsqueeze(aten.arange(k, device=device), 0) + (1.0 - k)) * k_ratio
    return _interpolate(table, 2 * max(q, k) - 1)[(place - other).long()]


def _add_rel_pos(
    attn: Tensor, q: Tensor, q_thw: Size, k_thw: Size, rel_pos_h: Tensor, rel_pos_w: Tensor,
    rel_pos_t: Tensor,
) -> Tensor:  # fmt: skip
    """Add, in `attn` (N, heads, 1 + queries, 1 + keys), what queries and relative positions along
    each side have in common; the class has no position."""
    n, heads, _, c = q.shape
    tables = (rel_pos_t, rel_pos_h, rel_pos_w)
    rows = [_relative(t, a, b) for t, a, b in zip(tables, q_thw, k_thw, strict=True)]
    places = aten.reshape(q[:, :, 1:], (n, heads, *q_thw, c))
    time = aten.einsum("nathwc,tkc->nathwk", [places, rows[0]])
    high = aten.einsum("nathwc,hkc->nathwk", [places, rows[1]])
    wide = aten.einsum("nathwc,wkc->nathwk", [places, rows[2]])
    bias = high[..., None, :, None] + wide[..., None, None, :] + time[..., :, None, None]
    attn[:, :, 1:, 1:] += aten.reshape(bias, (n, heads, math.prod(q_thw), math.prod(k_thw)))
    return attn


def _add_shortcut(x: Tensor, shortcut: Tensor, residual_with_cls_embed: bool) -> Tensor:
    if residual_with_cls_embed:
        x.add_(shortcut)
    else:
        x[:, :, 1:, :] += shortcut[:, :, 1:, :]
    return x


class MultiscaleAttention(nn.Module):
    """(N, 1 + T · H · W, embed_dim) and its size → (N, 1 + fewer, output_dim) and the new size.

    With `residual_pool` the pooled queries are added to what is attended to.
    """

    def __init__(
        self, input_size: list[int], embed_dim: int, output_dim: int, num_heads: int,
        kernel_q: list[int], kernel_kv: list[int], stride_q: list[int], stride_kv: list[int],
        residual_pool: bool, residual_with_cls_embed: bool, rel_pos_embed: bool,
        dropout: float = 0.0, norm_layer: Layer = nn.LayerNorm,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embed_dim = embed_dim
        self.output_dim = output_dim
        self.num_heads = num_heads
        self.head_dim = output_dim // num_heads
        self.scaler = 1.0 / math.sqrt(self.head_dim)
        self.residual_pool = residual_pool
        self.residual_with_cls_embed = residual_with_cls_embed
        self.qkv = nn.Linear(embed_dim, 3 * output_dim)
        layers: list[nn.Module] = [nn.Linear(output_dim, output_dim)]
        if dropout > 0.0:
            layers.append(nn.Dropout(dropout, inplace=True))
        self.project = nn.Sequential(*layers)

        def pool(kernel: list[int], stride: list[int]) -> Pool | None:
            if math.prod(kernel) <= 1 and math.prod(stride) <= 1:
                return None
            conv = nn.Conv3d(
                self.head_dim, self.head_dim, tuple(kernel), stride=tuple(stride),
                padding=tuple(k // 2 for k in kernel), groups=self.head_dim, bias=False,
            )  # fmt: skip
            return Pool(conv, norm_layer(self.head_dim))

        self.pool_q = pool(kernel_q, stride_q)
        self.pool_k = pool(kernel_kv, stride_kv)
        self.pool_v = pool(kernel_kv, stride_kv)
        self.rel_pos_h: Any = None
        self.rel_pos_w: Any = None
        self.rel_pos_t: Any = None
        if rel_pos_embed:
            side = max(input_size[1:])
            sides = [side // stride[1] if stride else side for stride in (stride_q, stride_kv)]
            rows = {"h": max(sides), "w": max(sides), "t": input_size[0]}
            for name, n in rows.items():
                delattr(self, f"rel_pos_{name}")
                table = nn.Parameter(aten.zeros((2 * n - 1, self.head_dim)))
                setattr(self, f"rel_pos_{name}", table)
                nn.init.trunc_normal_(table, std=0.02)

    def forward(self, x: Tensor, thw: Size) -> tuple[Tensor, Size]:
        n, positions, _ = x.shape
        qkv = aten.reshape(self.qkv(x), (n, positions, 3, self.num_heads, self.head_dim))
        q, k, v = aten.unbind(aten.transpose(qkv, 1, 3), 2)
        k_thw = thw
        if self.pool_k is not None:
            k, k_thw = self.pool_k(k, thw)
        if self.pool_v is not None:
            v = self.pool_v(v, thw)[0]
        if self.pool_q is not None:
            q, thw = self.pool_q(q, thw)
        attn = (self.scaler * q) @ aten.transpose(k, 2, 3)
        if self.rel_pos_h is not None:
            tables = (self.rel_pos_h, self.rel_pos_w, self.rel_pos_t)
            attn = _add_rel_pos(attn, q, thw, k_thw, *tables)
        made = F.softmax(attn, dim=-1) @ v
        if self.residual_pool:
            _add_shortcut(made, q, self.residual_with_cls_embed)
        made = aten.reshape(aten.transpose(made, 1, 2), (n, -1, self.output_dim))
        return self.project(made), thw


class MultiscaleBlock(nn.Module):
    """Attention and a small network, each after a normalization and beside a shortcut. The channels
    change in the attention with `proj_after_attn`, else in the network."""

    def __init__(
        self, input_size: list[int], cnf: MSBlockConfig, residual_pool: bool,
        residual_with_cls_embed: bool, rel_pos_embed: bool, proj_after_attn: bool,
        dropout: float = 0.0, stochastic_depth_prob: float = 0.0,
        norm_layer: Layer = nn.LayerNorm,
    ) -> None:  # fmt: skip
        super().__init__()
        self.proj_after_attn = proj_after_attn
        self.pool_skip: Any = None
        if math.prod(cnf.stride_q) > 1:
            kernel = [s + 1 if s > 1 else s for s in cnf.stride_q]
            padding = [k // 2 for k in kernel]
            skip: Any = nn.MaxPool3d(kernel, stride=cnf.stride_q, padding=padding)  # type: ignore[arg-type]  # a list prints as torchvision's
            self.pool_skip = Pool(skip, None)
        inp, out = cnf.input_channels, cnf.output_channels
        width = out if proj_after_attn else inp
        self.norm1 = norm_layer(inp)
        self.norm2 = norm_layer(width)
        self.needs_transposal = isinstance(self.norm1, nn.BatchNorm1d)
        self.attn = MultiscaleAttention(
            input_size, inp, width, cnf.num_heads, cnf.kernel_q, cnf.kernel_kv, cnf.stride_q,
            cnf.stride_kv, residual_pool, residual_with_cls_embed, rel_pos_embed, dropout,
            norm_layer,
        )  # fmt: skip
        self.mlp = MLP(
            width, [4 * width, out], activation_layer=nn.GELU, dropout=dropout, inplace=None
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.project: Any = nn.Linear(inp, out) if inp != out else None

    def _normalized(self, norm: nn.Module, x: Tensor) -> Tensor:
        if self.needs_transposal:
            return aten.transpose(norm(aten.transpose(x, 1, 2)), 1, 2)
        return norm(x)

    def forward(self, x: Tensor, thw: Size) -> tuple[Tensor, Size]:
        seen = self._normalized(self.norm1, x)
        attended, smaller = self.attn(seen, thw)
        if self.project is not None and self.proj_after_attn:
            x = self.project(seen)
        if self.pool_skip is not None:
            x = self.pool_skip(x, thw)[0]
        x = x + self.stochastic_depth(attended)
        seen = self._normalized(self.norm2, x)
        if self.project is not None and not self.proj_after_attn:
            x = self.project(seen)
        return x + self.stochastic_depth(self.mlp(seen)), smaller


class PositionalEncoding(nn.Module):
    """(N, T · H · W, C) → (N, 1 + T · H · W, C): with a position for the class; unless attention
    knows relative ones (`rel_pos_embed`), what each place in space and in time adds."""

    def __init__(
        self, embed_size: int, spatial_size: tuple[int, int], temporal_size: int,
        rel_pos_embed: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.spatial_size = spatial_size
        self.temporal_size = temporal_size
        self.class_token = nn.Parameter(aten.zeros(embed_size))
        shapes = {
            "spatial_pos": (math.prod(spatial_size), embed_size),
            "temporal_pos": (temporal_size, embed_size),
            "class_pos": (embed_size,),
        }
        for name, shape in shapes.items():
            setattr(self, name, None if rel_pos_embed else nn.Parameter(aten.zeros(shape)))

    def forward(self, x: Tensor) -> Tensor:
        n, _, c = x.shape
        x = aten.cat([aten.expand(self.class_token, (n, 1, c)), x], 1)
        space: Any = self.spatial_pos
        if space is not None:
            time: Any = self.temporal_pos
            class_pos: Any = self.class_pos
            places = aten.flatten(aten.unsqueeze(time, 1) + aten.unsqueeze(space, 0), 0, 1)
            x = x + aten.unsqueeze(aten.cat([aten.unsqueeze(class_pos, 0), places], 0), 0)
        return x


class MViT(nn.Module):
    """(N, 3, temporal_size, *spatial_size) → (N, num_classes). Images (N, 3, H, W) are videos of
    one frame.

    ValueError for no blocks.
    """

    def __init__(
        self, spatial_size: tuple[int, int], temporal_size: int,
        block_setting: Sequence[MSBlockConfig], residual_pool: bool,
        residual_with_cls_embed: bool, rel_pos_embed: bool, proj_after_attn: bool,
        dropout: float = 0.5, attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.0,
        num_classes: int = 400, block: Layer | None = None, norm_layer: Layer | None = None,
        patch_embed_kernel: Size = (3, 7, 7), patch_embed_stride: Size = (2, 4, 4),
        patch_embed_padding: Size = (1, 3, 3),
    ) -> None:  # fmt: skip
        super().__init__()
        total = len(block_setting)
        if total == 0:
            raise ValueError("The configuration parameter can't be empty.")
        block = MultiscaleBlock if block is None else block
        norm_layer = partial(nn.LayerNorm, eps=1e-6) if norm_layer is None else norm_layer
        width = block_setting[0].input_channels
        self.conv_proj = nn.Conv3d(
            3, width, kernel_size=patch_embed_kernel, stride=patch_embed_stride,
            padding=patch_embed_padding,
        )  # fmt: skip
        sizes = zip((temporal_size, *spatial_size), patch_embed_stride, strict=True)
        size = [s // stride for s, stride in sizes]
        self.pos_encoding = PositionalEncoding(width, (size[1], size[2]), size[0], rel_pos_embed)
        self.blocks = nn.ModuleList()
        for i, cnf in enumerate(block_setting):
            self.blocks.append(
                block(
                    input_size=size, cnf=cnf, residual_pool=residual_pool,
                    residual_with_cls_embed=residual_with_cls_embed,
                    rel_pos_embed=rel_pos_embed, proj_after_attn=proj_after_attn,
                    dropout=attention_dropout,
                    stochastic_depth_prob=stochastic_depth_prob * i / (total - 1.0),
                    norm_layer=norm_layer,
                )
            )  # fmt: skip
            if cnf.stride_q:
                size = [s // stride for s, stride in zip(size, cnf.stride_q, strict=True)]
        width = block_setting[-1].output_channels
        self.norm = norm_layer(width)
        self.head = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(width, num_classes))
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.02)
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0.0)
            elif isinstance(m, nn.LayerNorm):
                nn.init.constant_(m.weight, 1.0)
                nn.init.constant_(m.bias, 0.0)
            elif isinstance(m, PositionalEncoding):
                for parameter in m.parameters():
                    nn.init.trunc_normal_(parameter, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_proj(_unsqueeze(x, 5, 2)[0])
        x = self.pos_encoding(aten.transpose(aten.flatten(x, 2), 1, 2))
        thw: Any = (self.pos_encoding.temporal_size, *self.pos_encoding.spatial_size)
        for block in self.blocks:
            x, thw = block(x, thw)
        return self.head(self.norm(x)[:, 0])


_GREY: dict[str, Any] = {"mean": (0.45, 0.45, 0.45), "std": (0.225, 0.225, 0.225)}
_PRESET = partial(VideoClassification, crop_size=(224, 224), resize_size=(256,), **_GREY)


class MViT_V1_B_Weights(WeightsEnum):
    KINETICS400_V1 = known(
        "mvit_v1_b-dbeb1030",
        _PRESET,
        {"Kinetics-400": {"acc@1": 78.477, "acc@5": 93.582}}, 36610672, 70.599, 139.764,
        "https://github.com/facebookresearch/pytorchvideo/blob/main/docs/source/model_zoo.md",
        classes="kinetics400", min_size=224, docs=PORTED, min_temporal_size=16,
    )  # fmt: skip
    DEFAULT = KINETICS400_V1


class MViT_V2_S_Weights(WeightsEnum):
    KINETICS400_V1 = known(
        "mvit_v2_s-ae3be167",
        _PRESET,
        {"Kinetics-400": {"acc@1": 80.757, "acc@5": 94.665}}, 34537744, 64.224, 131.884,
        "https://github.com/facebookresearch/SlowFast/blob/main/MODEL_ZOO.md",
        classes="kinetics400", min_size=224, docs=PORTED, min_temporal_size=16,
    )  # fmt: skip
    DEFAULT = KINETICS400_V1


_HALF, _SAME, _KERNEL = [1, 2, 2], [1, 1, 1], [3, 3, 3]


def _v1(heads: int, inp: int, out: int, stride: int, halved: bool = False) -> MSBlockConfig:
    """A block whose keys and values are pooled by `stride` in space, and that halves the size."""
    q: tuple[list[int], list[int]] = (_KERNEL, _HALF) if halved else ([], [])
    return MSBlockConfig(heads, inp, out, q[0], _KERNEL, q[1], [1, stride, stride])


def _v2(heads: int, inp: int, out: int, stride: int, halved: bool = False) -> MSBlockConfig:
    """The same, with queries that are pooled without a stride too."""
    kv = [1, stride, stride]
    return MSBlockConfig(heads, inp, out, _KERNEL, _KERNEL, _HALF if halved else _SAME, kv)


def _make(setting: list[MSBlockConfig], v2: bool, **kwargs: Any) -> MViT:
    facts = {"temporal_size": 16, "stochastic_depth_prob": 0.2, **kwargs}
    return MViT(
        spatial_size=(224, 224), block_setting=setting, residual_pool=v2,
        residual_with_cls_embed=False, rel_pos_embed=v2, proj_after_attn=v2, **facts,
    )  # fmt: skip


def _mvit_v1_b(**kwargs: Any) -> MViT:
    blocks = [
        _v1(1, 96, 192, 8), _v1(2, 192, 192, 4, True), _v1(2, 192, 384, 4),
        _v1(4, 384, 384, 2, True), *(_v1(4, 384, 384, 2) for _ in range(9)),
        _v1(4, 384, 768, 2), _v1(8, 768, 768, 1, True), _v1(8, 768, 768, 1),
    ]  # fmt: skip
    return _make(blocks, False, **kwargs)


def _mvit_v2_s(**kwargs: Any) -> MViT:
    blocks = [
        _v2(1, 96, 96, 8), _v2(2, 96, 192, 4, True), _v2(2, 192, 192, 4),
        _v2(4, 192, 384, 2, True), *(_v2(4, 384, 384, 2) for _ in range(10)),
        _v2(8, 384, 768, 1, True), _v2(8, 768, 768, 1),
    ]  # fmt: skip
    return _make(blocks, True, **kwargs)


mvit_v1_b = builder("mvit_v1_b", _mvit_v1_b, MViT_V1_B_Weights, "MViT, base.")
mvit_v2_s = builder("mvit_v2_s", _mvit_v2_s, MViT_V2_S_Weights, "MViTv2, small.")

__all__ = ["MViT", "MViT_V1_B_Weights", "MViT_V2_S_Weights", "mvit_v1_b", "mvit_v2_s"]
