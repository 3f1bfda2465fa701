"""Resilient backpropagation (Riedmiller and Braun, 1993): only the gradient's sign counts.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.Rprop.html
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.optim._common import check_lr, count, counter, number
from torchlab.optim._elementwise import Elementwise, filled_like, zeros_like


class Rprop(Elementwise):
    """p ← p - sign(g)·η, where η grows by etas[1] while g keeps its sign; when the sign changes η
    shrinks by etas[0] and p stays. η stays within step_sizes and starts at lr.

    Raises ValueError for options out of range.
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
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr, None, capturable)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, s: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        s["step"] = counter(p, group)
        s["prev"] = zeros_like(p)
        s["step_size"] = filled_like(p, number(group["lr"]))

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("prev", "step_size")

    def _facts(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> Any:
        count(s["step"])
        return *group["etas"], *group["step_sizes"]

    def _array_step(self, x: Any, d: Any, state: Any, a: Any, c: Any, facts: Any) -> None:
        (before, size), (less, more, low, high) = state, facts
        np.multiply(d, before, out=a)
        turned = a < 0
        c.fill(1)
        np.copyto(c, more, where=a > 0)
        np.copyto(c, less, where=turned)
        np.multiply(size, c, out=size)
        np.minimum(np.maximum(size, low, out=size), high, out=size)
        np.copyto(before, d)
        np.copyto(before, 0, where=turned)
        np.subtract(x, np.multiply(np.sign(before, out=a), size, out=a), out=x)

    def _tensor_step(self, p: Any, d: Any, state: Any, facts: Any, copy: Any) -> None:
        (before, size), (less, more, low, high) = state, facts
        product = d * copy(before)
        turned = product < 0
        grows = aten.full_like(product, 1).masked_fill(product > 0, more)
        size.mul_(grows.masked_fill(turned, less)).clamp_(low, high)
        before.copy_(d.masked_fill(turned, 0))
        p.addcmul_(copy(before).sign(), copy(size), value=-1)


__all__ = ["Rprop"]
