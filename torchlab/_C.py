"""The few names of `torch._C` that programs with tensor subclasses use.

Source: https://docs.pytorch.org/docs/2.13/notes/extending.html
"""

from __future__ import annotations

from torchlab._core.dispatch.modes import disabled_function as _disabled_torch_function_impl
from torchlab._core.dispatch.python_key import disabled as _disabled_torch_dispatch_impl
from torchlab.overrides import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
]
