"""Vision transformer (arXiv:2010.11929): an image as a sequence of patches.

Source: https://docs.pytorch.org/vision/0.28/models/vision_transformer.html
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.fx._symbolic_trace import _assert
from torchlab.vision.models._api import WeightsEnum
from torchlab.vision.models._utils import _ovewrite_named_param
from torchlab.vision.models._weights import NEW_RECIPE, builder, built, imagenet
from torchlab.vision.ops.misc import MLP, Conv2dNormActivation
from torchlab.vision.transforms._image import InterpolationMode

Layer = Callable[..., nn.Module]
_NORM = partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """One layer of a convolutional stem."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Layer = nn.BatchNorm2d
    activation_layer: Layer = nn.ReLU


class MLPBlock(MLP):
    """The two layers of each position."""

    _version = 2

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(
            in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout
        )
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                if m.bias is not None:
                    nn.init.normal_(m.bias, std=1e-6)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        if (local_metadata.get("version") or 1) < 2:  # files from before the block was an MLP
            for i in range(2):
                for kind in ("weight", "bias"):
                    old = f"{prefix}linear_{i + 1}.{kind}"
                    if old in state_dict:
                        state_dict[f"{prefix}{3 * i}.{kind}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def _check_rank(x: Tensor) -> None:
    # an assertion that tracing records
    _assert(x.dim() == 3, f"Expected (batch_size, seq_length, hidden_dim) got {x.shape}")


class EncoderBlock(nn.Module):
    """Attention and the small network, each after a normalization and beside a shortcut."""

    def __init__(
        self, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float,
        attention_dropout: float, norm_layer: Layer = _NORM,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, dropout=attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        _check_rank(input)
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """The blocks, over positions with learned embeddings."""

    def __init__(
        self, seq_length: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int,
        dropout: float, attention_dropout: float, norm_layer: Layer = _NORM,
    ) -> None:  # fmt: skip
        super().__init__()
        self.pos_embedding = nn.Parameter(aten.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        facts = (num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
        self.layers = nn.Sequential(
            OrderedDict((f"encoder_layer_{i}", EncoderBlock(*facts)) for i in range(num_layers))
        )
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        _check_rank(input)
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """(N, 3, image_size, image_size) → (N, num_classes).

    RuntimeError if the size is no multiple of the patches'; AssertionError for an image of another
    size.
    """

    def __init__(
        self, image_size: int, patch_size: int, num_layers: int, num_heads: int, hidden_dim: int,
        mlp_dim: int, dropout: float = 0.0, attention_dropout: float = 0.0,
        num_classes: int = 1000, representation_size: int | None = None,
        norm_layer: Layer = _NORM, conv_stem_configs: list[ConvStemConfig] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if image_size % patch_size:
            raise RuntimeError("Input shape indivisible by patch size!")
        self.image_size = image_size
        self.patch_size = patch_size
        self.hidden_dim = hidden_dim
        self.mlp_dim = mlp_dim
        self.attention_dropout = attention_dropout
        self.dropout = dropout
        self.num_classes = num_classes
        self.representation_size = representation_size
        self.norm_layer = norm_layer
        if conv_stem_configs is not None:
            stem = nn.Sequential()
            width = 3
            for i, c in enumerate(conv_stem_configs):
                layer = Conv2dNormActivation(
                    width, c.out_channels, kernel_size=c.kernel_size, stride=c.stride,
                    norm_layer=c.norm_layer, activation_layer=c.activation_layer,
                )  # fmt: skip
                stem.add_module(f"conv_bn_relu_{i}", layer)
                width = c.out_channels
            stem.add_module("conv_last", nn.Conv2d(width, hidden_dim, kernel_size=1))
            self.conv_proj: nn.Module = stem
        else:
            self.conv_proj = nn.Conv2d(3, hidden_dim, kernel_size=patch_size, stride=patch_size)
        self.class_token = nn.Parameter(aten.zeros(1, 1, hidden_dim))
        length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(
            length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout,
            norm_layer,
        )  # fmt: skip
        self.seq_length = length
        heads: OrderedDict[str, nn.Module] = OrderedDict()
        if representation_size is None:
            heads["head"] = nn.Linear(hidden_dim, num_classes)
        else:
            heads["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            heads["act"] = nn.Tanh()
            heads["head"] = nn.Linear(representation_size, num_classes)
        self.heads = nn.Sequential(heads)
        self._init(conv_stem_configs is not None)

    def _init(self, stem: bool) -> None:
        last: Any = self.conv_proj.conv_last if stem else self.conv_proj
        if stem:
            nn.init.normal_(last.weight, mean=0.0, std=math.sqrt(2.0 / last.out_channels))
        else:
            fan_in = last.in_channels * last.kernel_size[0] * last.kernel_size[1]
            nn.init.trunc_normal_(last.weight, std=math.sqrt(1 / fan_in))
        if last.bias is not None:
            nn.init.zeros_(last.bias)
        if self.representation_size is not None:
            pre: Any = self.heads.pre_logits
            nn.init.trunc_normal_(pre.weight, std=math.sqrt(1 / pre.in_features))
            nn.init.zeros_(pre.bias)
        head: Any = self.heads.head
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)

    def _process_input(self, x: Tensor) -> Tensor:
        n, _, h, w = x.shape
        p, size = self.patch_size, self.image_size
        _assert(h == size, f"Wrong image height! Expected {size} but got {h}!")
        _assert(w == size, f"Wrong image width! Expected {size} but got {w}!")
        high, wide = h // p, w // p
        x = self.conv_proj(x)
        x = aten.reshape(x, (n, self.hidden_dim, high * wide))
        return aten.permute(x, (0, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self._process_input(x)
        n = x.shape[0]
        token = aten.expand(self.class_token, (n, -1, -1))
        x = self.encoder(aten.cat([token, x], dim=1))
        return self.heads(x[:, 0])


_SWAG = "https://github.com/facebookresearch/SWAG"
_swag = partial(
    imagenet, license=f"{_SWAG}/blob/main/LICENSE",
    docs="Weakly supervised pre-training (SWAG, arXiv:2201.08371), then ImageNet: all layers (E2E)"
    " or the last one (LINEAR).",
)  # fmt: skip


class ViT_B_16_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "vit_b_16-c867db91", 224, (81.072, 95.318), 86567656, 17.564, 330.285, "#vit_b_16",
        min_size=224,
    )  # fmt: skip
    IMAGENET1K_SWAG_E2E_V1 = _swag(
        "vit_b_16_swag-9ac1b537", (384, 384, InterpolationMode.BICUBIC), (85.304, 97.65), 86859496,
        55.484, 331.398, _SWAG, min_size=384,
    )  # fmt: skip
    IMAGENET1K_SWAG_LINEAR_V1 = _swag(
        "vit_b_16_lc_swag-4e70ced5", (224, 224, InterpolationMode.BICUBIC), (81.886, 96.18),
        86567656, 17.564, 330.285, "pull/5793", min_size=224,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ViT_B_32_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "vit_b_32-d86f8d99", 224, (75.912, 92.466), 88224232, 4.409, 336.604, "#vit_b_32",
        min_size=224,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ViT_L_16_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "vit_l_16-852ce7e3", (224, 242), (79.662, 94.638), 304326632, 61.555, 1161.023, "#vit_l_16",
        min_size=224, docs=NEW_RECIPE,
    )  # fmt: skip
    IMAGENET1K_SWAG_E2E_V1 = _swag(
        "vit_l_16_swag-4f3808c9", (512, 512, InterpolationMode.BICUBIC), (88.064, 98.512),
        305174504, 361.986, 1164.258, _SWAG, min_size=512,
    )  # fmt: skip
    IMAGENET1K_SWAG_LINEAR_V1 = _swag(
        "vit_l_16_lc_swag-4d563306", (224, 224, InterpolationMode.BICUBIC), (85.146, 97.422),
        304326632, 61.555, 1161.023, "pull/5793", min_size=224,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ViT_L_32_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "vit_l_32-c7638314", 224, (76.972, 93.07), 306535400, 15.378, 1169.449, "#vit_l_32",
        min_size=224,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_V1


class ViT_H_14_Weights(WeightsEnum):
    IMAGENET1K_SWAG_E2E_V1 = _swag(
        "vit_h_14_swag-80465313", (518, 518, InterpolationMode.BICUBIC), (88.552, 98.694),
        633470440, 1016.717, 2416.643, _SWAG, min_size=518,
    )  # fmt: skip
    IMAGENET1K_SWAG_LINEAR_V1 = _swag(
        "vit_h_14_lc_swag-c1eb923e", (224, 224, InterpolationMode.BICUBIC), (85.708, 97.73),
        632045800, 167.295, 2411.209, "pull/5793", min_size=224,
    )  # fmt: skip
    DEFAULT = IMAGENET1K_SWAG_E2E_V1


def _fit(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    _ovewrite_named_param(kwargs, "image_size", weights.meta["min_size"][0])


def _make(*shape: Any, image_size: int = 224, **kwargs: Any) -> VisionTransformer:
    return VisionTransformer(image_size, *shape, **kwargs)


def _vision_transformer(
    patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int,
    weights: WeightsEnum | None, progress: bool, **kwargs: Any,
) -> VisionTransformer:  # fmt: skip
    """A vision transformer of this shape with the weights."""
    make = partial(_make, patch_size, num_layers, num_heads, hidden_dim, mlp_dim)
    return built(make, weights, progress, kwargs, _fit)


def _builder(
    name: str, patch: int, layers: int, heads: int, width: int, mlp: int,
    weights: type[WeightsEnum], **legacy: Any,
) -> Any:  # fmt: skip
    make = partial(_make, patch, layers, heads, width, mlp)
    doc = f"Vision transformer with patches of {patch}×{patch}, {layers} layers."
    return builder(name, make, weights, doc, fit=_fit, **legacy)


vit_b_16 = _builder("vit_b_16", 16, 12, 12, 768, 3072, ViT_B_16_Weights)
vit_b_32 = _builder("vit_b_32", 32, 12, 12, 768, 3072, ViT_B_32_Weights)
vit_l_16 = _builder("vit_l_16", 16, 24, 16, 1024, 4096, ViT_L_16_Weights)
vit_l_32 = _builder("vit_l_32", 32, 24, 16, 1024, 4096, ViT_L_32_Weights)
vit_h_14 = _builder("vit_h_14", 14, 32, 16, 1280, 5120, ViT_H_14_Weights, legacy=None)


def interpolate_embeddings(
    image_size: int, patch_size: int, model_state: Any, interpolation_mode: str = "bicubic",
    reset_heads: bool = False,
) -> Any:  # fmt: skip
    """The state dict of a model for images of another size: its position embeddings resized.

    ValueError if their number is no square, or the batch dimension is not 1.
    """
    embedding = model_state["encoder.pos_embedding"]
    n, length, width = embedding.shape
    if n != 1:
        raise ValueError(f"Unexpected position embedding shape: {embedding.shape}")
    wanted = (image_size // patch_size) ** 2 + 1
    if wanted == length:
        return model_state
    side = int(math.sqrt(length - 1))
    if side * side != length - 1:
        raise ValueError(f"seq_length is not a perfect square: {side * side} vs {length - 1}")
    grid = aten.permute(embedding[:, 1:, :], (0, 2, 1)).reshape(1, width, side, side)
    made = nn.functional.interpolate(
        grid, size=image_size // patch_size, mode=interpolation_mode, align_corners=True
    )
    flat = aten.permute(made.reshape(1, width, wanted - 1), (0, 2, 1))
    model_state["encoder.pos_embedding"] = aten.cat([embedding[:, :1, :], flat], dim=1)
    if not reset_heads:
        return model_state
    kept = OrderedDict((k, v) for k, v in model_state.items() if not k.startswith("heads"))
    return kept


__all__ = [
    "ViT_B_16_Weights", "ViT_B_32_Weights", "ViT_H_14_Weights", "ViT_L_16_Weights",
    "ViT_L_32_Weights", "VisionTransformer", "vit_b_16", "vit_b_32", "vit_h_14", "vit_l_16",
    "vit_l_32",
]  # fmt: skip
