"""AdamW: Adam whose weight decay does not pass through the averages.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.AdamW.html
"""

from __future__ import annotations

from typing import Any

from torchlab.optim.adam import Adam


class AdamW(Adam):
    """Adam with p ← p·(1 - lr·weight_decay) before each step (Loshchilov and Hutter, 2017)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


__all__ = ["AdamW"]
