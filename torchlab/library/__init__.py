"""The public name space `torchlab.library`: operators of one's own.

Source: https://docs.pytorch.org/docs/2.13/library.html
"""

from __future__ import annotations

from torchlab.library.custom_op import (
    CustomOpDef,
    custom_op,
    register_autograd,
    register_fake,
    register_kernel,
)
from torchlab.library.infer_schema import infer_schema
from torchlab.library.opcheck import OpCheckError, opcheck

__all__ = [
    "CustomOpDef", "OpCheckError", "custom_op", "infer_schema", "opcheck", "register_autograd",
    "register_fake",    "register_kernel",
]  # fmt: skip
