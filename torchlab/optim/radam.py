"""RAdam (Liu and others, 2019): Adam that waits for its mean square to be worth dividing by.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.RAdam.html
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from torchlab.optim._common import check_betas, check_lr, check_options, count
from torchlab.optim._elementwise import Elementwise, add_scaled, average, average_of_squares


class RAdam(Elementwise):
    """With Adam's averages m and v: p ← p - lr·m̂·r·√(1 - β₂ᵗ) / (√v + eps), where r rectifies the
    variance; while the length of the average ρₜ ≤ 5, p ← p - lr·m̂.

    weight_decay: added to g as weight_decay·p; decoupled_weight_decay: p shrinks by 1 -
    lr·weight_decay instead. Raises ValueError for options out of range.
    """

    _late: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _facts(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> Any:
        beta1, beta2 = group["betas"]
        t = count(s["step"])
        bias2 = 1 - beta2**t
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * t * beta2**t / bias2
        scale = None
        if length > 5:
            above, below = (length - 4) * (length - 2), (limit - 4) * (limit - 2)
            scale = math.sqrt(above * limit / (below * length)) * math.sqrt(bias2)
        return lr / (1 - beta1**t), scale, 1 - beta1, beta2, group["eps"]

    def _array_step(self, x: Any, d: Any, state: Any, a: Any, c: Any, facts: Any) -> None:
        (m, v), (rate, scale, share1, beta2, eps) = state, facts
        average(m, d, share1, a)
        average_of_squares(v, d, beta2, a)
        if scale is None:
            np.multiply(m, rate, out=a)
        else:
            np.add(np.sqrt(v, out=a), eps, out=a)
            np.multiply(np.divide(m, a, out=a), rate * scale, out=a)
        np.subtract(x, a, out=x)

    def _tensor_step(self, p: Any, d: Any, state: Any, facts: Any, copy: Any) -> None:
        (m, v), (rate, scale, share1, beta2, eps) = state, facts
        m.lerp_(d, share1)
        v.mul_(beta2).addcmul_(d, d, value=1 - beta2)
        if scale is None:
            add_scaled(p, copy(m), -rate)
        else:
            add_scaled(p, copy(m) / v.sqrt().add(eps), -rate * scale)


__all__ = ["RAdam"]
