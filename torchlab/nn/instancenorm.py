"""Instance normalization.

Source: https://docs.pytorch.org/docs/2.13/nn.html#normalization-layers
and https://arxiv.org/abs/1607.08022
"""

from __future__ import annotations

import warnings
from typing import Any

from torchlab.nn import functional as F
from torchlab.nn.batchnorm import _NormBase


class _InstanceNorm(_NormBase):
    """Normalizes each channel of each sample over its places.

    track_running_stats: evaluation uses statistics gathered in training instead of the sample's.
    """

    no_batch_dim = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        return self.no_batch_dim

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        alone = input.dim() == self._get_no_batch_dim()
        at = 0 if alone else 1
        channels = input.shape[at]
        if channels != self.num_features:
            text = (
                f"expected input's size at dim={at} to match num_features ({self.num_features}), "
                f"but got: {channels}."
            )
            if self.affine:
                raise ValueError(text)
            warnings.warn(
                text[:-1] + ". Since affine=False, num_features is not used in the normalization "
                "process; to silence this warning, give the layer the number of channels.",
                stacklevel=3,
            )
        y = F.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return y.squeeze(0) if alone else y

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            # Layers of the first version always saved running statistics, wanted or not.
            old = [
                prefix + name
                for name in ("running_mean", "running_var")
                if prefix + name in state_dict
            ]
            if old:
                names = " and ".join(f'"{k}"' for k in old)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, "
                    "this may be expected because "
                    f"{type(self).__name__} does not track running stats by default since 0.4.0. "
                    "Please remove these keys from state_dict. If the running stats are actually "
                    f"needed, instead set track_running_stats=True in {type(self).__name__} to "
                    "enable them."
                )
                for key in old:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization over (N, C, L) or (C, L)."""

    ranks = (2, 3)
    ranks_text = "2D or 3D"
    no_batch_dim = 2


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization over (N, C, H, W) or (C, H, W)."""

    ranks = (3, 4)
    ranks_text = "3D or 4D"
    no_batch_dim = 3


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization over (N, C, D, H, W) or (C, D, H, W)."""

    ranks = (4, 5)
    ranks_text = "4D or 5D"
    no_batch_dim = 4


__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]
