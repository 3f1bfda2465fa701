"""Adamax (Kingma and Ba, 2014): Adam with the largest gradient in place of the mean square.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.Adamax.html
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab.optim._common import check_betas, check_lr, check_options, count
from torchlab.optim._elementwise import Elementwise, add_scaled, average


class Adamax(Elementwise):
    """m ← β₁m + (1 - β₁)g;  u ← max(β₂u, |g| + eps);  p ← p - lr / (1 - β₁ᵗ) · m / u.

    weight_decay: added to g as weight_decay·p. Raises ValueError for options out of range.
    """

    _late: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr, None, capturable)
        check_options(epsilon=eps)
        check_betas(betas)
        check_options(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    def _facts(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> Any:
        beta1, beta2 = group["betas"]
        return lr / (1 - beta1 ** count(s["step"])), 1 - beta1, beta2, group["eps"]

    def _array_step(self, x: Any, d: Any, state: Any, a: Any, c: Any, facts: Any) -> None:
        (m, u), (rate, share1, beta2, eps) = state, facts
        average(m, d, share1, a)
        np.add(np.abs(d, out=a), eps, out=a)
        np.maximum(np.multiply(u, beta2, out=u), a, out=u)
        np.divide(m, u, out=a)
        np.subtract(x, np.multiply(a, rate, out=a), out=x)

    def _tensor_step(self, p: Any, d: Any, state: Any, facts: Any, copy: Any) -> None:
        (m, u), (rate, share1, beta2, eps) = state, facts
        m.lerp_(d, share1)
        u.copy_(aten.maximum(u * beta2, d.abs().add(eps)))
        add_scaled(p, copy(m) / copy(u), -rate)


__all__ = ["Adamax"]
