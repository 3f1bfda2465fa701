"""Weight normalization by a forward hook, the older form of `parametrizations.weight_norm`.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.weight_norm.html;
arXiv:1602.07868.
"""

from __future__ import annotations

import warnings
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.nn.parameter import Parameter
from torchlab.nn.utils.parametrizations import scaled_to


class WeightNorm:
    """The hook: before each forward, weight = g · v / ‖v‖."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """The weight of the present g and v."""
        g, v = (getattr(module, f"{self.name}_{end}") for end in "gv")
        return scaled_to(g, v, self.dim)

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def _find(module: Any, name: str) -> int | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            return int(key)
    return None


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Let the weight be g · v / ‖v‖, with parameters {name}_g and {name}_v; the norms are over all
    dimensions but `dim`, over all if that is None. Raises RuntimeError the second time."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        category=FutureWarning,
        stacklevel=2,
    )
    if _find(module, name) is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    del module._parameters[name]
    g = aten.norm_except_dim(weight.detach(), 2, hook.dim)
    module.register_parameter(f"{name}_g", Parameter(g))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a parameter again. Raises ValueError if it has no weight norm."""
    key = _find(module, name)
    if key is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    hook = module._forward_pre_hooks.pop(key)
    weight = hook.compute_weight(module)
    delattr(module, name)
    del module._parameters[f"{name}_g"]
    del module._parameters[f"{name}_v"]
    setattr(module, name, Parameter(weight.detach()))
    return module


__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]
