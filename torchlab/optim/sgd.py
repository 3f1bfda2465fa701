"""Stochastic gradient descent with momentum.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.SGD.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.writes import wrote
from torchlab._core.tensor import Tensor
from torchlab.optim._common import (
    SCRATCH,
    as_arrays,
    check_fused,
    check_lr,
    chunks,
    gradients,
    number,
    recording,
    run_closure,
)
from torchlab.optim._fused import sgd_kernel
from torchlab.optim.optimizer import Optimizer


class SGD(Optimizer):
    """b ← momentum·b + (1 - dampening)·g;  p ← p - lr·b, where g = ∂loss/∂p + weight_decay·p.

    nesterov: p moves by g + momentum·b instead. maximize: climb. The first b is g itself.
    Raises ValueError for negative options and for nesterov without momentum or with dampening.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_lr(lr, None, False)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_fused(fused, foreach, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (("nesterov", False), ("maximize", False), ("foreach", None),
                                ("differentiable", False), ("fused", False)):  # fmt: skip
                group.setdefault(name, value)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; returns what `closure` returned."""
        loss = run_closure(closure)
        for group in self.param_groups:
            if group["fused"]:
                gradients(group, "`_fused_sgd` does not support sparse gradients")
            for p in group["params"]:
                g = p._g
                if g is None:
                    continue
                momentum = group["momentum"]
                buffer = self.state[p].get("momentum_buffer") if momentum != 0 else None
                known = (g,) if buffer is None else (g, buffer)
                if not as_arrays(group, p, known):
                    update = _tensor_step
                elif group["fused"] and (momentum == 0 or buffer is not None):
                    update = _fused_step
                else:
                    update = _array_step
                buffer = update(p, g, buffer, group)
                if momentum != 0:
                    self.state[p]["momentum_buffer"] = buffer
        return loss


def _array_step(p: Tensor, g: Tensor, buffer: Any, group: dict[str, Any]) -> Any:
    """The step on arrays; returns the momentum buffer."""
    lr, momentum, dampening = number(group["lr"]), group["momentum"], group["dampening"]
    decay, nesterov, maximize = number(group["weight_decay"]), group["nesterov"], group["maximize"]
    first = momentum != 0 and buffer is None
    if first:
        buffer = aten.empty_like(aten.detach(p))
    has_buffer = momentum != 0
    multiply, add, subtract = np.multiply, np.add, np.subtract
    scratch = SCRATCH.of(p._a.dtype)
    for pieces in chunks((p._a, g._a, buffer._a) if has_buffer else (p._a, g._a)):
        x, d = pieces[0], pieces[1]
        n = x.size
        a, b = scratch[0][:n], scratch[1][:n]
        if maximize:
            d = np.negative(d, out=a)
        if decay != 0:
            multiply(x, decay, out=b)
            d = add(b, d, out=a)
        if has_buffer:
            m = pieces[2]
            if first:
                m[...] = d
            else:
                multiply(m, momentum, out=m)
                add(m, multiply(d, 1 - dampening, out=b) if dampening != 0 else d, out=m)
            d = add(multiply(m, momentum, out=b), d, out=b) if nesterov else m
        subtract(x, multiply(d, lr, out=b), out=x)
    wrote(p)
    if has_buffer:
        wrote(buffer)
    return buffer


def _fused_step(p: Tensor, g: Tensor, buffer: Any, group: dict[str, Any]) -> Any:
    """The step as one generated loop; returns the momentum buffer."""
    momentum, decay = group["momentum"], number(group["weight_decay"])
    kernel = sgd_kernel(
        p._k.dtype, group["maximize"], decay != 0, buffer is not None, group["nesterov"]
    )
    if kernel is None:
        return _array_step(p, g, buffer, group)
    lr = number(group["lr"])
    if buffer is None:
        kernel.call(p._a, g._a, lr, decay)
    else:
        kernel.call(p._a, g._a, buffer._a, lr, decay, momentum, 1 - group["dampening"])
        wrote(buffer)
    wrote(p)
    return buffer


def _tensor_step(p: Any, g: Any, buffer: Any, group: dict[str, Any]) -> Any:
    """The step in operators; returns the momentum buffer."""
    lr, momentum, decay = group["lr"], group["momentum"], group["weight_decay"]
    if not group["differentiable"]:
        lr = number(lr)
    with recording(group):
        d = -g if group["maximize"] else g
        if number(decay) != 0:
            d = d + p * decay
        if momentum != 0:
            if buffer is None:
                buffer = aten.clone(d).detach()  # as in PyTorch, also where the step is recorded
            else:
                buffer.mul_(momentum).add_(d * (1 - group["dampening"]))
            d = d + buffer * momentum if group["nesterov"] else buffer
        p.add_(d * -lr)
    return buffer


__all__ = ["SGD"]
