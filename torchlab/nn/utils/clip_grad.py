"""Gradient clipping. Source:
https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.clip_grad_norm_.html"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any, cast

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad


def _gradients(parameters: Any) -> list[Any]:
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in parameters if p.grad is not None]


def _norm(t: Any, p: float) -> Any:
    """The p-norm of all elements, as a 0-d tensor."""
    t = t.abs()
    if p == math.inf:
        return t.max()
    if p == -math.inf:
        return t.min()
    if p == 0:
        return (t != 0).sum().to(t.dtype)
    if p == 2.0:
        return (t * t).sum().sqrt()
    return (t**p).sum() ** (1.0 / p)


def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of the tensors' norms, as if they were one vector (0-d).

    Raises RuntimeError if it is not finite and `error_if_nonfinite`.
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    p = float(norm_type)
    if not tensors:
        return aten.tensor(0.0)
    with no_grad():
        norms = [_norm(t, p) if t.numel() else aten.zeros((), dtype=t.dtype) for t in tensors]
        place = tensors[0].device
        total = _norm(aten.stack([n.to(place) for n in norms]), p)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {p} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients in place by max_norm / (total_norm + 1e-6) where that is below 1."""
    with no_grad():
        ratio: Any = float(max_norm) / cast(Any, total_norm + 1e-6)
        factor = ratio.clamp(max=1.0)
        for g in _gradients(parameters):
            g.mul_(factor.to(g.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients in place so that their common norm is at most `max_norm`; returns the
    norm
    they had (0-d). Raises RuntimeError if it is not finite and `error_if_nonfinite`."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limit each element of the gradients, in place, to [-clip_value, clip_value]."""
    value = float(clip_value)
    with no_grad():
        for g in _gradients(parameters):
            g.clamp_(min=-value, max=value)


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """`clip_grad_norm_` under the name that PyTorch deprecates."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        category=FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
