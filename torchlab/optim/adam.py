"""Adam (Kingma and Ba, 2014) and the decay of AdamW (Loshchilov and Hutter, 2017).

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.Adam.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.writes import wrote
from torchlab._core.tensor import Tensor
from torchlab.optim._common import (
    SCRATCH,
    as_arrays,
    check_betas,
    check_fused,
    check_lr,
    check_options,
    chunks,
    count,
    counter,
    gradients,
    number,
    recording,
    run_closure,
)
from torchlab.optim._fused import adam_kernel
from torchlab.optim.optimizer import Optimizer

_REFUSAL = "Adam does not support sparse gradients, please consider SparseAdam instead"


class Adam(Optimizer):
    """m ← β₁m + (1 - β₁)g;  v ← β₂v + (1 - β₂)g²;  p ← p - lr·m̂ / (√v̂ + eps), where m̂ = m /
    (1 - β₁ᵗ) and
    v̂ = v / (1 - β₂ᵗ).

    weight_decay: added to g as weight_decay·p; decoupled_weight_decay: p shrinks by 1 -
    lr·weight_decay
    instead. amsgrad: √ of the largest v so far. Raises ValueError for options out of range.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_lr(lr, foreach, capturable)
        check_options(epsilon=eps)
        check_betas(betas)
        check_options(weight_decay=weight_decay)
        _check_betas(betas, foreach, capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (
                ("amsgrad", False),
                ("maximize", False),
                ("foreach", None),
                ("capturable", False),
                ("differentiable", False),
                ("fused", None),
                ("decoupled_weight_decay", False),
            ):
                group.setdefault(name, value)
            for p in group["params"]:
                own = self.state.get(p)
                if own and not isinstance(own["step"], Tensor):  # once a number
                    own["step"] = counter(p, group, float(own["step"]))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; returns what `closure` returned."""
        loss = run_closure(closure)
        for group in self.param_groups:
            facts = _Facts(group)
            for p, g in gradients(group, _REFUSAL):
                s = self.state[p]
                if not s:
                    _start(s, p, group)
                m, v = s["exp_avg"], s["exp_avg_sq"]
                largest = s["max_exp_avg_sq"] if group["amsgrad"] else None
                if as_arrays(group, p, (g, m, v) if largest is None else (g, m, v, largest)):
                    step = _fused_step if group["fused"] else _array_step
                    step(p, g, m, v, largest, facts.at(s["step"]))
                else:
                    _tensor_step(p, g, m, v, largest, s["step"], group)
        return loss


def _check_betas(betas: tuple[Any, Any], foreach: Any, capturable: bool) -> None:
    if not any(all(isinstance(b, kind) for b in betas) for kind in (float, Tensor)):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if not capturable and foreach:
                raise ValueError(
                    f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
                )
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")


def _start(s: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
    like = aten.detach(p)
    s["step"] = counter(p, group)
    s["exp_avg"] = aten.zeros_like(like)
    s["exp_avg_sq"] = aten.zeros_like(like)
    if group["amsgrad"]:
        s["max_exp_avg_sq"] = aten.zeros_like(like)


class _Facts:
    """A group's options as numbers, and what follows from the count of steps: usually all
    parameters
    are at the same step, so that it is worked out once."""

    __slots__ = (
        "lr",
        "beta1",
        "beta2",
        "eps",
        "decay",
        "decoupled",
        "maximize",
        "t",
        "root",
        "rate",
    )

    def __init__(self, group: dict[str, Any]) -> None:
        self.lr = number(group["lr"])
        beta1, beta2 = group["betas"]
        self.beta1, self.beta2 = number(beta1), number(beta2)
        self.eps = group["eps"]
        self.decay = group["weight_decay"]
        self.decoupled = group["decoupled_weight_decay"]
        self.maximize = group["maximize"]
        self.t = 0.0

    def at(self, steps: Tensor) -> _Facts:
        """Count a step, and be the facts of that step."""
        t = count(steps)
        if t != self.t:
            self.t = t
            self.root = math.sqrt(1 - self.beta2**t)
            self.rate = self.lr / (1 - self.beta1**t)
        return self


def _array_step(p: Tensor, g: Tensor, m: Tensor, v: Tensor, largest: Any, f: _Facts) -> None:
    """The step on arrays. m / (√v / root + eps)·rate is computed as m / (√v +
    eps·root)·(rate·root): one
    pass over the memory fewer."""
    multiply, add, subtract, divide, sqrt = np.multiply, np.add, np.subtract, np.divide, np.sqrt
    beta2, decay, eps, rate = f.beta2, f.decay, f.eps * f.root, f.rate * f.root
    share1, share2 = 1 - f.beta1, 1 - beta2
    scratch = SCRATCH.of(p._a.dtype)
    arrays = (p._a, g._a, m._a, v._a) if largest is None else (p._a, g._a, m._a, v._a, largest._a)
    for pieces in chunks(arrays):
        x, d, mean, square = pieces[:4]
        n = x.size
        a, b, c = (t[:n] for t in scratch)
        if f.maximize:
            d = np.negative(d, out=b)
        if decay != 0:
            if f.decoupled:
                multiply(x, 1 - f.lr * decay, out=x)
            else:
                d = add(multiply(x, decay, out=c), d, out=b)
        subtract(d, mean, out=a)
        multiply(a, share1, out=a)
        add(mean, a, out=mean)
        multiply(d, d, out=a)
        multiply(a, share2, out=a)
        multiply(square, beta2, out=square)
        add(square, a, out=square)
        if largest is not None:
            np.maximum(pieces[4], square, out=pieces[4])
            sqrt(pieces[4], out=a)
        else:
            sqrt(square, out=a)
        add(a, eps, out=a)
        divide(mean, a, out=a)
        multiply(a, rate, out=a)
        subtract(x, a, out=x)
    wrote(p)
    wrote(m)
    wrote(v)
    if largest is not None:
        wrote(largest)


def _fused_step(p: Tensor, g: Tensor, m: Tensor, v: Tensor, largest: Any, f: _Facts) -> None:
    """The step as one generated loop."""
    decay = "none" if f.decay == 0 else "decoupled" if f.decoupled else "added"
    kernel = adam_kernel(p._k.dtype, f.maximize, decay, largest is not None)
    if kernel is None:
        _array_step(p, g, m, v, largest, f)
        return
    tensors = (p, m, v) if largest is None else (p, m, v, largest)
    arrays = (p._a, g._a, *[t._a for t in tensors[1:]])
    shrink = 1 - f.lr * f.decay if f.decoupled else f.decay
    kernel.call(*arrays, 1 - f.beta1, f.beta2, 1 - f.beta2, f.eps * f.root, f.rate * f.root, shrink)
    for t in tensors:
        wrote(t)


def _tensor_step(
    p: Any, g: Any, m: Any, v: Any, largest: Any, steps: Any, group: dict[str, Any]
) -> None:
    """The step in operators."""
    differentiable = group["differentiable"]
    lr = group["lr"] if differentiable else number(group["lr"])
    beta1, beta2 = (b if differentiable else number(b) for b in group["betas"])
    decay = group["weight_decay"]
    with recording(group):
        t: Any = count(steps)
        if differentiable:  # PyTorch's recorded steps compute with the tensor, in its dtype
            t = steps.clone()
        d = -g if group["maximize"] else g
        if decay != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * decay)
            else:
                d = d + p * decay
        m.add_((d - m) * (1 - beta1))
        v.mul_(beta2).add_(_by_parts(lambda z: z * z, d) * (1 - beta2))
        if largest is not None:
            largest.copy_(_by_parts(aten.maximum, largest, v))
        root = (1 - beta2**t) ** 0.5
        square = v if largest is None else largest
        mean = m.clone() if differentiable else m  # autograd saves it, the next step changes m
        rate, eps = lr / (1 - beta1**t), group["eps"]
        if (
            differentiable
        ):  # the factors in PyTorch's order: they are rounded to the counter's dtype
            step = _by_parts(lambda z, w: z / (w.sqrt() / (root * rate) + eps / rate), mean, square)
            p.sub_(step)
        else:
            step = _by_parts(lambda z, w: z / (w.sqrt() / root + eps), mean, square)
            p.sub_(step * rate)


def _by_parts(fn: Callable[..., Any], *tensors: Any) -> Any:
    """`fn` of the tensors; for complex ones of their real and of their imaginary parts, which Adam
    takes for parameters of their own."""
    if not tensors[0].is_complex():
        return fn(*tensors)
    return aten.complex(fn(*(aten.real(t) for t in tensors)), fn(*(aten.imag(t) for t in tensors)))


__all__ = ["Adam"]
