"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.ASGD.html
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from torchlab._core.tensor import Tensor
from torchlab.optim._common import check_lr, check_options, count, counter, number
from torchlab.optim._elementwise import Elementwise, add_scaled, zeros_like


class ASGD(Elementwise):
    """p ← p·(1 - λη) - ηg;  p̄ ← p̄ + μ(p - p̄), where η = lr / (1 + λ·lr·t)^α and μ = 1 / max(1, t -
    t0). The average p̄ is `state[p]["ax"]`.

    weight_decay: added to g as weight_decay·p. Raises ValueError for negative lr or weight_decay.
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
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr, None, capturable)
        check_options(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for p in group["params"]:
                own = self.state.get(p, {})
                for name in ("eta", "mu"):
                    if own and not isinstance(own[name], Tensor):
                        own[name] = counter(p, group, float(own[name]))

    def _start(self, s: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        s["step"] = counter(p, group)
        s["eta"] = counter(p, group, number(group["lr"]))
        s["mu"] = counter(p, group, 1.0)
        s["ax"] = zeros_like(p)

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("ax",)

    def _facts(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> Any:
        count(s["step"])
        eta = s["eta"].item()
        return eta, 1 - group["lambd"] * eta, s["mu"].item()

    def _after(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        t = s["step"].item()
        steps = s["step"] if group["foreach"] else t
        base = 1 + group["lambd"] * lr * steps
        if group["foreach"]:  # PyTorch rounds here to the counter's dtype, the power correctly
            eta = lr / (base.double() ** group["alpha"]).to(dtype=steps.dtype)
        else:
            eta = lr / base ** group["alpha"]
        if isinstance(eta, Tensor):
            s["eta"].copy_(eta)
        else:
            s["eta"].fill_(eta)
        s["mu"].fill_(1 / max(1, t - group["t0"]))

    def _array_step(self, x: Any, d: Any, state: Any, a: Any, c: Any, facts: Any) -> None:
        (ax,), (eta, shrink, mu) = state, facts
        np.multiply(x, shrink, out=x)
        np.subtract(x, np.multiply(d, eta, out=a), out=x)
        if mu == 1:
            np.copyto(ax, x)
        else:
            np.add(ax, np.multiply(np.subtract(x, ax, out=a), mu, out=a), out=ax)

    def _tensor_step(self, p: Any, d: Any, state: Any, facts: Any, copy: Any) -> None:
        (ax,), (eta, shrink, mu) = state, facts
        p.mul_(shrink)
        add_scaled(p, d, -eta)
        if mu == 1:
            ax.copy_(p)
        else:
            ax.add_((p - ax) * mu)


__all__ = ["ASGD"]
