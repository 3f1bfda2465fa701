"""Feature pyramids: maps of a backbone's stages brought to one width, coarse added to fine
(arXiv:1612.03144), and further levels on top.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.ops.FeaturePyramidNetwork.html
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchlab import nn
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.ops.misc import Conv2dNormActivation


def _spread(module: nn.Module) -> None:
    """Every convolution of `module` uniform by its fan-in, its bias zero."""
    for m in module.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_uniform_(m.weight, a=1)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0)


class ExtraFPNBlock(nn.Module):
    """What adds levels to a pyramid."""

    def forward(
        self, results: list[Tensor], x: list[Tensor], names: list[str]
    ) -> tuple[list[Tensor], list[str]]:
        """The pyramid's maps and their names with more of them. x: the backbone's maps."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")


class FeaturePyramidNetwork(nn.Module):
    """{name: map (N, C, H, W)}, fine to coarse, → the same names with `out_channels` channels.

    `in_channels_list` has the channels of each map; `extra_blocks` adds levels.
    ValueError for a map without channels.
    """

    _version = 2

    def __init__(
        self, in_channels_list: list[int], out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.inner_blocks = nn.ModuleList()
        self.layer_blocks = nn.ModuleList()
        facts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": None}
        for channels in in_channels_list:
            if channels == 0:
                raise ValueError("in_channels=0 is currently not supported")
            self.inner_blocks.append(
                Conv2dNormActivation(channels, out_channels, kernel_size=1, padding=0, **facts)
            )
            self.layer_blocks.append(
                Conv2dNormActivation(out_channels, out_channels, kernel_size=3, **facts)
            )
        _spread(self)
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(
                f"extra_blocks should be of type ExtraFPNBlock not {type(extra_blocks)}"
            )
        self.extra_blocks = extra_blocks

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        # before version 2 the blocks were bare convolutions, without the ".0" of a sequence
        if (local_metadata.get("version") or 0) < 2:
            for kind, blocks in (("inner", self.inner_blocks), ("layer", self.layer_blocks)):
                for i in range(len(blocks)):
                    for part in ("weight", "bias"):
                        old = f"{prefix}{kind}_blocks.{i}.{part}"
                        if old in state_dict:
                            state_dict[f"{prefix}{kind}_blocks.{i}.0.{part}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def get_result_from_inner_blocks(self, x: Tensor, idx: int) -> Tensor:
        """The map `x` of level `idx` with the pyramid's channels; -1 is the last level."""
        return self.inner_blocks[idx](x)

    def get_result_from_layer_blocks(self, x: Tensor, idx: int) -> Tensor:
        """The result of level `idx` from its sum `x`; -1 is the last level."""
        return self.layer_blocks[idx](x)

    def forward(self, x: dict[str, Tensor]) -> OrderedDict[str, Tensor]:
        names, maps = list(x), list(x.values())
        inner: Any = None
        made: list[Tensor] = []
        for i in reversed(range(len(maps))):
            lateral = self.get_result_from_inner_blocks(maps[i], i)
            if inner is None:
                inner = lateral
            else:
                size = list(lateral.shape[-2:])
                inner = lateral + F.interpolate(inner, size=size, mode="nearest")
            made.insert(0, self.get_result_from_layer_blocks(inner, i))
        if self.extra_blocks is not None:
            made, names = self.extra_blocks(made, maps, names)
        return OrderedDict(zip(names, made, strict=False))


class LastLevelMaxPool(ExtraFPNBlock):
    """One more level, named "pool": every other pixel of the last."""

    def forward(  # type: ignore[override]  # torchvision's names of the arguments
        self, x: list[Tensor], y: list[Tensor], names: list[str]
    ) -> tuple[list[Tensor], list[str]]:
        pooled = F.max_pool2d(x[-1], kernel_size=1, stride=2, padding=0)
        return [*x, pooled], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Two more levels, "p6" and "p7", by strided convolutions (RetinaNet, arXiv:1708.02002).

    From the pyramid's last level if it has `in_channels` = `out_channels`, else the backbone's.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        _spread(self)
        self.use_P5 = in_channels == out_channels

    def forward(
        self, p: list[Tensor], c: list[Tensor], names: list[str]
    ) -> tuple[list[Tensor], list[str]]:
        p6 = self.p6(p[-1] if self.use_P5 else c[-1])
        p7 = self.p7(F.relu(p6))
        return [*p, p6, p7], [*names, "p6", "p7"]


__all__ = ["ExtraFPNBlock", "FeaturePyramidNetwork", "LastLevelMaxPool", "LastLevelP6P7"]
