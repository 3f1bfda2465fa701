"""Adadelta (Zeiler, 2012): steps in the units of the parameter.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.Adadelta.html
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from torchlab.optim._common import check_lr, check_options, count
from torchlab.optim._elementwise import Elementwise, add_scaled, average_of_squares


class Adadelta(Elementwise):
    """v ← ρv + (1 - ρ)g²;  δ = g·√(u + eps) / √(v + eps);  u ← ρu + (1 - ρ)δ²;  p ← p - lr·δ.

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
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr, None, capturable)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_options(epsilon=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def _facts(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> Any:
        count(s["step"])
        return lr, group["rho"], group["eps"]

    def _array_step(self, x: Any, d: Any, state: Any, a: Any, c: Any, facts: Any) -> None:
        (v, u), (lr, rho, eps) = state, facts
        average_of_squares(v, d, rho, a)
        np.sqrt(np.add(u, eps, out=a), out=a)
        np.sqrt(np.add(v, eps, out=c), out=c)
        np.multiply(np.divide(a, c, out=a), d, out=a)
        average_of_squares(u, a, rho, c)
        np.subtract(x, np.multiply(a, lr, out=a), out=x)

    def _tensor_step(self, p: Any, d: Any, state: Any, facts: Any, copy: Any) -> None:
        (v, u), (lr, rho, eps) = state, facts
        v.mul_(rho).addcmul_(d, d, value=1 - rho)
        delta = u.add(eps).sqrt() / v.add(eps).sqrt() * d
        u.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        add_scaled(p, delta, -lr)


__all__ = ["Adadelta"]
