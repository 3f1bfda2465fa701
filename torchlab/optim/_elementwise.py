"""What optimizers share that change each element by itself: the loop over parameters, the choice
between arrays and operators, the sign and the weight decay of the gradient.

Note: a subclass says what its state is (`_start`, `_names`), what numbers follow from the options
and the count of steps (`_facts`), and the formula twice: `_array_step` on chunks of arrays, in
place and without temporaries, and `_tensor_step` in operators. See `torchlab.optim._common`. A
complex tensor is its real and its imaginary parts, parameters of their own, as in PyTorch.

Source: https://docs.pytorch.org/docs/2.13/optim.html#algorithms
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.writes import wrote
from torchlab._core.tensor import Tensor
from torchlab.optim._common import (
    SCRATCH,
    as_arrays,
    chunks,
    counter,
    gradients,
    number,
    recording,
    run_closure,
)
from torchlab.optim.optimizer import Optimizer


class Elementwise(Optimizer):
    """Base of optimizers that change each element by itself."""

    _late: ClassVar[dict[str, Any]] = {}  # options that older saved optimizers lack

    def _start(self, s: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        """Make the state of parameter `p`: zeros, where a subclass does not say otherwise."""
        s["step"] = counter(p, group)
        for name in self._names(group):
            s[name] = zeros_like(p)

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The tensors of the state that are of the parameter's shape."""
        raise NotImplementedError

    def _facts(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> Any:
        """Count a step, and what follows from it and the options. lr: a number; a tensor only where
        the step is recorded."""
        raise NotImplementedError

    def _array_step(self, x: Any, d: Any, state: Any, a: Any, c: Any, facts: Any) -> None:
        """Change the chunks x (parameter) and `state`. d: the gradient, not to be written to; a, c:
        scratch."""
        raise NotImplementedError

    def _tensor_step(self, p: Any, d: Any, state: Any, facts: Any, copy: Any) -> None:
        """The same in operators. copy: takes a tensor that a later step changes and that autograd
        may save."""
        raise NotImplementedError

    def _fused_step(self, p: Any, g: Any, state: Any, facts: Any, group: dict[str, Any]) -> bool:
        """The step as one generated loop; False where there is none."""
        return False

    def _after(self, s: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        """What is left to do for a parameter after its step."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._late.items():
                group.setdefault(name, value)
            for p in group["params"]:
                own = self.state.get(p)
                if own and not isinstance(own["step"], Tensor):  # once a number
                    own["step"] = counter(p, group, float(own["step"]))

    def _gradients(self, group: dict[str, Any]) -> list[tuple[Tensor, Tensor]]:
        return gradients(group, f"{type(self).__name__} does not support sparse gradients")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; returns what `closure` returned."""
        loss = run_closure(closure)
        for group in self.param_groups:
            names = self._names(group)
            for p, g in self._gradients(group):
                s = self.state[p]
                if not s:
                    self._start(s, p, group)
                self._move(p, g, s, names, group)
        return loss

    def _move(
        self, p: Any, g: Any, s: dict[str, Any], names: tuple[str, ...], group: dict[str, Any]
    ) -> None:
        lr = group["lr"] if group["differentiable"] else number(group["lr"])
        facts = self._facts(s, group, lr)
        state = tuple([s[name] for name in names])
        if not as_arrays(group, p, (g, *state)):
            self._in_operators(p, g, state, facts, group, lr)
        elif not (group.get("fused") and self._fused_step(p, g, state, facts, group)):
            self._on_arrays(p, g, state, facts, group, lr)
        self._after(s, group, lr)

    def _on_arrays(
        self, p: Any, g: Any, state: Any, facts: Any, group: dict[str, Any], lr: Any
    ) -> None:
        decay, maximize = group.get("weight_decay", 0), group["maximize"]
        decoupled = group.get("decoupled_weight_decay", False)
        scratch = SCRATCH.of(p._a.dtype)
        for x, d, *pieces in chunks((p._a, g._a, *[t._a for t in state])):
            a, b, c = (t[: x.size] for t in scratch)
            if maximize:
                d = np.negative(d, out=b)
            if decay != 0:
                if decoupled:
                    np.multiply(x, 1 - lr * decay, out=x)
                else:
                    d = np.add(d, np.multiply(x, decay, out=c), out=b)
            self._array_step(x, d, pieces, a, c, facts)
        for t in (p, *state):
            wrote(t)

    def _in_operators(
        self, p: Any, g: Any, state: Any, facts: Any, group: dict[str, Any], lr: Any
    ) -> None:
        decay = group.get("weight_decay", 0)
        with recording(group):
            if p.is_complex():
                p, g, *state = (aten.view_as_real(t) for t in (p, g, *state))
            d = -g if group["maximize"] else g
            if decay != 0:
                if group.get("decoupled_weight_decay", False):
                    p.mul_(1 - lr * decay)
                else:
                    d = d.add(p, alpha=decay)
            self._tensor_step(p, d, state, facts, aten.clone if group["differentiable"] else _same)


def _same(t: Any) -> Any:
    return t


def zeros_like(p: Tensor) -> Tensor:
    """A state of zeros for parameter `p`."""
    return aten.zeros_like(aten.detach(p))


def filled_like(p: Any, value: Any) -> Tensor:
    """A state of one value, in both parts where `p` is complex."""
    if p.is_complex():
        value = complex(value, value)
    return aten.full_like(aten.detach(p), value)


def add_scaled(p: Any, x: Any, scale: Any) -> None:
    """p ← p + scale·x, where the scale may be a tensor that is recorded."""
    if isinstance(scale, Tensor):
        p.add_(x * scale)
    else:
        p.add_(x, alpha=scale)


def average(m: Any, d: Any, share: float, a: Any) -> None:
    """m ← m + share·(d - m) on arrays. a: scratch."""
    np.subtract(d, m, out=a)
    np.multiply(a, share, out=a)
    np.add(m, a, out=m)


def average_of_squares(v: Any, d: Any, beta: float, a: Any) -> None:
    """v ← beta·v + (1 - beta)·d² on arrays. a: scratch."""
    np.multiply(d, d, out=a)
    np.multiply(a, 1 - beta, out=a)
    np.multiply(v, beta, out=v)
    np.add(v, a, out=v)
