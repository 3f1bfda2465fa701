"""L-BFGS (Nocedal, 1980): a quasi-Newton method that remembers the last steps.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.optim.LBFGS.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import enable_grad, no_grad
from torchlab.optim._common import check_lr, number
from torchlab.optim._line_search import Point, strong_wolfe
from torchlab.optim.optimizer import Optimizer

# What the state says of the past, beside its counts: the last direction and step; the last changes
# of the gradient, of the parameters, and 1 / their product; the scale of H; the last values.
_MEMORY = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    """p ← p + t·d with d = -H·g, where H, never formed, follows from the last `history_size`
    differences of parameters and gradients. t is lr, or what the line search finds.

    max_iter, max_eval (default: 1.25·max_iter): iterations and calls of the closure in a step.
    tolerance_grad, tolerance_change: stop when the largest |g|, or the largest change of a
    parameter or of the loss, is below. line_search_fn: None or "strong_wolfe". One group
    only. `step` needs the closure. Raises ValueError for a negative lr or more than one group.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr, None, False)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Up to max_iter iterations. closure: clears the gradients, computes the loss and its
        gradients, returns the loss. Returns the loss at the start."""
        with no_grad():
            return self._step(closure)

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        lr, change = number(group["lr"]), group["tolerance_change"]
        s = self.state[self._params[0]]  # of all parameters together
        s.setdefault("func_evals", 0)
        s.setdefault("n_iter", 0)
        with enable_grad():
            first_loss = closure()
        loss, g = float(first_loss), self._gradient()
        s["func_evals"] += 1
        evaluations = 1
        if _largest(g) <= group["tolerance_grad"]:
            return first_loss
        m = {name: s.get(name) for name in _MEMORY}
        for iteration in range(1, group["max_iter"] + 1):
            s["n_iter"] += 1
            if s["n_iter"] == 1:
                t = min(1.0, 1.0 / g.abs().sum()) * lr
                d = -g
                m.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                _remember(m, g, group["history_size"])
                shares = s.setdefault("al", [None] * group["history_size"])
                t, d = lr, _direction(m, g, shares)
            m.update(d=d, t=t, prev_flat_grad=g.clone(), prev_loss=loss)
            slope = g.dot(d)
            if slope > -change:
                break
            calls = 0
            if group["line_search_fn"] is not None:
                loss, g, t, calls = self._search(closure, t, d, Point(0, loss, g, slope), change)
                m["t"] = t
                self._add(t, d)
                flat = bool(_largest(g) <= group["tolerance_grad"])
            else:
                self._add(t, d)
                flat = False
                if iteration != group["max_iter"]:  # else nobody would look at the result
                    loss, g, calls = *self._evaluate(closure), 1
                    flat = bool(_largest(g) <= group["tolerance_grad"])
            evaluations += calls
            s["func_evals"] += calls
            if (
                evaluations >= group["max_eval"]
                or flat
                or _largest(d * t) <= change
                or abs(loss - m["prev_loss"]) < change
            ):
                break
        s.update(m)
        return first_loss

    def _search(
        self, closure: Callable[[], Any], t: Any, d: Any, start: Point, change: float
    ) -> tuple[float, Any, Any, int]:
        """Loss, gradient, step and calls of a line search along d; the parameters stay."""
        kept = [p.clone() for p in self._params]

        def at(t: Any) -> Point:
            self._add(t, d)
            loss, g = self._evaluate(closure)
            for p, old in zip(self._params, kept, strict=True):
                p.copy_(old)
            return Point(t, loss, g, g.dot(d))

        found, calls = strong_wolfe(at, t, start, _largest(d), change)
        return found.loss, found.gradient, found.t, calls

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[float, Any]:
        with enable_grad():
            loss = float(closure())
        return loss, self._gradient()

    def _gradient(self) -> Any:
        """All gradients in one vector, complex ones as pairs of reals."""
        parts = []
        for p in self._params:
            if p.grad is None:
                part = aten.zeros_like(p)
            else:
                part = p.grad.to_dense() if p.grad.is_sparse else p.grad
            parts.append(_real(part).reshape(-1))
        return aten.cat(parts, 0)

    def _add(self, t: Any, d: Any) -> None:
        """p ← p + t·d for all parameters."""
        low = 0
        for p in self._params:
            part = _real(p)
            n = part.numel()
            part.add_(d[low : low + n].view_as(part), alpha=number(t))
            low += n


def _real(p: Any) -> Any:
    return aten.view_as_real(p) if p.is_complex() else p


def _largest(g: Any) -> Any:
    return g.abs().max()


def _remember(m: dict[str, Any], g: Any, history_size: int) -> None:
    """Add the last step to the memory, if the curvature along it is positive."""
    y, step = g - m["prev_flat_grad"], m["d"] * m["t"]
    curvature = y.dot(step)
    if not curvature > 1e-10:
        return
    if len(m["old_dirs"]) == history_size:
        for name in ("old_dirs", "old_stps", "ro"):
            m[name].pop(0)
    m["old_dirs"].append(y)
    m["old_stps"].append(step)
    m["ro"].append(1.0 / curvature)
    m["H_diag"] = curvature / y.dot(y)


def _direction(m: dict[str, Any], g: Any, shares: list[Any]) -> Tensor:
    """-H·g by two passes over the memory (Nocedal and Wright, algorithm 7.4). shares: scratch."""
    changes, steps, ro = m["old_dirs"], m["old_stps"], m["ro"]
    q = -g
    for i in reversed(range(len(changes))):
        shares[i] = steps[i].dot(q) * ro[i]
        q.add_(changes[i], alpha=-shares[i].item())
    r = q * m["H_diag"]
    for i in range(len(changes)):
        r.add_(steps[i], alpha=(shares[i] - changes[i].dot(r) * ro[i]).item())
    return r


__all__ = ["LBFGS"]
