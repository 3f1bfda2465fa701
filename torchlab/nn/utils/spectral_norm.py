"""Spectral normalization by a forward hook, the older form of `parametrizations.spectral_norm`.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.spectral_norm.html;
arXiv:1802.05957.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.autograd.grad_mode import no_grad
from torchlab.nn import functional as F
from torchlab.nn.parameter import Parameter
from torchlab.nn.utils.parametrizations import as_matrix, default_dim


class SpectralNorm:
    """The hook: before each forward, weight = weight_orig / σ, with the largest singular value σ
    from the vectors {name}_u and {name}_v, which get better at each forward in training."""

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def matrix(self, weight: Any) -> Any:
        """The weight as (size of `dim`, all the rest)."""
        return aten.reshape(weight, (1, -1)).T if weight.ndim == 1 else as_matrix(weight, self.dim)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """weight_orig / σ; `do_power_iteration`: after so many steps as the hook was given."""
        weight, u, v = (getattr(module, f"{self.name}_{end}") for end in ("orig", "u", "v"))
        matrix = self.matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    turned = aten.transpose(matrix, 0, 1)
                    aten.copy_(v, F.normalize(aten.mv(turned, u), dim=0, eps=self.eps))
                    aten.copy_(u, F.normalize(aten.mv(matrix, v), dim=0, eps=self.eps))
                # Copies: the buffers change again before the backward of two forwards.
                u, v = aten.clone(u), aten.clone(v)
        return weight / aten.dot(u, aten.mv(matrix, v))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def _find(module: Any, name: str) -> int | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            return int(key)
    return None


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Let the weight be divided by its largest singular value; the parameter is {name}_orig.
    Raises RuntimeError the second time."""
    if _find(module, name) is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    hook = SpectralNorm(name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    shape = hook.matrix(weight.detach()).shape
    with no_grad():
        u, v = (
            F.normalize(aten.normal_(aten.new_empty(weight.detach(), (n,)), 0, 1), dim=0, eps=eps)
            for n in shape
        )
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a parameter again. Raises ValueError if it has no spectral norm."""
    key = _find(module, name)
    if key is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hook = module._forward_pre_hooks.pop(key)
    with no_grad():
        weight = hook.compute_weight(module, do_power_iteration=False)
    for end in ("", "_u", "_v", "_orig"):
        delattr(module, name + end)
    module.register_parameter(name, Parameter(weight.detach()))
    return module


__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]
