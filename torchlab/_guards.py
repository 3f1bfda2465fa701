"""`torch._guards`: which mode of fake tensors is on.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_fake_tensor.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import pytree
from torchlab._core.tape import TLS
from torchlab._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost mode of fake tensors that is on in this thread; None without one."""
    for mode in reversed(TLS.dispatch_modes):
        if isinstance(mode, FakeTensorMode):
            return mode
    return None


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The mode that is on, or that of the fakes among `inputs`; None without one."""
    found = active_fake_mode()
    if found is not None:
        return found
    fakes = (x for x in pytree.tree_leaves(inputs) if isinstance(x, FakeTensor))
    return next((x.fake_mode for x in fakes), None)
