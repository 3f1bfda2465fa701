"""SparseAdam: Adam for sparse gradients, which touches only the elements that these name.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.SparseAdam.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.autograd.grad_mode import no_grad
from torchlab.optim._common import check_betas, check_lr, check_options, number, run_closure
from torchlab.optim._elementwise import zeros_like
from torchlab.optim.optimizer import Optimizer


class SparseAdam(Optimizer):
    """Adam's formula where the gradient has elements; elsewhere neither the parameter nor its
    averages change ("lazy" Adam). Parameters are dense and real, gradients sparse.

    Raises ValueError for options out of range and for sparse or complex parameters; RuntimeError
    for a dense gradient.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_lr(lr, None, False)
        check_options(epsilon=eps)
        check_betas(betas)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)
        sparse, complexes = [], []
        for i, group in enumerate(self.param_groups):
            for j, p in enumerate(group["params"]):
                if p.is_sparse:
                    sparse.append([i, j])
                if p.is_complex():
                    complexes.append([i, j])
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        if complexes:
            raise ValueError(
                f"Complex params at indices {complexes}: SparseAdam does not support complex "
                "parameters"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; returns what `closure` returned."""
        loss = run_closure(closure)
        for group in self.param_groups:
            found = [(p, p._g) for p in group["params"] if p._g is not None]
            if not all(g.is_sparse for _, g in found):
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead"
                )
            for p, g in found:
                s = self.state[p]
                if not s:
                    s["step"] = 0
                    s["exp_avg"], s["exp_avg_sq"] = zeros_like(p), zeros_like(p)
                s["step"] += 1
                with no_grad():
                    _move(p, g.coalesce(), s, group)
        return loss


def _move(p: Any, g: Any, s: dict[str, Any], group: dict[str, Any]) -> None:
    """Change the elements of `p` and its averages that `g`, coalesced, has."""
    where, d = tuple(g._indices()), g._values()
    if d.numel() == 0:
        return
    if group["maximize"]:
        d = -d
    beta1, beta2 = group["betas"]
    m, v = s["exp_avg"], s["exp_avg_sq"]
    mean = m[where]
    mean = mean + (d - mean) * (1 - beta1)
    square = v[where]
    square = square + (d * d - square) * (1 - beta2)
    m[where], v[where] = mean, square
    t = s["step"]
    rate = number(group["lr"]) * math.sqrt(1 - beta2**t) / (1 - beta1**t)
    p[where] = p[where] - mean / (aten.sqrt(square) + group["eps"]) * rate


__all__ = ["SparseAdam"]
