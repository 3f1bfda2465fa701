"""`torchlab.func`: transforms of functions, which nest in any order.

    jacobian = func.jacrev(f)(x)
    per_sample = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(params, inputs, targets)

Source: https://docs.pytorch.org/docs/2.13/func.html
"""

from __future__ import annotations

import importlib
from typing import Any

from torchlab._functorch.vmap import vmap
from torchlab.func.forward import jvp, linearize
from torchlab.func.functionalizing import functionalize
from torchlab.func.jacobians import hessian, jacfwd, jacrev
from torchlab.func.rearranging import rearrange
from torchlab.func.reverse import grad, grad_and_value, vjp
from torchlab.func.unwrapping import debug_unwrap

_HIGHER = {
    "functional_call": ("torchlab.nn.utils.functional_state", "functional_call"),
    "stack_module_state": ("torchlab.nn.utils.functional_state", "stack_module_state"),
    "replace_all_batch_norm_modules_": (
        "torchlab.nn.utils.functional_state", "replace_all_batch_norm_modules_",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HIGHER:
        raise AttributeError(f"module 'torchlab.func' has no attribute '{name}'")
    module, attribute = _HIGHER[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HIGHER})


__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "linearize", "rearrange", "replace_all_batch_norm_modules_",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip
