"""Batch normalization over the batches of all processes of a group.

torchlab's groups have one process (see torchlab.distributed), whose batch is all there is.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.SyncBatchNorm.html
"""

from __future__ import annotations

from typing import Any

from torchlab.nn.batchnorm import _BatchNorm
from torchlab.nn.module import Module


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over (N, C, ...), with the statistics of the group's whole batch.

    process_group: by default all processes.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Any:
        """`module` with every batch normalization in it replaced by one of this class, over the
        same parameters and buffers."""
        result: Any = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            result._parameters.update(module._parameters)
            result._buffers.update(module._buffers)
            result.training = module.training
            if hasattr(module, "qconfig"):
                result.qconfig = module.qconfig
        for name, child in list(module.named_children()):
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
