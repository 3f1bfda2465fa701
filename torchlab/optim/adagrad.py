"""Adagrad (Duchi, Hazan and Singer, 2011), also for sparse gradients.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.Adagrad.html
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.writes import wrote
from torchlab._core.tensor import Tensor
from torchlab.optim._common import (
    check_fused,
    check_lr,
    check_options,
    count,
    counter,
    number,
    recording,
)
from torchlab.optim._elementwise import Elementwise, add_scaled, filled_like
from torchlab.optim._fused import adagrad_kernel


class Adagrad(Elementwise):
    """h ← h + g²;  p ← p - lr / (1 + (t - 1)·lr_decay) · g / (√h + eps), where h starts at
    initial_accumulator_value.

    weight_decay: added to g as weight_decay·p. With a sparse gradient only its elements change.
    Raises ValueError for options out of range; RuntimeError for a sparse gradient together with
    weight_decay or fused.
    """

    _late: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr, None, False)
        check_options(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self._start(self.state[p], p, group)

    def share_memory(self) -> None:
        """Move the sums to memory that other processes share."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _start(self, s: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        s["step"] = counter(p, group)
        s["sum"] = filled_like(p, group["initial_accumulator_value"])

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def _gradients(self, group: dict[str, Any]) -> list[tuple[Tensor, Tensor]]:
        found = [(p, p._g) for p in group["params"] if p._g is not None]
        sparse = any(g.is_sparse for _, g in found)
        if group["fused"] and (sparse or any(p.is_complex() for p, _ in found)):
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if sparse and group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        return found

    def _facts(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> Any:
        return lr / (1 + (count(s["step"]) - 1) * group["lr_decay"]), group["eps"]

    def _move(
        self, p: Any, g: Any, s: dict[str, Any], names: tuple[str, ...], group: dict[str, Any]
    ) -> None:
        if not g.is_sparse:
            super()._move(p, g, s, names, group)
            return
        lr = group["lr"] if group["differentiable"] else number(group["lr"])
        rate, eps = self._facts(s, group, lr)
        with recording(group):
            g = g.coalesce()  # the step is not linear in g: each place once
            where, d = tuple(g._indices()), g._values()
            if group["maximize"]:
                d = -d
            total = s["sum"][where] + d * d
            s["sum"][where] = total
            p[where] = p[where] - d / (total.sqrt() + eps) * rate

    def _array_step(self, x: Any, d: Any, state: Any, a: Any, c: Any, facts: Any) -> None:
        (h,), (rate, eps) = state, facts
        np.add(h, np.multiply(d, d, out=a), out=h)
        np.add(np.sqrt(h, out=a), eps, out=a)
        np.multiply(np.divide(d, a, out=a), rate, out=a)
        np.subtract(x, a, out=x)

    def _fused_step(self, p: Any, g: Any, state: Any, facts: Any, group: dict[str, Any]) -> bool:
        kernel = adagrad_kernel(p._k.dtype, group["maximize"], group["weight_decay"] != 0)
        if kernel is None:
            return False
        kernel.call(p._a, g._a, state[0]._a, *facts, group["weight_decay"])
        wrote(p)
        wrote(state[0])
        return True

    def _tensor_step(self, p: Any, d: Any, state: Any, facts: Any, copy: Any) -> None:
        (h,), (rate, eps) = state, facts
        h.addcmul_(d, d, value=1)
        add_scaled(p, d / aten.sqrt(h).add(eps), -rate)


__all__ = ["Adagrad"]
