"""The public name space `torchlab.nn.utils`. Source:
https://docs.pytorch.org/docs/2.13/nn.html#utilities"""

from __future__ import annotations

from torchlab.nn.utils.clip_grad import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from torchlab.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
