"""The public name space `torchlab.autograd`."""

from __future__ import annotations

from torchlab.autograd.api import backward, grad
from torchlab.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]
