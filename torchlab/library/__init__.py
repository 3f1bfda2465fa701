"""The public name space `torchlab.library`: operators of one's own.

Source: https://docs.pytorch.org/docs/2.13/library.html
"""

from __future__ import annotations

from torchlab.library.custom_op import (
    CustomOpDef,
    custom_op,
    impl_abstract,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)
from torchlab.library.fake_context import get_ctx
from torchlab.library.infer_schema import infer_schema
from torchlab.library.library import Library, define, fallthrough_kernel, impl
from torchlab.library.library import _scoped_library as _scoped_library
from torchlab.library.opcheck import OpCheckError, opcheck

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]
