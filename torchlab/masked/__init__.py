"""`torchlab.masked`: reductions and normalisations that look at some elements only.

Source: https://docs.pytorch.org/docs/2.13/masked.html
"""

from __future__ import annotations

from torchlab.masked.masking import _input_mask, _output_mask
from torchlab.masked.normalizations import (
    cumprod,
    cumsum,
    log_softmax,
    normalize,
    softmax,
    softmin,
)
from torchlab.masked.reductions import (
    amax,
    amin,
    argmax,
    argmin,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    prod,
    std,
    sum,
    var,
)

__all__ = [
    "_input_mask",
    "_output_mask",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
