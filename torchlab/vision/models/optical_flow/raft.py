"""RAFT (arXiv:2003.12039): a flow mended step by step from the likeness of all pairs of pixels.

Source: https://docs.pytorch.org/vision/0.28/models/raft.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from torchlab import nn
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.models._api import Weights, WeightsEnum, register_model
from torchlab.vision.models._utils import handle_legacy_interface
from torchlab.vision.models._weights import PORTED, known, loaded
from torchlab.vision.models.optical_flow._utils import (
    grid_sample,
    make_coords_grid,
    upsample_flow,
)
from torchlab.vision.ops.misc import Conv2dNormActivation
from torchlab.vision.transforms._presets import OpticalFlow

Norm = Callable[..., nn.Module]


def _downsample(inp: int, out: int, norm_layer: Norm | None, stride: int) -> nn.Module:
    return Conv2dNormActivation(
        inp, out, norm_layer=norm_layer, kernel_size=1, stride=stride, bias=True,
        activation_layer=None,
    )  # fmt: skip


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut."""

    def __init__(
        self, in_channels: int, out_channels: int, *, norm_layer: Norm | None, stride: int = 1,
        always_project: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        facts: dict[str, Any] = {"norm_layer": norm_layer, "kernel_size": 3, "bias": True}
        self.convnormrelu1 = Conv2dNormActivation(in_channels, out_channels, stride=stride, **facts)
        self.convnormrelu2 = Conv2dNormActivation(out_channels, out_channels, **facts)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or always_project:
            self.downsample = _downsample(in_channels, out_channels, norm_layer, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.downsample(x) + self.convnormrelu2(self.convnormrelu1(x)))


class BottleneckBlock(nn.Module):
    """1×1, 3×3 and 1×1 convolutions beside a shortcut."""

    def __init__(
        self, in_channels: int, out_channels: int, *, norm_layer: Norm | None, stride: int = 1
    ) -> None:
        super().__init__()
        narrow = out_channels // 4
        facts: dict[str, Any] = {"norm_layer": norm_layer, "bias": True}
        self.convnormrelu1 = Conv2dNormActivation(in_channels, narrow, kernel_size=1, **facts)
        self.convnormrelu2 = Conv2dNormActivation(
            narrow, narrow, kernel_size=3, stride=stride, **facts
        )
        self.convnormrelu3 = Conv2dNormActivation(narrow, out_channels, kernel_size=1, **facts)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1:
            self.downsample = _downsample(in_channels, out_channels, norm_layer, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.convnormrelu3(self.convnormrelu2(self.convnormrelu1(x)))
        return self.relu(self.downsample(x) + out)


class FeatureEncoder(nn.Module):
    """(N, 3, H, W) → (N, layers[-1], H / 8, W / 8). ValueError for other than five `layers`."""

    def __init__(
        self, *, block: Callable[..., nn.Module] = ResidualBlock,
        layers: Sequence[int] = (64, 64, 96, 128, 256), strides: Sequence[int] = (2, 1, 2, 2),
        norm_layer: Norm | None = nn.BatchNorm2d,
    ) -> None:  # fmt: skip
        super().__init__()
        if len(layers) != 5:
            raise ValueError(f"The expected number of layers is 5, instead got {len(layers)}")
        self.convnormrelu = Conv2dNormActivation(
            3, layers[0], norm_layer=norm_layer, kernel_size=7, stride=strides[0], bias=True
        )
        for i in (1, 2, 3):
            first = block(layers[i - 1], layers[i], norm_layer=norm_layer, stride=strides[i])
            second = block(layers[i], layers[i], norm_layer=norm_layer, stride=1)
            setattr(self, f"layer{i}", nn.Sequential(first, second))
        self.conv = nn.Conv2d(layers[3], layers[4], kernel_size=1)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.InstanceNorm2d)):
                if m.weight is not None:
                    nn.init.constant_(m.weight, 1)
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0)
        self.output_dim = layers[-1]
        self.downsample_factor = 2 ** sum(s == 2 for s in strides)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer3(self.layer2(self.layer1(self.convnormrelu(x))))
        return self.conv(x)


def _rectified(inp: int, out: int, size: int) -> Conv2dNormActivation:
    return Conv2dNormActivation(inp, out, norm_layer=None, kernel_size=size)


