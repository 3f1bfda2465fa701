"""The package `functorch` from before its functions came to `torch.func`; each warns of that.

Source: https://docs.pytorch.org/docs/2.13/func.migrating.html
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from torchlab import func
from torchlab._functorch import make_functional as _making
from torchlab._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers
from torchlab.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble",
    "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "make_functional", "make_functional_with_buffers", "make_fx", "vjp", "vmap",
]  # fmt: skip


def _warning(fn: Callable[..., Any], instead: str) -> Callable[..., Any]:
    name = fn.__name__

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            "We've integrated functorch into PyTorch. As the final step of the integration,"
            f" `functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future"
            f" version of PyTorch >= 2.3. Please use `{instead}` instead; see the PyTorch 2.0"
            " release notes and/or the `torch.func` migration guide for more details"
            " https://pytorch.org/docs/main/func.migrating.html",
            FutureWarning,
            stacklevel=2,
        )
        return fn(*args, **kwargs)

    return call


vmap = _warning(func.vmap, "torch.vmap")
grad = _warning(func.grad, "torch.func.grad")
grad_and_value = _warning(func.grad_and_value, "torch.func.grad_and_value")
vjp = _warning(func.vjp, "torch.func.vjp")
jvp = _warning(func.jvp, "torch.func.jvp")
jacrev = _warning(func.jacrev, "torch.func.jacrev")
jacfwd = _warning(func.jacfwd, "torch.func.jacfwd")
hessian = _warning(func.hessian, "torch.func.hessian")
functionalize = _warning(func.functionalize, "torch.func.functionalize")
make_functional = _warning(_making.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _warning(
    _making.make_functional_with_buffers, "torch.func.functional_call"
)
combine_state_for_ensemble = _warning(
    _making.combine_state_for_ensemble, "torch.func.stack_module_state"
)
