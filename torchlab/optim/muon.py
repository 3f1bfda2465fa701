"""Muon (Jordan, 2024): momentum whose matrix is made orthogonal by Newton and Schulz's iteration.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.Muon.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.optim._common import gradients, number, run_closure
from torchlab.optim._elementwise import zeros_like
from torchlab.optim.optimizer import Optimizer


class Muon(Optimizer):
    """b ← momentum·b + (1 - momentum)·g;  p ← p·(1 - lr·weight_decay) - lr'·orthogonal(b) for
    matrices p; other parameters need another optimizer.

    nesterov: orthogonal of g + momentum·(b - g) instead. ns_steps, ns_coefficients: the iteration's
    count and its polynomial. adjust_lr_fn: "original" (default): lr' = lr·√max(1, rows / columns);
    "match_rms_adamw": lr' = 0.2·lr·√max(rows, columns). Raises ValueError for options out of range
    and for a parameter that is no matrix.
    """

    __module__ = "torchlab.optim"  # as in PyTorch: files name it so

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in ("original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{p.size()}"
                    )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; returns what `closure` returned."""
        loss = run_closure(closure)
        for group in self.param_groups:
            found = gradients(group, "Muon does not support sparse gradients")
            if any(p.is_complex() for p, _ in found):
                raise RuntimeError("Muon does not support complex parameters")
            for p, g in found:
                s = self.state[p]
                if "momentum_buffer" not in s:
                    s["momentum_buffer"] = zeros_like(g)
                with no_grad():
                    _move(p, g, s["momentum_buffer"], group)
        return loss


def _move(p: Any, g: Any, b: Any, group: dict[str, Any]) -> None:
    lr, momentum = number(group["lr"]), group["momentum"]
    b.lerp_(g, 1 - momentum)
    update = g.lerp(b, momentum) if group["nesterov"] else b
    update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
    rows, columns = p.shape
    if group["adjust_lr_fn"] == "match_rms_adamw":
        rate = lr * 0.2 * math.sqrt(max(rows, columns))
    else:
        rate = lr * math.sqrt(max(1, rows / columns))
    p.mul_(1 - lr * group["weight_decay"])
    p.add_(update, alpha=-rate)


def _orthogonal(x: Any, coefficients: Any, steps: int, eps: float) -> Any:
    """Nearly the orthogonal factor of a matrix: its singular values are driven towards one by x ←
    a·x + (b·xxᵀ + c·(xxᵀ)²)x, in bfloat16, as PyTorch."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = x.to(dtype=dt.bfloat16)
    tall = x.shape[0] > x.shape[1]
    if tall:  # the smaller product
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        square = x @ x.T
        x = aten.addmm(x, aten.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


__all__ = ["Muon"]
