"""The public name space `torchlab.nn`: modules, parameters, functions.

Source: https://docs.pytorch.org/docs/2.13/nn.html
"""

from __future__ import annotations

from torchlab.nn import functional, init, modules, utils
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
from torchlab.nn.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from torchlab.nn.containers import ModuleDict, ModuleList, Sequential
from torchlab.nn.conv import Conv1d, Conv2d
from torchlab.nn.dropout import Dropout
from torchlab.nn.flatten import Flatten, Unflatten
from torchlab.nn.linear import Identity, Linear
from torchlab.nn.linear_cross_entropy_options import LinearCrossEntropyOptions
from torchlab.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from torchlab.nn.module import Module
from torchlab.nn.normalization import GroupNorm, LayerNorm, RMSNorm
from torchlab.nn.parameter import Buffer, Parameter
from torchlab.nn.parameter_containers import ParameterDict, ParameterList
from torchlab.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AvgPool1d,
    AvgPool2d,
    MaxPool1d,
    MaxPool2d,
)
from torchlab.nn.sparse import Embedding
