"""NAdam (Dozat, 2016): Adam with Nesterov's momentum.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.NAdam.html
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.writes import wrote
from torchlab._core.tensor import Tensor
from torchlab.optim._common import check_betas, check_lr, check_options, count, counter
from torchlab.optim._elementwise import (
    Elementwise,
    add_scaled,
    average,
    average_of_squares,
    zeros_like,
)


class NAdam(Elementwise):
    """With μₜ = β₁(1 - ½·0.96^(t·momentum_decay)) and πₜ = μ₁⋯μₜ, and Adam's averages m and v:
    p ← p - lr·((1 - μₜ)g / (1 - πₜ) + μₜ₊₁m / (1 - πₜ₊₁)) / (√v̂ + eps).

    weight_decay: added to g as weight_decay·p; decoupled_weight_decay: p shrinks by 1 -
    lr·weight_decay instead. Raises ValueError for options out of range.
    """

    _late: ClassVar[dict[str, Any]] = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_options(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for p in group["params"]:
                own = self.state.get(p)
                if own and not isinstance(own["mu_product"], Tensor):
                    own["mu_product"] = counter(p, group, float(own["mu_product"]))

    def _start(self, s: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        s["step"] = counter(p, group)
        s["mu_product"] = counter(p, group, 1.0)
        s["exp_avg"] = zeros_like(p)
        s["exp_avg_sq"] = zeros_like(p)

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _facts(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> Any:
        beta1, beta2 = group["betas"]
        t = count(s["step"])
        now, then = (
            beta1 * (1.0 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (t, t + 1)
        )
        a = s["mu_product"]._a
        np.multiply(a, now, out=a)
        wrote(s["mu_product"])
        # recorded steps compute with the tensor, as PyTorch's do, in its dtype
        product: Any = aten.clone(s["mu_product"]) if group["differentiable"] else a.item()
        rates = lr * (1 - now) / (1 - product), lr * then / (1 - product * then)
        return *rates, 1 - beta1, beta2, 1 - beta2**t, group["eps"]

    def _array_step(self, x: Any, d: Any, state: Any, a: Any, c: Any, facts: Any) -> None:
        (m, v), (now, then, share1, beta2, bias2, eps) = state, facts
        average(m, d, share1, a)
        average_of_squares(v, d, beta2, a)
        np.sqrt(np.divide(v, bias2, out=a), out=a)
        np.add(a, eps, out=a)
        for y, rate in ((d, now), (m, then)):
            np.multiply(np.divide(y, a, out=c), rate, out=c)
            np.subtract(x, c, out=x)

    def _tensor_step(self, p: Any, d: Any, state: Any, facts: Any, copy: Any) -> None:
        (m, v), (now, then, share1, beta2, bias2, eps) = state, facts
        m.lerp_(d, share1)
        v.mul_(beta2).addcmul_(d, d, value=1 - beta2)
        divisor = aten.sqrt(v / bias2) + eps
        add_scaled(p, d / divisor, -now)
        add_scaled(p, copy(m) / divisor, -then)


__all__ = ["NAdam"]
