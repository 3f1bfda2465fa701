"""RMSprop (Hinton, 2012), also centered (Graves, 2013) and with momentum.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.RMSprop.html
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from torchlab._core.tensor import Tensor
from torchlab.optim._common import check_lr, check_options, count, counter
from torchlab.optim._elementwise import (
    Elementwise,
    add_scaled,
    average,
    average_of_squares,
    zeros_like,
)


class RMSprop(Elementwise):
    """v ← αv + (1 - α)g²;  p ← p - lr·g / (√v + eps).

    centered: √(v - ḡ²) with the mean gradient ḡ instead. momentum: p moves by lr·b, b ← momentum·b
    + g / (√v + eps). weight_decay: added to g as weight_decay·p. Raises ValueError for options out
    of range.
    """

    _late: ClassVar[dict[str, Any]] = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr, None, capturable)
        check_options(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, s: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        s["step"] = counter(p, group)
        s["square_avg"] = zeros_like(p)
        if group["momentum"] > 0:
            s["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            s["grad_avg"] = zeros_like(p)

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        momentum = ("momentum_buffer",) if group["momentum"] > 0 else ()
        return ("square_avg", *momentum, *(("grad_avg",) if group["centered"] else ()))

    def _facts(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> Any:
        count(s["step"])
        return lr, group["alpha"], group["eps"], group["momentum"], group["centered"]

    def _array_step(self, x: Any, d: Any, state: Any, a: Any, c: Any, facts: Any) -> None:
        lr, alpha, eps, momentum, centered = facts
        v = state[0]
        average_of_squares(v, d, alpha, a)
        if centered:
            mean = state[-1]
            average(mean, d, 1 - alpha, a)
            np.subtract(v, np.multiply(mean, mean, out=a), out=a)
            np.sqrt(a, out=a)
        else:
            np.sqrt(v, out=a)
        np.divide(d, np.add(a, eps, out=a), out=a)
        if momentum > 0:
            b = state[1]
            np.add(np.multiply(b, momentum, out=b), a, out=b)
            np.multiply(b, lr, out=a)
        else:
            np.multiply(a, lr, out=a)
        np.subtract(x, a, out=x)

    def _tensor_step(self, p: Any, d: Any, state: Any, facts: Any, copy: Any) -> None:
        lr, alpha, eps, momentum, centered = facts
        v = state[0]
        v.mul_(alpha).addcmul_(d, d, value=1 - alpha)
        square = v
        if centered:
            mean = state[-1]
            mean.lerp_(d, 1 - alpha)
            square = v.addcmul(copy(mean), copy(mean), value=-1)
        step = d / square.sqrt().add(eps)
        if momentum > 0:
            step = copy(state[1].mul_(momentum).add_(step))
        add_scaled(p, step, -lr)


__all__ = ["RMSprop"]
