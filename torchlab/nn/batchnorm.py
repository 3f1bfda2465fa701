"""Batch normalization (Ioffe and Szegedy, 2015).

Source: https://docs.pytorch.org/docs/2.13/nn.html#normalization-layers
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab.nn import functional as F
from torchlab.nn import init
from torchlab.nn.module import Module
from torchlab.nn.normalization import affine_parameters


class _NormBase(Module):
    """Weight and bias, running statistics, and how they are saved: what batch and instance
    normalization share."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    ranks: tuple[int, ...] = ()
    ranks_text = ""
    weight: Any
    bias: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        affine_parameters(self, num_features, affine, affine and bias, device, dtype)
        if track_running_stats:
            self.register_buffer(
                "running_mean", aten.zeros(num_features, device=device, dtype=dtype)
            )
            self.register_buffer("running_var", aten.ones(num_features, device=device, dtype=dtype))
            self.register_buffer(
                "num_batches_tracked", aten.zeros((), dtype=dt.int64, device=device)
            )
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget all batches: mean zero, variance one."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget all batches; weight one, bias zero."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in self.ranks:
            raise ValueError(f"expected {self.ranks_text} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

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
        key = prefix + "num_batches_tracked"
        if (
            (local_metadata.get("version") or 0) < 2
            and self.track_running_stats
            and key not in state_dict
        ):
            # Version 1 did not count batches.
            counted = self.num_batches_tracked
            fresh = counted is None or counted.is_meta
            state_dict[key] = aten.zeros((), dtype=dt.int64) if fresh else counted
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """Normalizes each channel over the batch in training, with running statistics in evaluation.

    momentum: the weight of the newest batch in the running statistics; None: all batches alike.
    """

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        share = 0.0 if self.momentum is None else self.momentum
        buffers = self._buffers
        if (
            self.training
            and self.track_running_stats
            and buffers["num_batches_tracked"] is not None
        ):
            buffers["num_batches_tracked"].add_(1)
            if self.momentum is None:
                share = 1.0 / float(buffers["num_batches_tracked"])
        mean, var = self.running_mean, self.running_var
        by_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, share, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalization over (N, C) or (N, C, L)."""

    ranks = (2, 3)
    ranks_text = "2D or 3D"


class BatchNorm2d(_BatchNorm):
    """Batch normalization over (N, C, H, W)."""

    ranks = (4,)
    ranks_text = "4D"


class BatchNorm3d(_BatchNorm):
    """Batch normalization over (N, C, D, H, W)."""

    ranks = (5,)
    ranks_text = "5D"


__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"]
