"""`torch.nn.modules.module`: Module and the hooks that hold for all modules."""

from __future__ import annotations

from torchlab.nn._calls import GLOBAL as _GLOBAL
from torchlab.nn._calls import (
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torchlab.nn._state import _EXTRA as _EXTRA_STATE_KEY_SUFFIX
from torchlab.nn._state import IncompatibleKeys as _IncompatibleKeys
from torchlab.nn.module import Module

# Libraries that register by themselves read these tables.
_global_parameter_registration_hooks = _GLOBAL.parameter
_global_buffer_registration_hooks = _GLOBAL.buffer
_global_module_registration_hooks = _GLOBAL.module
_global_forward_hooks, _global_forward_pre_hooks = _GLOBAL.forward, _GLOBAL.forward_pre
_global_backward_hooks, _global_backward_pre_hooks = _GLOBAL.backward, _GLOBAL.backward_pre

__all__ = [
    "Module", "_EXTRA_STATE_KEY_SUFFIX", "_IncompatibleKeys",
    "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip
