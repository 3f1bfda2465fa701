"""`torch.nn.modules.upsampling`: upsampling, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.upsampling import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]
