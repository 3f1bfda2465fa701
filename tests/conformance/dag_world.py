"""What random autograd programs may name: hooks that keep a log, custom Functions, ways to pack.

`world(torch)` makes the same names for torchlab and for PyTorch; `dag_programs.py` runs the
programs. A hook is named by its label and by what it gives back, so that the logs of both
libraries can be compared line by line.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.conformance.dag_functions import Boom, rare_names

# What a tensor hook gives back for the gradient it gets.
REPLIES: dict[str, Callable[[Any], Any]] = {
    "none": lambda g: None,
    "double": lambda g: g * 2,
    "same": lambda g: g,
    "copy": lambda g: g.clone(),
    "less": lambda g: g - 1,
    "wrong_shape": lambda g: g.reshape(-1)[:0],
    "number": lambda g: 1,
}


def seen(g: Any) -> Any:
    """A gradient as it is written into the log."""
    if isinstance(g, (tuple, list)):
        return tuple(seen(x) for x in g)
    if g is None or not hasattr(g, "detach"):
        return g
    values = [v + 0.0 for v in g.detach().reshape(-1).tolist()]
    return tuple(g.shape), values, g.requires_grad, str(g.dtype)


def _hooks(torch: Any, log: list[Any]) -> dict[str, Any]:
    def hook(label: str, reply: str) -> Any:
        def call(g: Any) -> Any:
            log.append(("hook", label, seen(g), torch.is_grad_enabled()))
            if reply == "boom":
                raise Boom(label)
            return REPLIES[reply](g)

        return call

    def pre(label: str, reply: str) -> Any:
        def call(grads: Any) -> Any:
            log.append(("pre", label, seen(grads)))
            if reply == "none":
                return None
            if reply == "boom":
                raise Boom(label)
            return tuple(g if g is None else g * 3 for g in grads)

        return call

    def post(label: str, reply: str) -> Any:
        def call(inputs: Any, outputs: Any) -> Any:
            log.append(("post", label, seen(inputs), seen(outputs)))
            if reply == "none":
                return None
            if reply == "boom":
                raise Boom(label)
            return tuple(g if g is None else g + 1 for g in inputs)

        return call

    def accumulated(label: str, reply: str) -> Any:
        def call(t: Any) -> None:
            log.append(("accumulated", label, seen(t.grad)))
            if reply == "clear":
                t.grad = None
            if reply == "boom":
                raise Boom(label)

        return call

    def several(label: str) -> Any:
        return lambda *a: log.append(("several", label, seen(a if len(a) > 1 else a[0])))

    return {
        "hook": hook, "pre": pre, "post": post, "accumulated": accumulated, "several": several,
    }  # fmt: skip


def _packing(torch: Any, log: list[Any]) -> dict[str, Any]:
    def packed(label: str, reply: str) -> Any:
        def pack(t: Any) -> Any:
            log.append(("pack", label, seen(t), t.is_leaf))
            if reply == "boom":
                raise Boom(label)
            return (t,) if reply == "keep" else t.detach().clone()

        def unpack(p: Any) -> Any:
            t = p[0] if reply == "keep" else p
            log.append(("unpack", label, seen(t)))
            return 1 if reply == "number" else t * 2 if reply == "double" else t

        return torch.autograd.graph.saved_tensors_hooks(pack, unpack)

    return {"packed": packed}


def _functions(torch: Any, log: list[Any]) -> dict[str, Any]:
    Function = torch.autograd.Function

    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            log.append(("needs", ctx.needs_input_grad, torch.is_grad_enabled(), x.requires_grad))
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            log.append(("Twice", seen(g), x.requires_grad, torch.is_grad_enabled()))
            return 2 * x * g

    class Result(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.tanh()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * (1 - y * y)

    class Mixed(Function):
        @staticmethod
        def forward(x: Any, k: Any, y: Any) -> Any:
            return x * k + y, (x > 0), x + y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, ctx.k, y = inputs
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(x, y, output[0])

        @staticmethod
        def backward(ctx: Any, g: Any, m: Any, h: Any) -> Any:
            log.append(("Mixed", seen((g, m, h)), ctx.needs_input_grad))
            x, y, r = ctx.saved_tensors
            return g * ctx.k + h * y, None, g + h * r

    class Sparse(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x + 1, y * 2

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            log.append(("Sparse", seen((g, h))))
            return (None if g is None else g * 3), (None if h is None else h * 2)

    class Write(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(3)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(("Write", seen(g)))
            return g * 3

    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(("Same", seen(g)))
            return g * 2

    class View(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.shape = x.shape
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.reshape(ctx.shape) * 2

    class Halves(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.shape = x.shape
            a = x.reshape(-1)
            return a[:1].clone(), a[1:].clone()

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            log.append(("Halves", seen((g, h))))
            return torch.cat([g, h]).reshape(ctx.shape)

    class Nothing(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(("Nothing", seen(g)))
            return None, g

    class Fails(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(("Fails", seen(g)))
            raise Boom("backward")

    class Inner(Function):
        """Runs a backward of its own inside backward."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            with torch.enable_grad():
                ctx.inner = x.detach().requires_grad_()
                ctx.loss = (ctx.inner * ctx.inner).sum()
            return ctx.loss.detach().clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(("Inner", seen(g)))
            with torch.enable_grad():
                ctx.loss.backward(retain_graph=True)
            return ctx.inner.grad * g

    made = (Twice, Result, Mixed, Sparse, Write, Same, View, Halves, Nothing, Fails, Inner)
    return {f.__name__: f for f in made}


def world(torch: Any) -> dict[str, Any]:
    """The names that a program starts with, and `log`."""
    log: list[Any] = []
    env = {
        "torch": torch, "log": log, "Boom": Boom, "seen": seen, "kept": {}, "copy": copy,
        **_hooks(torch, log), **_packing(torch, log), **_functions(torch, log),
    }  # fmt: skip
    return {**env, **rare_names(torch, env, seen)}
