"""Adafactor (Shazeer and Stern, 2018): of the mean square only its row and column means are kept.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.Adafactor.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core import info
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.optim._common import count, counter, gradients, number, run_closure
from torchlab.optim.optimizer import Optimizer


class Adafactor(Optimizer):
    """p ← p - α·u / max(1, rms(u) / d), where u = g / √v, α = max(eps₂, rms(p))·min(lr, 1 / √t) and
    v is a mean of g² with the weight t^beta2_decay for the new g². For parameters of two and more
    dimensions v is the product of the means of its rows and columns, over the mean of those.

    weight_decay: p shrinks by 1 - lr·weight_decay. eps: (the least √v, by default the dtype's
    eps; the least scale). Raises ValueError for options out of range.
    """

    __module__ = "torchlab.optim"  # as in PyTorch: files name it so

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            for p in group["params"]:
                own = self.state.get(p)
                if own and not isinstance(own["step"], Tensor):
                    own["step"] = counter(p, group, float(own["step"]))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; returns what `closure` returned."""
        loss = run_closure(closure)
        for group in self.param_groups:
            found = gradients(group, "Adafactor does not support sparse gradients")
            if any(p.is_complex() for p, _ in found):
                raise RuntimeError("Adafactor does not support complex parameters")
            for p, g in found:
                s = self.state[p]
                with no_grad():
                    if not s:
                        _start(s, p, g, group)
                    _move(p, g, s, group)
        return loss


def _start(s: dict[str, Any], p: Any, g: Any, group: dict[str, Any]) -> None:
    s["step"] = counter(p, group)
    if g.dim() > 1:
        s["row_var"] = g.new_zeros((*g.shape[:-1], 1))
        s["col_var"] = g.new_zeros((*g.shape[:-2], 1, g.shape[-1]))
    else:
        s["variance"] = aten.zeros_like(g)


def _rms(x: Any) -> float:
    return x.norm(2).item() / x.numel() ** 0.5


def _move(p: Any, g: Any, s: dict[str, Any], group: dict[str, Any]) -> None:
    lr = number(group["lr"])
    least, least_scale = group["eps"]
    if least is None:
        least = info.finfo(p.dtype).eps
    t = count(s["step"])
    share = t ** group["beta2_decay"]
    if group["maximize"]:
        g = -g
    rate = max(least_scale, _rms(p)) * min(lr, 1 / t**0.5)
    if group["weight_decay"] != 0:
        p.mul_(1 - lr * group["weight_decay"])
    if g.dim() > 1:
        rows, columns = s["row_var"], s["col_var"]
        rows.lerp_(g.norm(2, dim=-1, keepdim=True).square_().div_(g.shape[-1]), share)
        columns.lerp_(g.norm(2, dim=-2, keepdim=True).square_().div_(g.shape[-2]), share)
        square = rows @ columns
        square.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=least))
    else:
        square = s["variance"].lerp_(g.square(), share).clone()
    update = square.clamp_(min=least * least).rsqrt_().mul_(g)
    p.add_(update, alpha=-rate / max(1.0, _rms(update) / group["d"]))


__all__ = ["Adafactor"]
