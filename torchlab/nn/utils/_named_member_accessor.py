"""Setting members of a module that are plain tensors for a while.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.functional_call.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.nn.module import Module

__all__ = ["swap_tensor"]

_MISSING: Any = object()


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Let `tensor` be the member `name`, a parameter, a buffer or an attribute, without the checks
    of `setattr`. Returns what it was before; `allow_missing`: a mark where there was none, which
    given as `tensor` takes the member away."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for table in (module._parameters, module._buffers):
        if name in table:
            before: Any = table[name]
            if tensor is _MISSING:
                del table[name]
            else:
                table[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING:
        if not allow_missing:
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    elif before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before
