"""The public name space `torchlab.nn.utils`. Source:
https://docs.pytorch.org/docs/2.13/nn.html#utilities"""

from __future__ import annotations

from torchlab.nn.utils import parametrizations, parametrize, rnn, stateless
from torchlab.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from torchlab.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from torchlab.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from torchlab.nn.utils.init import skip_init
from torchlab.nn.utils.memory_format import (
    convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format,
)
from torchlab.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from torchlab.nn.utils.weight_norm import remove_weight_norm, weight_norm