class MotionEncoder(nn.Module):
    """The flow (N, 2, H, W) and the likenesses around its ends → (N, out_channels, H, W), the last
    two of which are the flow. ValueError for other numbers of layers."""

    def __init__(
        self, *, in_channels_corr: int, corr_layers: Sequence[int] = (256, 192),
        flow_layers: Sequence[int] = (128, 64), out_channels: int = 128,
    ) -> None:  # fmt: skip
        super().__init__()
        if len(flow_layers) != 2:
            raise ValueError(
                f"The expected number of flow_layers is 2, instead got {len(flow_layers)}"
            )
        if len(corr_layers) not in (1, 2):
            raise ValueError(
                f"The number of corr_layers should be 1 or 2, instead got {len(corr_layers)}"
            )
        self.convcorr1 = _rectified(in_channels_corr, corr_layers[0], 1)
        self.convcorr2: nn.Module = nn.Identity()
        if len(corr_layers) == 2:
            self.convcorr2 = _rectified(corr_layers[0], corr_layers[1], 3)
        self.convflow1 = _rectified(2, flow_layers[0], 7)
        self.convflow2 = _rectified(flow_layers[0], flow_layers[1], 3)
        self.conv = _rectified(corr_layers[-1] + flow_layers[-1], out_channels - 2, 3)
        self.out_channels = out_channels

    def forward(self, flow: Tensor, corr_features: Tensor) -> Tensor:
        like = self.convcorr2(self.convcorr1(corr_features))
        moved = self.convflow2(self.convflow1(flow))
        return aten.cat([self.conv(aten.cat([like, moved], 1)), flow], 1)


class ConvGRU(nn.Module):
    """A gated recurrent unit of convolutions: h (N, hidden_size, H, W) after x."""

    def __init__(
        self, *, input_size: int, hidden_size: int, kernel_size: Any, padding: Any
    ) -> None:
        super().__init__()
        width = hidden_size + input_size
        self.convz = nn.Conv2d(width, hidden_size, kernel_size=kernel_size, padding=padding)
        self.convr = nn.Conv2d(width, hidden_size, kernel_size=kernel_size, padding=padding)
        self.convq = nn.Conv2d(width, hidden_size, kernel_size=kernel_size, padding=padding)

    def forward(self, h: Tensor, x: Tensor) -> Tensor:
        both = aten.cat([h, x], 1)
        z, r = aten.sigmoid(self.convz(both)), aten.sigmoid(self.convr(both))
        q = aten.tanh(self.convq(aten.cat([r * h, x], 1)))
        return (1 - z) * h + z * q


def _pass_through_h(h: Tensor, _: Tensor) -> Tensor:
    return h


class RecurrentBlock(nn.Module):
    """One ConvGRU or two. ValueError for other numbers of kernels, or of paddings."""

    def __init__(
        self, *, input_size: int, hidden_size: int, kernel_size: Any = ((1, 5), (5, 1)),
        padding: Any = ((0, 2), (2, 0)),
    ) -> None:  # fmt: skip
        super().__init__()
        n = len(kernel_size)
        if n != len(padding):
            raise ValueError(
                "kernel_size should have the same length as padding, instead got"
                f" len(kernel_size) = {n} and len(padding) = {len(padding)}"
            )
        if n not in (1, 2):
            raise ValueError(f"kernel_size should either 1 or 2, instead got {n}")
        units = [
            ConvGRU(input_size=input_size, hidden_size=hidden_size, kernel_size=k, padding=p)
            for k, p in zip(kernel_size, padding, strict=True)
        ]
        self.convgru1 = units[0]
        self.convgru2: Any = units[1] if n == 2 else _pass_through_h
        self.hidden_size = hidden_size

    def forward(self, h: Tensor, x: Tensor) -> Tensor:
        return self.convgru2(self.convgru1(h, x), x)


