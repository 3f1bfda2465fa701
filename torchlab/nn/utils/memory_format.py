"""Convolution weights in another memory format. Source:
https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.convert_conv2d_weight_memory_format.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten


def _convert(module: Any, memory_format: Any, rank: int) -> Any:
    for m in module.modules():
        weight = m._parameters.get("weight")
        # Both kinds of convolution, and nothing else, know whether they are transposed.
        if isinstance(getattr(m, "transposed", None), bool) and weight.ndim == rank:
            copied = aten.clone(weight.detach())
            m.weight.data = aten.contiguous(copied, memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Give the weights of all Conv2d and ConvTranspose2d in `module` that memory format; returns
    `module`."""
    return _convert(module, memory_format, 4)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Give the weights of all Conv3d and ConvTranspose3d in `module` that memory format; returns
    `module`."""
    return _convert(module, memory_format, 5)


__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]
