"""`torch.nn.modules.activation`: activations and attention, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.activation import (
    ELU,
    GELU,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)
from torchlab.nn.activation_piecewise import (
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    PReLU,
    ReLU6,
    RReLU,
    Softshrink,
    Threshold,
)
from torchlab.nn.activation_smooth import (
    CELU,
    GLU,
    SELU,
    LogSigmoid,
    Mish,
    Softmax2d,
    Softmin,
    Softplus,
    Softsign,
    Tanhshrink,
)
from torchlab.nn.multihead_attention import MultiheadAttention

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]