class FlowHead(nn.Module):
    """The hidden state → what to add to the flow: (N, 2, H, W)."""

    def __init__(self, *, in_channels: int, hidden_size: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, hidden_size, 3, padding=1)
        self.conv2 = nn.Conv2d(hidden_size, 2, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv2(self.relu(self.conv1(x)))


class UpdateBlock(nn.Module):
    """A step: the new hidden state, and what to add to the flow."""

    def __init__(
        self, *, motion_encoder: nn.Module, recurrent_block: Any, flow_head: nn.Module
    ) -> None:
        super().__init__()
        self.motion_encoder = motion_encoder
        self.recurrent_block = recurrent_block
        self.flow_head = flow_head
        self.hidden_state_size = recurrent_block.hidden_size

    def forward(
        self, hidden_state: Tensor, context: Tensor, corr_features: Tensor, flow: Tensor
    ) -> tuple[Tensor, Tensor]:
        motion = self.motion_encoder(flow, corr_features)
        hidden = self.recurrent_block(hidden_state, aten.cat([context, motion], 1))
        return hidden, self.flow_head(hidden)


class MaskPredictor(nn.Module):
    """The hidden state → `upsample_flow`'s logits, times `multiplier` so that they learn slowly."""

    def __init__(self, *, in_channels: int, hidden_size: int, multiplier: float = 0.25) -> None:
        super().__init__()
        self.convrelu = _rectified(in_channels, hidden_size, 3)
        self.conv = nn.Conv2d(hidden_size, 8 * 8 * 9, 1, padding=0)
        self.multiplier = multiplier

    def forward(self, x: Tensor) -> Tensor:
        return self.multiplier * self.conv(self.convrelu(x))


class CorrBlock(nn.Module):
    """The likeness of every pixel of one map with every pixel of another, and with means of these
    over `num_levels` sizes, each twice the last; looked up within `radius` of a pixel."""

    def __init__(self, *, num_levels: int = 4, radius: int = 4) -> None:
        super().__init__()
        self.num_levels = num_levels
        self.radius = radius
        self.corr_pyramid: list[Tensor] = [aten.tensor(0)]
        self.out_channels = num_levels * (2 * radius + 1) ** 2

    def build_pyramid(self, fmap1: Tensor, fmap2: Tensor) -> None:
        """Compare maps (N, C, H, W). ValueError for other shapes, or too small ones."""
        if fmap1.shape != fmap2.shape:
            raise ValueError(
                f"Input feature maps should have the same shape, instead got {fmap1.shape}"
                f" (fmap1.shape) != {fmap2.shape} (fmap2.shape)"
            )
        least = 2 * 2 ** (self.num_levels - 1)
        if any(size < least for size in fmap1.shape[-2:]):
            raise ValueError(
                "Feature maps are too small to be down-sampled by the correlation pyramid. H and W"
                f" of feature maps should be at least {least}; got: {fmap1.shape[-2:]}. Remember"
                " that input images to the model are downsampled by 8, so that means their"
                f" dimensions should be at least 8 * {least} = {8 * least}."
            )
        n, c, h, w = fmap1.shape
        one, two = aten.flatten(fmap1, 2), aten.flatten(fmap2, 2)
        like = aten.transpose(one, 1, 2) @ two / math.sqrt(c)
        level = aten.reshape(like, (n * h * w, 1, h, w))
        self.corr_pyramid = [level]
        for _ in range(self.num_levels - 1):
            level = F.avg_pool2d(level, kernel_size=2, stride=2)
            self.corr_pyramid.append(level)

    def index_pyramid(self, centroids_coords: Tensor) -> Tensor:
        """The likenesses around pixels (N, 2, H, W) of (x, y): (N, out_channels, H, W)."""
        r, side = self.radius, 2 * self.radius + 1
        n, _, h, w = centroids_coords.shape
        steps = aten.linspace(-r, r, side, device=centroids_coords.device)
        around = aten.stack(list(aten.meshgrid([steps, steps], indexing="ij")), -1)
        around = aten.reshape(around, (1, side, side, 2))
        at = aten.reshape(aten.permute(centroids_coords, (0, 2, 3, 1)), (n * h * w, 1, 1, 2))
        found = []
        for level in self.corr_pyramid:
            seen = grid_sample(level, at + around, mode="bilinear", align_corners=True)
            found.append(aten.reshape(seen, (n, h, w, -1)))
            at = at / 2
        made = aten.permute(aten.cat(found, -1), (0, 3, 1, 2)).contiguous()
        if made.shape != (n, self.out_channels, h, w):
            raise ValueError(
                "Output shape of index pyramid is incorrect. Should be"
                f" {(n, self.out_channels, h, w)}, got {made.shape}"
            )
        return made


class RAFT(nn.Module):
    """Two batches of images (N, 3, H, W), the sides multiples of 8 → the flow (N, 2, H, W) after
    each of `num_flow_updates` steps, in pixels (x, y): a list.

    ValueError for images or parts that do not fit.
    """

    def __init__(
        self, *, feature_encoder: nn.Module, context_encoder: nn.Module, corr_block: nn.Module,
        update_block: nn.Module, mask_predictor: nn.Module | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.feature_encoder = feature_encoder
        self.context_encoder = context_encoder
        self.corr_block: Any = corr_block
        self.update_block: Any = update_block
        self.mask_predictor = mask_predictor
        if not hasattr(update_block, "hidden_state_size"):
            raise ValueError(
                "The update_block parameter should expose a 'hidden_state_size' attribute."
            )

    def _context(self, image: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """The first hidden state, and what stays at every step."""
        seen = self.context_encoder(image)
        if tuple(seen.shape[-2:]) != size:
            raise ValueError("The context encoder should downsample H and W by 8")
        hidden = self.update_block.hidden_state_size
        rest = seen.shape[1] - hidden
        if rest <= 0:
            raise ValueError(
                f"The context encoder outputs {seen.shape[1]} channels, but it should have at"
                f" strictly more than hidden_state={hidden} channels"
            )
        state, context = aten.split(seen, [hidden, rest], 1)
        return aten.tanh(state), F.relu(context)

    def forward(self, image1: Tensor, image2: Tensor, num_flow_updates: int = 12) -> list[Tensor]:
        n, _, h, w = image1.shape
        if (h, w) != tuple(image2.shape[-2:]):
            raise ValueError(
                "input images should have the same shape, instead got"
                f" ({h}, {w}) != {image2.shape[-2:]}"
            )
        if h % 8 or w % 8:
            raise ValueError(
                f"input image H and W should be divisible by 8, instead got {h} (h) and {w} (w)"
            )
        size = (h // 8, w // 8)
        one, two = aten.chunk(self.feature_encoder(aten.cat([image1, image2], 0)), 2, 0)
        if tuple(one.shape[-2:]) != size:
            raise ValueError("The feature encoder should downsample H and W by 8")
        self.corr_block.build_pyramid(one, two)
        hidden, context = self._context(image1, size)
        start = make_coords_grid(n, *size, device=one.device)
        end = start
        flows = []
        for _ in range(num_flow_updates):
            end = end.detach()  # each step learns by itself, not through the last one's place
            like = self.corr_block.index_pyramid(end)
            hidden, more = self.update_block(hidden, context, like, end - start)
            end = end + more
            mask = None if self.mask_predictor is None else self.mask_predictor(hidden)
            flows.append(upsample_flow(end - start, mask))
        return flows


def _known(file: str, metrics: dict[str, dict[str, float]], *facts: Any, **more: Any) -> Weights:
    """The facts of one file; there are no classes."""
    made = known(file, OpticalFlow, metrics, *facts, classes=None, min_size=128, **more)
    del made.meta["categories"]
    return made


class Raft_Large_Weights(WeightsEnum):
    C_T_V1 = _known(
        "raft_large_C_T_V1-22a6c225",
        {
            "Sintel-Train-Cleanpass": {"epe": 1.4411},
            "Sintel-Train-Finalpass": {"epe": 2.7894},
            "Kitti-Train": {"per_image_epe": 5.0172, "fl_all": 17.4506},
        },
        5257536, 211.007, 20.129, "https://github.com/princeton-vl/RAFT",
        docs=PORTED,
    )  # fmt: skip
    C_T_V2 = _known(
        "raft_large_C_T_V2-1bb1363a",
        {
            "Sintel-Train-Cleanpass": {"epe": 1.3822},
            "Sintel-Train-Finalpass": {"epe": 2.7161},
            "Kitti-Train": {"per_image_epe": 4.5118, "fl_all": 16.0679},
        },
        5257536, 211.007, 20.129, "tree/main/references/optical_flow",
    )  # fmt: skip
    C_T_SKHT_V1 = _known(
        "raft_large_C_T_SKHT_V1-0b8c9e55",
        {"Sintel-Test-Cleanpass": {"epe": 1.94}, "Sintel-Test-Finalpass": {"epe": 3.18}}, 5257536,
        211.007, 20.129, "https://github.com/princeton-vl/RAFT",
        docs=PORTED,
    )  # fmt: skip
    C_T_SKHT_V2 = _known(
        "raft_large_C_T_SKHT_V2-ff5fadd5",
        {"Sintel-Test-Cleanpass": {"epe": 1.819}, "Sintel-Test-Finalpass": {"epe": 3.067}}, 5257536,
        211.007, 20.129, "tree/main/references/optical_flow",
    )  # fmt: skip
    C_T_SKHT_K_V1 = _known(
        "raft_large_C_T_SKHT_K_V1-4a6a5039", {"Kitti-Test": {"fl_all": 5.1}}, 5257536,
        211.007, 20.129, "https://github.com/princeton-vl/RAFT",
        docs=PORTED,
    )  # fmt: skip
    C_T_SKHT_K_V2 = _known(
        "raft_large_C_T_SKHT_K_V2-b5c70766", {"Kitti-Test": {"fl_all": 5.19}}, 5257536,
        211.007, 20.129, "tree/main/references/optical_flow",
    )  # fmt: skip
    DEFAULT = C_T_SKHT_V2


class Raft_Small_Weights(WeightsEnum):
    C_T_V1 = _known(
        "raft_small_C_T_V1-ad48884c",
        {
            "Sintel-Train-Cleanpass": {"epe": 2.1231},
            "Sintel-Train-Finalpass": {"epe": 3.279},
            "Kitti-Train": {"per_image_epe": 7.6557, "fl_all": 25.2801},
        },
        990162, 47.655, 3.821, "https://github.com/princeton-vl/RAFT",
        docs=PORTED,
    )  # fmt: skip
    C_T_V2 = _known(
        "raft_small_C_T_V2-01064c6d",
        {
            "Sintel-Train-Cleanpass": {"epe": 1.9901},
            "Sintel-Train-Finalpass": {"epe": 3.2831},
            "Kitti-Train": {"per_image_epe": 7.5978, "fl_all": 25.2369},
        },
        990162, 47.655, 3.821, "tree/main/references/optical_flow",
    )  # fmt: skip
    DEFAULT = C_T_V2


def _raft(
    *, weights: Any, progress: bool, block: Any, layers: tuple[int, ...], context: int,
    context_norm: Norm | None, radius: int, corr_layers: tuple[int, ...],
    flow_layers: tuple[int, int], motion: int, hidden: int, kernel_size: Any, padding: Any,
    head: int, mask: bool, **kwargs: Any,
) -> RAFT:  # fmt: skip
    """`layers` are the encoders' but for the last width of the one for the context. Parts among
    the keyword arguments are taken instead."""

    def part(name: str, make: Callable[[], nn.Module]) -> Any:
        return kwargs.pop(name, None) or make()

    features = part(
        "feature_encoder",
        lambda: FeatureEncoder(block=block, layers=layers, norm_layer=nn.InstanceNorm2d),
    )
    around = part(
        "context_encoder",
        lambda: FeatureEncoder(
            block=block, layers=(*layers[:-1], context), norm_layer=context_norm
        ),
    )
    corr = part("corr_block", lambda: CorrBlock(num_levels=4, radius=radius))

    def update_block() -> UpdateBlock:
        encoder = MotionEncoder(
            in_channels_corr=corr.out_channels, corr_layers=corr_layers, flow_layers=flow_layers,
            out_channels=motion,
        )  # fmt: skip
        recurrent = RecurrentBlock(
            input_size=motion + context - hidden, hidden_size=hidden, kernel_size=kernel_size,
            padding=padding,
        )  # fmt: skip
        flow_head = FlowHead(in_channels=hidden, hidden_size=head)
        return UpdateBlock(motion_encoder=encoder, recurrent_block=recurrent, flow_head=flow_head)

    update = part("update_block", update_block)
    predictor = kwargs.pop("mask_predictor", None)
    if predictor is None and mask:
        predictor = MaskPredictor(in_channels=hidden, hidden_size=256, multiplier=0.25)
    model = RAFT(
        feature_encoder=features, context_encoder=around, corr_block=corr, update_block=update,
        mask_predictor=predictor, **kwargs,
    )  # fmt: skip
    return loaded(model, weights, progress)


@register_model()
@handle_legacy_interface(weights=("pretrained", Raft_Large_Weights.C_T_SKHT_V2))
def raft_large(
    *, weights: Raft_Large_Weights | None = None, progress: bool = True, **kwargs: Any
) -> RAFT:
    """RAFT."""
    return _raft(
        weights=Raft_Large_Weights.verify(weights), progress=progress, block=ResidualBlock,
        layers=(64, 64, 96, 128, 256), context=256, context_norm=nn.BatchNorm2d, radius=4,
        corr_layers=(256, 192), flow_layers=(128, 64), motion=128, hidden=128,
        kernel_size=((1, 5), (5, 1)), padding=((0, 2), (2, 0)), head=256, mask=True, **kwargs,
    )  # fmt: skip


@register_model()
@handle_legacy_interface(weights=("pretrained", Raft_Small_Weights.C_T_V2))
def raft_small(
    *, weights: Raft_Small_Weights | None = None, progress: bool = True, **kwargs: Any
) -> RAFT:
    """RAFT with a fifth of the weights."""
    return _raft(
        weights=Raft_Small_Weights.verify(weights), progress=progress, block=BottleneckBlock,
        layers=(32, 32, 64, 96, 128), context=160, context_norm=None, radius=3,
        corr_layers=(96,), flow_layers=(64, 32), motion=82, hidden=96, kernel_size=(3,),
        padding=(1,), head=128, mask=False, **kwargs,
    )  # fmt: skip


__all__ = ["RAFT", "Raft_Large_Weights", "Raft_Small_Weights", "raft_large", "raft_small"]
