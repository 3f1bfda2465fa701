"""`torch.nn.modules.adaptive`: adaptive softmax, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.loss_many_classes import AdaptiveLogSoftmaxWithLoss

__all__ = ["AdaptiveLogSoftmaxWithLoss"]
