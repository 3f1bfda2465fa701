"""The public name space `torchlab.nn`: modules, parameters, functions.

Source: https://docs.pytorch.org/docs/2.13/nn.html
"""

from __future__ import annotations

from torchlab.nn import attention, functional, init, modules, parallel, utils
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
from torchlab.nn.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from torchlab.nn.bilinear import Bilinear
from torchlab.nn.containers import Container, ModuleDict, ModuleList, Sequential
from torchlab.nn.conv import Conv1d, Conv2d, Conv3d
from torchlab.nn.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from torchlab.nn.distance import CosineSimilarity, PairwiseDistance
from torchlab.nn.dropout import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from torchlab.nn.embedding_bag import EmbeddingBag
from torchlab.nn.factory import factory_kwargs
from torchlab.nn.flatten import Flatten, Unflatten
from torchlab.nn.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from torchlab.nn.lazy_layers import (
    LazyBatchNorm1d,
    LazyBatchNorm2d,
    LazyBatchNorm3d,
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
    LazyInstanceNorm1d,
    LazyInstanceNorm2d,
    LazyInstanceNorm3d,
    LazyLinear,
)
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
from torchlab.nn.loss_likelihood import (
    CTCLoss,
    GaussianNLLLoss,
    HuberLoss,
    KLDivLoss,
    NLLLoss2d,
    PoissonNLLLoss,
)
from torchlab.nn.loss_many_classes import AdaptiveLogSoftmaxWithLoss, LinearCrossEntropyLoss
from torchlab.nn.loss_pairs import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from torchlab.nn.module import Module
from torchlab.nn.multihead_attention import MultiheadAttention
from torchlab.nn.normalization import GroupNorm, LayerNorm, RMSNorm
from torchlab.nn.padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from torchlab.nn.parallel import DataParallel
from torchlab.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from torchlab.nn.parameter_containers import ParameterDict, ParameterList
from torchlab.nn.patches import Fold, Unfold
from torchlab.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AvgPool1d,
    AvgPool2d,
    MaxPool1d,
    MaxPool2d,
)
from torchlab.nn.pooling_places import (
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from torchlab.nn.pooling_volumes import (
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool3d,
)
from torchlab.nn.recurrent import GRU, LSTM, RNN, RNNBase
from torchlab.nn.recurrent_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from torchlab.nn.response_norm import CrossMapLRN2d, LocalResponseNorm
from torchlab.nn.shuffling import ChannelShuffle, PixelShuffle, PixelUnshuffle
from torchlab.nn.sparse import Embedding
from torchlab.nn.sync_batchnorm import SyncBatchNorm
from torchlab.nn.transformer import Transformer, TransformerDecoder, TransformerEncoder
from torchlab.nn.transformer_layers import TransformerDecoderLayer, TransformerEncoderLayer
from torchlab.nn.upsampling import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d
