"""The public name space `torchlab.optim.lr_scheduler`.

Source: https://docs.pytorch.org/docs/2.13/optim.html#how-to-adjust-learning-rate
"""

from __future__ import annotations

from torchlab.optim.lr_scheduler.base import LRScheduler
from torchlab.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR
from torchlab.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from torchlab.optim.lr_scheduler.plateau import ReduceLROnPlateau
from torchlab.optim.lr_scheduler.restarts import CosineAnnealingWarmRestarts
from torchlab.optim.lr_scheduler.simple import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

_LRScheduler = LRScheduler  # PyTorch's older name
